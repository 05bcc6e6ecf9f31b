//! Summaries and reports as JSON, for programs that read what Espalier prints. Field names are stable.

use serde_json::{Map, Value, json};

use crate::{FailoverSummary, Finding, PartCoverage, PathSummary, Report, Summary};

/// A summary as an object, one field for each figure.
///
/// Figures that are no numbers, which no finished plan has, become `null`.
pub fn summary_json(summary: &Summary) -> Value {
    let fields = summary_fields(summary).into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// A report as a list of findings, worst first.
pub fn report_json(report: &Report) -> Value {
    Value::Array(report.findings().iter().map(finding_json).collect())
}

/// A finding as an object of `severity`, `kind`, `subject` and `message`.
pub fn finding_json(finding: &Finding) -> Value {
    let Finding { severity, kind, subject, message } = finding;
    json!({ "severity": severity.to_string(), "kind": kind.name(), "subject": subject, "message": message })
}

/// A load: a whole number where it is one, as a count of pairs always is.
pub fn load_json(load: f64) -> Value {
    const EXACT_MAX: f64 = (1_u64 << 53) as f64;
    if load.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&load) { json!(load as u64) } else { json!(load) }
}

/// The fields of a summary in the order in which people read them.
pub(super) fn summary_fields(summary: &Summary) -> Vec<(&'static str, Value)> {
    let Summary {
        switches,
        hosts,
        links,
        vlans,
        lanes,
        avg_switches_per_path,
        avg_hops,
        max_switches_per_path,
        max_channel_load,
        max_channel_time,
        load_bound,
        load_gap,
        deadlock_free,
        fdb_entries_max,
        fdb_entries_total,
        paths,
    } = summary;
    let mut fields = vec![
        ("switches", json!(switches)),
        ("hosts", json!(hosts)),
        ("links", json!(links)),
        ("vlans", json!(vlans)),
        ("lanes", json!(lanes)),
        ("avg_switches_per_path", json!(avg_switches_per_path)),
        ("avg_hops", json!(avg_hops)),
        ("max_switches_per_path", json!(max_switches_per_path)),
        ("max_channel_load", load_json(*max_channel_load)),
        ("max_channel_time", load_json(*max_channel_time)),
        ("load_bound", json!(load_bound)),
        ("load_gap", json!(load_gap)),
        ("deadlock_free", json!(deadlock_free)),
        ("fdb_entries_max", json!(fdb_entries_max)),
        ("fdb_entries_total", json!(fdb_entries_total)),
    ];
    fields.extend(paths.iter().flat_map(path_fields));
    fields
}

/// The fields of path sets.
fn path_fields(paths: &PathSummary) -> [(&'static str, Value); 7] {
    let PathSummary {
        paths_max,
        permutation_mean,
        permutation_mean_bound,
        permutation_share_mean,
        permutation_worst,
        permutation_worst_bound,
        permutation_share_worst,
    } = paths;
    [
        ("paths_max", json!(paths_max)),
        ("permutation_mean", json!(permutation_mean)),
        ("permutation_mean_bound", json!(permutation_mean_bound)),
        ("permutation_share_mean", json!(permutation_share_mean)),
        ("permutation_worst", json!(permutation_worst)),
        ("permutation_worst_bound", json!(permutation_worst_bound)),
        ("permutation_share_worst", json!(permutation_share_worst)),
    ]
}

/// The figures of a failover as an object.
pub fn failover_json(summary: &FailoverSummary) -> Value {
    let fields = failover_fields(summary).into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// The fields of a failover's summary.
pub(super) fn failover_fields(summary: &FailoverSummary) -> Vec<(&'static str, Value)> {
    let FailoverSummary { links_covered, links_dividing, switches, groups, drained, max_channel_time, .. } = summary;
    let mut fields = vec![("links_covered", json!(links_covered)), ("links_dividing", json!(links_dividing))];
    if let Some(PartCoverage { covered, dividing }) = switches {
        fields.extend([("switches_covered", json!(covered)), ("switches_dividing", json!(dividing))]);
    }
    if let Some(PartCoverage { covered, dividing }) = groups {
        fields.extend([("groups_covered", json!(covered)), ("groups_dividing", json!(dividing))]);
    }
    fields.extend([
        ("drained", json!(drained)),
        ("max_channel_time", load_json(*max_channel_time)),
        ("vlans_extra", json!(summary.vlans_extra)),
        ("fdb_entries_extra", json!(summary.fdb_entries_extra)),
    ]);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FindingKind, Severity};

    #[test]
    fn findings_keep_their_order_and_names() {
        let finding = |severity, kind, subject: &str| Finding {
            severity,
            kind,
            subject: subject.to_owned(),
            message: "a \"quoted\" word".to_owned(),
        };
        let report = Report::new(vec![
            finding(Severity::Note, FindingKind::ForeignEntry, "sw1"),
            finding(Severity::Fatal, FindingKind::DependencyCycle, "lane 0"),
        ]);
        let expected = json!([
            {"severity": "fatal", "kind": "dependency-cycle", "subject": "lane 0", "message": "a \"quoted\" word"},
            {"severity": "note", "kind": "foreign-entry", "subject": "sw1", "message": "a \"quoted\" word"},
        ]);
        assert_eq!(report_json(&report), expected);
    }
}
