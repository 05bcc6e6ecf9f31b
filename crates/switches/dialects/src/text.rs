//! What all configuration languages have in common: lines of words, lists of VLANs, ways to write an address.

use fabric::{Mac, StormLimit, VlanId, VlanSet};

/// Most errors that are reported of one text; a text in the wrong language would give one a line.
pub(crate) const ERRORS_MAX: usize = 20;

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Hands every line that is neither blank nor a comment to `tell`, as words, and collects what is wrong.
pub(crate) fn interpret(
    text: &str,
    comment: &str,
    mut tell: impl FnMut(&[&str]) -> Result<(), String>,
) -> Result<(), Vec<LineError>> {
    let mut errors = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_none_or(|first| first.starts_with(comment)) {
            continue;
        }
        if let Err(message) = tell(&words) {
            errors.push(LineError { line: number + 1, message });
            if errors.len() == ERRORS_MAX {
                break;
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The refusal of a line that means nothing in the language.
pub(crate) fn unknown(words: &[&str]) -> Result<(), String> {
    Err(format!("{:?} is no command that this reader knows", words.join(" ")))
}

/// A VLAN number.
pub(crate) fn vlan(word: &str) -> Result<VlanId, String> {
    word.parse::<VlanId>().map_err(|error| error.to_string())
}

/// A limit of storm control: whole percent, as in `5` and `5.00`.
pub(crate) fn storm_limit(word: &str) -> Result<StormLimit, String> {
    let whole =
        word.split_once('.').map_or(word, |(whole, part)| if part.trim_matches('0').is_empty() { whole } else { word });
    whole.parse()
}

/// Every VLAN that there may be.
pub fn every_vlan() -> VlanSet {
    (VlanId::MIN.get()..=VlanId::MAX.get()).filter_map(|id| VlanId::new(id).ok()).collect()
}

/// A list such as `2-4,10`.
pub(crate) fn vlans(word: &str) -> Result<VlanSet, String> {
    let set = word.parse::<VlanSet>().map_err(|error| error.to_string())?;
    if set.is_empty() { Err("the list of VLANs is empty".to_owned()) } else { Ok(set) }
}

/// A list in words, such as `2 to 4 10`.
pub(crate) fn vlans_to(words: &[&str]) -> Result<VlanSet, String> {
    let mut set = VlanSet::new();
    let mut rest = words;
    while let [first, tail @ ..] = rest {
        let (last, tail) = match tail {
            ["to", last, tail @ ..] => (last, tail),
            _ => (first, tail),
        };
        set.extend(vlans(&format!("{first}-{last}"))?.iter());
        rest = tail;
    }
    if set.is_empty() { Err("the list of VLANs is empty".to_owned()) } else { Ok(set) }
}

/// A station's address in any of the field's spellings.
pub(crate) fn mac(word: &str) -> Result<Mac, String> {
    word.parse::<Mac>().map_err(|error| format!("{word:?} is {error}"))
}

/// A set of VLANs in pieces of at most `runs_max` runs, so that no line grows longer than a switch reads.
pub(crate) fn pieces(set: &VlanSet, runs_max: usize) -> Vec<VlanSet> {
    let runs = set.runs();
    let piece = |runs: &[(VlanId, VlanId)]| {
        let inside = |vlan: &VlanId| runs.iter().any(|(first, last)| (*first..=*last).contains(vlan));
        set.iter().filter(inside).collect()
    };
    runs.chunks(runs_max).map(piece).collect()
}

/// A set of VLANs as words: `2 to 4 10`.
pub(crate) fn in_words(set: &VlanSet) -> String {
    let word = |(first, last): (VlanId, VlanId)| {
        if first == last { first.to_string() } else { format!("{first} to {last}") }
    };
    set.runs().into_iter().map(word).collect::<Vec<_>>().join(" ")
}

/// An address as `0200-0000-0001`.
pub(crate) fn mac_hyphen4(mac: Mac) -> String {
    mac_groups(mac, 2, '-')
}

/// An address as `0200.0000.0001`.
pub(crate) fn mac_dot4(mac: Mac) -> String {
    mac_groups(mac, 2, '.')
}

/// An address as `02-00-00-00-00-01`.
pub(crate) fn mac_hyphen2(mac: Mac) -> String {
    mac_groups(mac, 1, '-')
}

fn mac_groups(mac: Mac, octets: usize, separator: char) -> String {
    let group = |group: &[u8]| group.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let groups: Vec<String> = mac.octets().chunks(octets).map(group).collect();
    groups.join(&separator.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> VlanSet {
        text.parse().expect("a set")
    }

    #[test]
    fn lists_read_what_they_write() {
        assert_eq!(in_words(&set("2-4,10,12-13")), "2 to 4 10 12 to 13");
        assert_eq!(vlans_to(&["2", "to", "4", "10", "12", "to", "13"]), Ok(set("2-4,10,12-13")));
        assert!(vlans_to(&["2", "to"]).is_err() && vlans_to(&[]).is_err() && vlans_to(&["4", "to", "2"]).is_err());
        assert_eq!(pieces(&set("2-4,10,12-13"), 2), [set("2-4,10"), set("12-13")]);
    }

    #[test]
    fn addresses_have_many_spellings() {
        let address = Mac::local(0x0a01);
        for text in [mac_hyphen4(address), mac_dot4(address), mac_hyphen2(address)] {
            assert_eq!(mac(&text), Ok(address), "{text}");
        }
        assert_eq!(mac_hyphen4(address), "0200-0000-0a01");
    }

    #[test]
    fn errors_name_their_line_and_end() {
        let errors = interpret(&"x\n".repeat(100), "!", unknown).expect_err("no command");
        assert_eq!((errors.len(), errors[3].line), (ERRORS_MAX, 4));
        assert_eq!(interpret("! x\n\n  !\n", "!", unknown), Ok(()));
    }
}
