//! Charts: lines over numbers, and bars by name.

use super::picture::{Anchor, Colour, Picture};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 54.0;
/// Height of a line of the legend, and of text.
const LEGEND_LINE: f64 = 18.0;
const TEXT: f64 = 12.0;
/// Marks on each axis, about.
const MARKS: f64 = 7.0;
/// Points of a line that are worth a dot each.
const DOTS_MAX: usize = 60;

/// A chart, drawn by [`Chart::draw`].
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What is along the bottom, with its unit.
    pub x: String,
    /// What is along the side, with its unit.
    pub y: String,
    /// How the values stand.
    pub kind: Kind,
}

/// How a chart's values stand.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A line a series through its points.
    Lines(Vec<Series<(f64, f64)>>),
    /// Groups of bars: `values[group]` of each series, none where there is no bar.
    Bars {
        /// What each group is called.
        groups: Vec<String>,
        /// The bars.
        series: Vec<Series<Option<f64>>>,
    },
}

/// Values that belong together.
#[derive(Clone, Debug)]
pub struct Series<T> {
    /// What the legend says.
    pub name: String,
    /// The values, in order.
    pub values: Vec<T>,
}

/// An axis from 0, or from the least value, to a round number.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// An axis that holds values; those that are not finite do not count.
    fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let (least, most) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (least, most) = if least > most { (0.0, 1.0) } else { (least, most) };
        let low = if least > 0.5 * most && least > 0.0 { least } else { least.min(0.0) };
        let span = if most > low { most - low } else { most.abs().max(1.0) };
        let power = 10_f64.powf((span / MARKS).log10().floor());
        let step = power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|k| k * power * MARKS >= span).unwrap_or(10.0);
        Self { low: (low / step).floor() * step, high: ((low + span) / step).ceil() * step, step }
    }

    /// The axis from 0.
    fn from_zero(values: impl Iterator<Item = f64> + Clone) -> Self {
        Self::over(values.chain([0.0]))
    }

    fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn marks(&self) -> impl Iterator<Item = f64> + '_ {
        let count = ((self.high - self.low) / self.step).round() as usize;
        (0..=count).map(|mark| self.low + mark as f64 * self.step)
    }

    fn label(&self, mark: f64) -> String {
        let digits = (-self.step.log10()).ceil().clamp(0.0, 9.0) as usize;
        // A zero has no sign.
        let mark = if mark.abs() < self.step / 2.0 { 0.0 } else { mark };
        format!("{mark:.digits$}")
    }
}

