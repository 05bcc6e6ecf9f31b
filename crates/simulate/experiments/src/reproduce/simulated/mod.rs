//! The figures by the simulator: one file a table or figure, over the benchmarks and traces that they share.

mod eicker;
mod fig4;
mod fig5;
mod fig7;
mod fig8;
mod measure;
mod miura;
mod miura_fig7;
mod npb;
mod table2;
mod table3;

use super::{Figure, Replay, Reproduction, event::Events};
use crate::Error;

/// Reproduces a figure in simulated time.
///
/// # Errors
/// [`Error::Request`], if a trace does not read; all others are faults of this crate.
pub(super) fn reproduce(figure: Figure, replay: &Replay<'_>, events: Events<'_>) -> Result<Reproduction, Error> {
    match figure {
        Figure::Table2 => table2::reproduce(),
        Figure::Table3 => table3::reproduce(),
        Figure::Fig4 => fig4::reproduce(),
        Figure::Fig5 => fig5::reproduce(),
        Figure::Fig7 => fig7::reproduce(),
        Figure::Fig8 => fig8::reproduce(fig8::Version::English, replay, events),
        Figure::JaFig5 => fig7::reproduce_ja(),
        Figure::JaFig6 => fig8::reproduce(fig8::Version::Japanese, replay, events),
        Figure::Eicker144 => eicker::prototype(),
        Figure::Eicker528 => eicker::forecast(),
        Figure::MiuraFig5 => miura::fig_5(),
        Figure::MiuraTable2 => miura::table_2(),
        Figure::MiuraFig6 => miura::fig_6(),
        Figure::MiuraFig7 => miura_fig7::reproduce(replay, events),
    }
}
