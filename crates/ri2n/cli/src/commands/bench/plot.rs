//! The rate of a transfer over time, drawn as \[RI2N\] Fig. 4.

use super::rows::Finished;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 320.0;
/// Room for the labels of the axes.
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 36.0;
const TOP: f64 = 12.0;
/// Labels on each axis, about.
const LABELS: f64 = 8.0;

/// An SVG picture of MB/s over seconds since the start.
pub(super) fn svg(rows: &Finished) -> String {
    let seconds = rows.bytes.len() as f64 * rows.step_s();
    let rates: Vec<f64> = rows.bytes.iter().map(|bytes| *bytes as f64 / rows.step_s() / 1e6).collect();
    let highest = rates.iter().copied().fold(1.0, f64::max) * 1.05;
    let x = |second: f64| LEFT + second / seconds.max(1e-9) * (WIDTH - LEFT - 10.0);
    let y = |rate: f64| HEIGHT - BOTTOM - rate / highest * (HEIGHT - BOTTOM - TOP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for second in marks(seconds) {
        let at = x(second);
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{second}</text>",
            y(0.0),
            HEIGHT - BOTTOM + 16.0
        );
    }
    for rate in marks(highest) {
        let at = y(rate);
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{rate}</text>",
            WIDTH - 10.0,
            LEFT - 6.0,
            at + 4.0
        );
    }
    out.push_str("<polyline fill=\"none\" stroke=\"#06c\" stroke-width=\"1\" points=\"");
    for (row, rate) in rates.iter().enumerate() {
        let _ = write!(out, "{:.1},{:.1} ", x((row as f64 + 0.5) * rows.step_s()), y(*rate));
    }
    let _ = write!(
        out,
        "\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">seconds</text>\n\
         <text x=\"14\" y=\"{:.1}\" transform=\"rotate(-90 14 {:.1})\" text-anchor=\"middle\">MB/s</text>\n</svg>\n",
        WIDTH / 2.0,
        HEIGHT - 4.0,
        HEIGHT / 2.0,
        HEIGHT / 2.0
    );
    out
}

/// Round numbers from zero to `end`.
fn marks(end: f64) -> impl Iterator<Item = f64> {
    let rough = (end / LABELS).max(1e-9);
    let unit = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * unit).find(|step| *step >= rough).unwrap_or(rough);
    (0..=(end / step) as u32).map(move |index| (f64::from(index) * step * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        assert_eq!(marks(12.0).collect::<Vec<_>>(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        assert_eq!(marks(250.0).last(), Some(250.0));
    }

    #[test]
    fn every_row_is_drawn() {
        let picture = svg(&Finished { began_s: 5.0, bytes: vec![1_000_000, 0, 2_000_000] });
        let points = picture.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(points.split_whitespace().count(), 3);
        assert!(picture.ends_with("</svg>\n"));
    }
}