impl Chart {
    /// Draws the chart. Values that are not finite leave a gap.
    pub fn draw(&self) -> Picture {
        let names: Vec<&str> = match &self.kind {
            Kind::Lines(series) => series.iter().map(|series| series.name.as_str()).collect(),
            Kind::Bars { series, .. } => series.iter().map(|series| series.name.as_str()).collect(),
        };
        let legend = if names.len() > 1 { names.len() as f64 * LEGEND_LINE + 8.0 } else { 0.0 };
        let mut picture = Picture::new(WIDTH, HEIGHT + legend);
        picture.text((WIDTH / 2.0, 22.0), 15.0, Anchor::Middle, self.title.as_str());
        picture.text(((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0), TEXT, Anchor::Middle, self.x.as_str());
        picture.text_up((18.0, (TOP + HEIGHT - BOTTOM) / 2.0), TEXT, self.y.as_str());
        match &self.kind {
            Kind::Lines(series) => draw_lines(series, &mut picture),
            Kind::Bars { groups, series } => draw_bars(groups, series, &mut picture),
        }
        if names.len() > 1 {
            for (number, name) in names.iter().enumerate() {
                let y = HEIGHT + 8.0 + number as f64 * LEGEND_LINE;
                picture.fill((LEFT, y - 9.0), (14.0, 10.0), Colour::of_series(number), "");
                picture.text((LEFT + 22.0, y), TEXT, Anchor::Start, *name);
            }
        }
        picture
    }
}

fn place_x(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn place_y(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
}

fn draw_side(axis: &Axis, picture: &mut Picture) {
    for mark in axis.marks() {
        let y = place_y(axis.share(mark));
        picture.line(vec![(LEFT, y), (WIDTH - RIGHT, y)], Colour::PALE, 1.0, "");
        picture.text((LEFT - 8.0, y + 4.0), TEXT, Anchor::End, axis.label(mark));
    }
}

fn draw_lines(series: &[Series<(f64, f64)>], picture: &mut Picture) {
    let points = || series.iter().flat_map(|series| series.values.iter());
    let across = Axis::over(points().map(|(x, _)| *x));
    let up = Axis::from_zero(points().map(|(_, y)| *y));
    draw_side(&up, picture);
    for mark in across.marks() {
        let x = place_x(across.share(mark));
        picture.line(vec![(x, place_y(0.0)), (x, place_y(0.0) + 5.0)], Colour::GREY, 1.0, "");
        picture.text((x, place_y(0.0) + 18.0), TEXT, Anchor::Middle, across.label(mark));
    }
    picture.line(vec![(LEFT, place_y(0.0)), (WIDTH - RIGHT, place_y(0.0))], Colour::GREY, 1.0, "");
    for (number, series) in series.iter().enumerate() {
        let colour = Colour::of_series(number);
        for run in series.values.split(|(x, y)| !x.is_finite() || !y.is_finite()) {
            let place = |(x, y): &(f64, f64)| (place_x(across.share(*x)), place_y(up.share(*y)));
            if run.len() > 1 {
                picture.line(run.iter().map(place).collect(), colour, 1.6, &series.name);
            }
            if series.values.len() <= DOTS_MAX {
                for point in run {
                    let hint = format!("{}: {}, {}", series.name, point.0, point.1);
                    picture.disc(place(point), 3.5, colour, &hint);
                }
            }
        }
    }
}

fn draw_bars(groups: &[String], series: &[Series<Option<f64>>], picture: &mut Picture) {
    let up = Axis::from_zero(series.iter().flat_map(|series| series.values.iter().flatten().copied()));
    draw_side(&up, picture);
    let group_width = 1.0 / groups.len().max(1) as f64;
    let bar_width = group_width * 0.8 / series.len().max(1) as f64;
    let zero = place_y(up.share(0.0));
    for (index, group) in groups.iter().enumerate() {
        let left = (index as f64 + 0.1) * group_width;
        // Long names would run into each other: every second one hangs lower.
        let drop = if groups.len() > 6 && index % 2 == 1 { 30.0 } else { 16.0 };
        picture.text((place_x(left + 0.4 * group_width), place_y(0.0) + drop), TEXT, Anchor::Middle, group.as_str());
        for (number, series) in series.iter().enumerate() {
            let Some(value) = series.values.get(index).copied().flatten().filter(|value| value.is_finite()) else {
                continue;
            };
            let x = place_x(left + number as f64 * bar_width);
            let y = place_y(up.share(value));
            let size = (place_x(left + (number as f64 + 0.92) * bar_width) - x, (zero - y).abs());
            let hint = format!("{group}, {}: {value}", series.name);
            picture.fill((x, y.min(zero)), size, Colour::of_series(number), &hint);
        }
    }
    picture.line(vec![(LEFT, zero), (WIDTH - RIGHT, zero)], Colour::GREY, 1.0, "");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_hold_their_values_with_few_round_marks() {
        for values in
            [vec![0.0, 63.8], vec![0.001, 0.0042], vec![5.0], vec![0.0], vec![], vec![-3.0, 8.0], vec![990.0, 1000.0]]
        {
            let axis = Axis::over(values.iter().copied());
            let marks: Vec<f64> = axis.marks().collect();
            assert!((2..=12).contains(&marks.len()), "{values:?}: {marks:?}");
            assert!(values.iter().all(|value| (-1e-9..=1.0 + 1e-9).contains(&axis.share(*value))), "{values:?}");
            let labels: Vec<String> = marks.iter().map(|mark| axis.label(*mark)).collect();
            assert!(labels.windows(2).all(|pair| pair[0] != pair[1]), "{values:?}: {labels:?}");
        }
    }

    #[test]
    fn a_gap_is_no_point() {
        let values = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (3.0, 4.0)];
        let series = vec![Series { name: "a".to_owned(), values }];
        let chart = Chart { title: String::new(), x: "x".to_owned(), y: "y".to_owned(), kind: Kind::Lines(series) };
        let svg = chart.draw().to_svg();
        assert!(!svg.contains("NaN") && svg.matches("<circle").count() == 3, "{svg}");
    }
}
