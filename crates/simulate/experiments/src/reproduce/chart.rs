//! The two kinds of charts that the figures are drawn as.

use plot::{Chart, Kind, Series};

/// The words round a chart of lines.
pub(super) struct Labels<'a> {
    pub(super) title: &'a str,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
}

/// Lines over numbers, one a series.
pub(super) fn lines(labels: &Labels<'_>, series: impl IntoIterator<Item = (String, Vec<(f64, f64)>)>) -> Chart {
    let series = series.into_iter().map(|(name, values)| Series { name, values }).collect();
    let Labels { title, x, y } = *labels;
    Chart { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), kind: Kind::Lines(series) }
}

/// Bars, one group a row of the paper's table and one colour a series: `values[group]`.
pub(super) fn bars(
    title: &str,
    y: &str,
    groups: impl IntoIterator<Item = &'static str>,
    series: impl IntoIterator<Item = (String, Vec<f64>)>,
) -> Chart {
    let values = |values: Vec<f64>| values.into_iter().map(Some).collect();
    let series = series.into_iter().map(|(name, bars)| Series { name, values: values(bars) });
    let groups = groups.into_iter().map(str::to_owned).collect();
    Chart {
        title: title.to_owned(),
        x: String::new(),
        y: y.to_owned(),
        kind: Kind::Bars { groups, series: series.collect() },
    }
}
