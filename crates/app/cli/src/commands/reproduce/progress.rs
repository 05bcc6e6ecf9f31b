//! Events of a reproduction as progress bars and lines on standard error.

use std::cell::RefCell;

use experiments::reproduce::Event;
use indicatif::ProgressBar;

use super::super::bars;

/// The bar of what is under way, if anything is.
#[derive(Default)]
pub(super) struct Progress {
    bar: RefCell<Option<ProgressBar>>,
}

impl Progress {
    /// Shows an event.
    pub(super) fn show(&self, event: Event<'_>) {
        match event {
            Event::Building(progress) => bars::show_building(&self.bar(bars::building), progress),
            Event::Measuring { pattern, part } => {
                bars::show_measuring(&self.bar(|| bars::measuring(pattern)), part);
            }
            Event::Running { title, elapsed, stage } => {
                let bar = self.bar(ProgressBar::new_spinner);
                bar.set_message(format!("{title}, {} s: {stage}", elapsed.as_secs()));
                bar.tick();
            }
            Event::Ended => self.bar.take().iter().for_each(ProgressBar::finish_and_clear),
            Event::FoldedTrace { benchmark, path } => {
                eprintln!("espalier: {} is not there; the folded trace of {benchmark} is taken", path.display());
            }
            Event::MpirunLeft(error) => {
                let causes: Vec<String> = anyhow::Chain::new(error).map(ToString::to_string).collect();
                eprintln!("espalier: mpirun is left: {}", causes.join(": "));
            }
        }
    }

    /// The bar, made if there is none.
    fn bar(&self, new: impl FnOnce() -> ProgressBar) -> ProgressBar {
        self.bar.borrow_mut().get_or_insert_with(new).clone()
    }
}
