//! Numbers of things in a sentence: 1 switch, 2 switches.

/// A number and what is counted, in the singular for one.
pub fn counted(count: usize, one: &str) -> String {
    match (count, one) {
        (1, _) => format!("1 {one}"),
        (_, "entry") => format!("{count} entries"),
        _ if one.ends_with("ch") || one.ends_with("ss") => format!("{count} {one}es"),
        _ => format!("{count} {one}s"),
    }
}

/// Names with `separator` between them, of which `shown_max` are shown and the rest counted: `s1, s2 and 3 more`.
pub fn abridged(names: &[impl AsRef<str>], separator: &str, shown_max: usize) -> String {
    let shown: Vec<&str> = names.iter().take(shown_max).map(AsRef::as_ref).collect();
    let more = match names.len().saturating_sub(shown_max) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(separator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_counted() {
        assert_eq!(abridged(&["a", "b"], ", ", 2), "a, b");
        assert_eq!(abridged(&["a", "b", "c"], ", ", 2), "a, b and 1 more");
        assert_eq!(abridged(&[""; 0], ", ", 2), "");
    }

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
