//! Sections that stand for several ports or VLANs, as a running configuration may show them, taken apart.
//!
//! ```text
//!   interface range ethernet g(1,3-4)        interface ethernet g1        interface ethernet g3   …
//!   switchport mode general             ▶    switchport mode general      switchport mode general
//!   exit                                     exit                         exit
//! ```
//! PowerConnect switches put the numbers in parentheses, those of Cisco's small business line do without; `all` is every
//! port. Source: the vendors' guides, and no switch.

use dialects::Target;

/// Most ports that one section may stand for.
const PORTS_MAX: u32 = 4096;

/// Lines with every section of a range said once for each of its ports.
///
/// # Errors
/// The line whose list is not understood.
pub(super) fn expand(target: Target, lines: Vec<String>, names: &[String]) -> Result<Vec<String>, String> {
    if !matches!(target, Target::PowerConnect | Target::CiscoSb | Target::EdgeCore | Target::Fastpath) {
        return Ok(lines);
    }
    let mut plain = Vec::with_capacity(lines.len());
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (kind, list) = match words.as_slice() {
            ["interface", "range", kind @ ("ethernet" | "vlan"), list @ ..] => (format!("{kind} "), joined(list)),
            ["interface", "range", list @ ..] => (String::new(), joined(list)),
            ["interface", "ethernet", list] if target == Target::EdgeCore && list.contains(['-', ',']) => {
                ("ethernet ".to_owned(), (*list).to_owned())
            }
            ["interface", list] if target == Target::Fastpath && list.contains(['-', ',']) => {
                (String::new(), (*list).to_owned())
            }
            _ => {
                plain.push(line);
                continue;
            }
        };
        let members = match (list.as_str(), kind.as_str()) {
            // VLANs that are not named cannot be told.
            ("all", "vlan ") => None,
            ("all", _) => Some(names.to_vec()),
            (list, _) => members(list),
        };
        let members = members.ok_or_else(|| {
            format!("its configuration says {line:?}, which is not understood; take the range apart by hand first")
        })?;
        let mut section = Vec::new();
        while let Some(next) = lines.next_if(|next| !next.trim_start().starts_with("interface ")) {
            let ends = matches!(next.trim(), "exit" | "!");
            section.push(next);
            if ends {
                break;
            }
        }
        for member in members {
            plain.push(format!("interface {kind}{member}"));
            plain.extend(section.iter().cloned());
        }
    }
    Ok(plain)
}

/// A list with spaces behind its commas; other spaces stay, and are not understood.
fn joined(words: &[&str]) -> String {
    words.join(" ").replace(", ", ",")
}

/// `g(1,3-4)`, `1/e(1-3),1/g1`, `gi1-4,te1`, `10,20-22`.
fn members(list: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let end = rest.find([',', '(']).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(end);
        if let Some(inner) = tail.strip_prefix('(') {
            let (numbers, after) = inner.split_once(')')?;
            for range in numbers.split(',') {
                span(head, range, &mut all)?;
            }
            rest = after;
        } else {
            if head.contains(' ') {
                return None;
            }
            let digits = head.rfind(|c: char| !c.is_ascii_digit() && c != '-').map_or(0, |at| at + 1);
            // In `gi1-gi4` the kind is said twice.
            match head.split_once('-') {
                // In `0/1-0/4` everything but the last number is.
                Some((first, last)) if last.contains('/') => {
                    let kind = &first[..first.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1)];
                    span(kind, &format!("{}-{}", &first[kind.len()..], last.strip_prefix(kind)?), &mut all)?;
                }
                Some((first, last)) if !last.starts_with(|c: char| c.is_ascii_digit()) => {
                    let kind = first.trim_end_matches(|c: char| c.is_ascii_digit());
                    span(kind, &format!("{}-{}", &first[kind.len()..], last.strip_prefix(kind)?), &mut all)?;
                }
                _ => span(&head[..digits], &head[digits..], &mut all)?,
            }
            rest = tail;
        }
        rest = match rest.strip_prefix(',') {
            Some("") => return None,
            Some(next) => next,
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    (!all.is_empty()).then_some(all)
}

/// Adds `3` or `3-4`, after what stands before the numbers.
fn span(kind: &str, range: &str, all: &mut Vec<String>) -> Option<()> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    if first > last || last - first >= PORTS_MAX || all.len() > PORTS_MAX as usize {
        return None;
    }
    all.extend((first..=last).map(|number| format!("{kind}{number}")));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ports_are_taken_apart() {
        for (list, expected) in [
            ("g(1,3-4)", "g1 g3 g4"),
            ("1/e(1-2),1/g1", "1/e1 1/e2 1/g1"),
            ("1/g(1-2),2/g(7)", "1/g1 1/g2 2/g7"),
            ("g1", "g1"),
            ("gi1-3", "gi1 gi2 gi3"),
            ("gi1/1/1-2,te1/1/4", "gi1/1/1 gi1/1/2 te1/1/4"),
            ("gi9-gi11", "gi9 gi10 gi11"),
            ("10,20-22", "10 20 21 22"),
            ("0/1-0/3,0/7", "0/1 0/2 0/3 0/7"),
            ("1/1-3", "1/1 1/2 1/3"),
            ("GigabitEthernet1-2", "GigabitEthernet1 GigabitEthernet2"),
        ] {
            assert_eq!(members(list).map(|all| all.join(" ")).as_deref(), Some(expected), "{list}");
        }
        for list in
            ["", "g", "g(", "g(1", "g()", "g(3-1)", "g(1)g(2)", "g(1),", ",g1", "gi1-te4", "g(1-99999999)", "1-2-3"]
        {
            assert_eq!(members(list), None, "{list}");
        }
    }

    #[test]
    fn a_section_is_said_for_every_port() {
        let names = ["g1", "g2"].map(str::to_owned);
        let check = |text: &str, expected: &str| {
            let lines = text.lines().map(str::to_owned).collect();
            let found = expand(Target::PowerConnect, lines, &names).map(|lines| lines.join("\n"));
            assert_eq!(found.as_deref(), Ok(expected), "{text}");
        };
        check(
            "vlan database\nexit\ninterface range ethernet g(1-2)\nshutdown\nexit\nno spanning-tree",
            "vlan database\nexit\ninterface ethernet g1\nshutdown\nexit\ninterface ethernet g2\nshutdown\nexit\nno spanning-tree",
        );
        // A section may end where the next begins.
        check(
            "interface range ethernet all\nflowcontrol on\ninterface ethernet g1\nshutdown",
            "interface ethernet g1\nflowcontrol on\ninterface ethernet g2\nflowcontrol on\ninterface ethernet g1\nshutdown",
        );
        check(
            "interface range vlan 2-3\nname x\nexit",
            "interface vlan 2\nname x\nexit\ninterface vlan 3\nname x\nexit",
        );
        let wrong = expand(Target::CiscoSb, vec!["interface range gi1 to 4".to_owned()], &names);
        assert!(wrong.is_err_and(|error| error.contains("by hand")));
        let other = vec!["interface range 1".to_owned()];
        assert_eq!(expand(Target::Huawei, other.clone(), &names), Ok(other));
    }
}
