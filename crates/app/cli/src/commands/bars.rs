//! Progress bars of labs, on standard error.

use indicatif::{ProgressBar, ProgressStyle};
use lab::{Progress, measure::Pattern};

/// Steps of the bar of a measurement.
const MEASURING_STEPS: u64 = 1000;

/// A bar of a lab that is being built.
pub(super) fn building() -> ProgressBar {
    bar(0, "{msg:20} {wide_bar} {pos}/{len}")
}

/// Shows how far the building is.
pub(super) fn show_building(bar: &ProgressBar, progress: Progress) {
    bar.set_message(progress.step.to_string());
    bar.set_length(progress.total as u64);
    bar.set_position(progress.done as u64);
}

/// A bar of traffic that is being measured.
pub(super) fn measuring(pattern: &Pattern) -> ProgressBar {
    let bar = bar(MEASURING_STEPS, "{msg:20} {wide_bar} {percent} %");
    bar.set_message(pattern.to_string());
    bar
}

/// Shows the part of all bytes that has arrived, 0 to 1.
pub(super) fn show_measuring(bar: &ProgressBar, part: f64) {
    bar.set_position((part * MEASURING_STEPS as f64) as u64);
}

fn bar(length: u64, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style)
}
