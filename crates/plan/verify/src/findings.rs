//! Collects findings without letting one fault drown the others, or exhaust memory.

use std::collections::BTreeMap;

use fabric::{Finding, FindingKind, Report, Severity};

/// Most findings of one kind and severity that a report spells out; one more says how many were left out.
pub const FINDINGS_PER_KIND_MAX: usize = 50;

/// Findings so far.
#[derive(Default)]
pub(crate) struct Findings {
    kept: Vec<Finding>,
    counts: BTreeMap<(Severity, FindingKind), usize>,
}

impl Findings {
    /// Adds a finding whose subject and message are only written if it is kept.
    pub(crate) fn add(&mut self, severity: Severity, kind: FindingKind, describe: impl FnOnce() -> (String, String)) {
        let count = self.counts.entry((severity, kind)).or_default();
        *count += 1;
        if *count <= FINDINGS_PER_KIND_MAX {
            let (subject, message) = describe();
            self.kept.push(Finding { severity, kind, subject, message });
        }
    }

    /// Adds a fatal finding.
    pub(crate) fn fatal(&mut self, kind: FindingKind, describe: impl FnOnce() -> (String, String)) {
        self.add(Severity::Fatal, kind, describe);
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, kind: FindingKind, describe: impl FnOnce() -> (String, String)) {
        self.add(Severity::Warning, kind, describe);
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, kind: FindingKind, describe: impl FnOnce() -> (String, String)) {
        self.add(Severity::Note, kind, describe);
    }

    /// The sorted report.
    pub(crate) fn into_report(mut self) -> Report {
        for ((severity, kind), count) in self.counts {
            if count > FINDINGS_PER_KIND_MAX {
                let message = format!("and {} more like this", grouped(count - FINDINGS_PER_KIND_MAX));
                // The ellipsis sorts after every name, so the count stands below what it counts.
                self.kept.push(Finding { severity, kind, subject: "…".to_owned(), message });
            }
        }
        Report::new(self.kept)
    }
}

/// A count with its thousands set apart: `1,234`.
pub(crate) fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 host`, `2 hosts`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// The first few of a list, and how many more there are.
pub(crate) fn listed<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    const SHOWN: usize = 24;
    let mut items = items.into_iter();
    let shown: Vec<String> = items.by_ref().take(SHOWN).map(|item| item.to_string()).collect();
    let rest = items.count();
    if rest == 0 { shown.join(", ") } else { format!("{} and {} more", shown.join(", "), grouped(rest)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let mut findings = Findings::default();
        for number in 0..FINDINGS_PER_KIND_MAX + 1234 {
            findings.fatal(FindingKind::Drop, || (format!("{number:05}"), String::new()));
        }
        findings.note(FindingKind::Drop, || ("alone".to_owned(), String::new()));
        let report = findings.into_report();
        assert_eq!(report.findings().len(), FINDINGS_PER_KIND_MAX + 2);
        assert_eq!(report.findings()[FINDINGS_PER_KIND_MAX].message, "and 1,234 more like this");
    }

    #[test]
    fn thousands_are_set_apart() {
        let written: Vec<String> = [0, 12, 999, 1000, 1_234_567].into_iter().map(grouped).collect();
        assert_eq!(written, ["0", "12", "999", "1,000", "1,234,567"]);
    }
}
