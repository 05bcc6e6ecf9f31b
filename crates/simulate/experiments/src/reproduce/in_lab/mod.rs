//! The figures in the lab: real kernels and real programs on the same plans, beside what is simulated.
//!
//! Cables are slow, so that two processors carry a whole fabric; rates are told as shares of a cable, and as they would be
//! on one of 1 Gbit/s.

mod fig7;
mod fig8;
mod hpcc;
mod integer_sort;
mod labs;
mod miura_fig6;
mod mpi;

use self::labs::Labs;
pub use self::labs::{Leftover, take_down};
use super::{Figure, LabSettings, Reproduction, event::Events};
use crate::{Error, error::Unavailable};

/// Reproduces a figure on this machine's kernel.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Lab`], [`Error::Mpi`], or a fault of this crate.
pub(super) fn reproduce(figure: Figure, settings: &LabSettings<'_>, events: Events<'_>) -> Result<Reproduction, Error> {
    let labs = Labs { settings: *settings, events };
    match figure {
        Figure::Fig7 => fig7::reproduce(&labs),
        Figure::Fig8 => match mpi::missing(&fig8::PROGRAMS) {
            Some(program) => Err(Unavailable::NoProgram { program }.into()),
            None => fig8::reproduce(&labs),
        },
        Figure::MiuraFig6 => miura_fig6::reproduce(&labs),
        _ => {
            let in_lab: Vec<&str> = Figure::all().filter(|figure| figure.is_in_lab()).map(Figure::name).collect();
            Err(Unavailable::SimulatedOnly { in_lab: in_lab.join(", ") }.into())
        }
    }
}
