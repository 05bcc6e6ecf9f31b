//! What an import is told besides the files.

use crate::Models;

/// What a cabling file does not say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ImportOptions {
    /// Patterns of hosts' names, such as `node*`; what a file states itself goes before. `*` stands for any text and
    /// `?` for one character.
    pub hosts: Vec<String>,
    /// Patterns of the names of devices' own ports whose neighbours are no part of the fabric, such as `eth0` for
    /// management; for LLDP and NetBox.
    pub ignored_ports: Vec<String>,
    /// For NetBox: patterns of the roles, by name or slug, of devices that are switches; if there are none, roles with *switch*,
    /// *leaf* or *spine* in them. Small letters stand for capitals as well.
    pub switch_roles: Vec<String>,
    /// The models that switches may be of.
    pub models: Models,
}

impl ImportOptions {
    pub(crate) fn names_host(&self, name: &str) -> bool {
        self.hosts.iter().any(|pattern| matches(pattern, name))
    }

    pub(crate) fn names_switch_role(&self, role: &str) -> bool {
        let role = role.to_lowercase();
        let own = self.switch_roles.iter().any(|pattern| matches(&pattern.to_lowercase(), &role));
        own || (self.switch_roles.is_empty() && SWITCH_ROLES.iter().any(|word| role.contains(word)))
    }

    pub(crate) fn ignores_port(&self, name: &str) -> bool {
        self.ignored_ports.iter().any(|pattern| matches(pattern, name))
    }
}

/// Words in the roles of switches.
const SWITCH_ROLES: [&str; 3] = ["switch", "leaf", "spine"];

/// Whether a pattern of `*`, `?` and letters describes the whole of `text`. Cost: O(|pattern|·|text|).
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // After a `*`, the positions to resume from when the rest does not fit.
    let mut retry = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match retry {
                Some((after, from)) => {
                    retry = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("node*", "node01", true),
            ("node*", "anode01", false),
            ("*-h?", "rack-h-h7", true),
            ("*-h?", "rack-h77", false),
            ("*", "", true),
            ("", "x", false),
            ("a*b*c", "abxbc", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
