//! Numbers of things in a sentence: 1 switch, 2 switches.

/// A number and what is counted, in the singular for one.
pub(crate) fn counted(count: usize, one: &str) -> String {
    match (count, one) {
        (1, _) => format!("1 {one}"),
        (_, "entry") => format!("{count} entries"),
        _ if one.ends_with("ch") || one.ends_with("ss") => format!("{count} {one}es"),
        _ => format!("{count} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        for (count, one, expect) in [
            (0, "switch", "0 switches"),
            (1, "switch", "1 switch"),
            (2, "switch", "2 switches"),
            (1, "VLAN", "1 VLAN"),
            (3, "VLAN", "3 VLANs"),
            (1, "entry", "1 entry"),
            (2, "entry", "2 entries"),
            (1, "class", "1 class"),
            (8, "class", "8 classes"),
        ] {
            assert_eq!(counted(count, one), expect);
        }
    }
}
