//! The papers' tables and figures from real plans, beside the printed numbers.
//!
//! ```text
//!   network     the papers' cablings and plans ─┐
//!   simulated/  their benchmarks and traces ────┼─▶ one file a table or figure ─▶ Reproduction: table, statements,
//!   in_lab/     real programs in namespaces ────┘                                  notes, values, chart
//! ```

mod chart;
mod event;
mod figure;
mod in_lab;
mod network;
mod reproduction;
mod request;
mod simulated;

pub use self::{
    event::Event,
    figure::Figure,
    in_lab::{Leftover, take_down},
    reproduction::{Comparison, Reproduction, Source, Statement},
    request::{LabSettings, Replay, Request, Testbed},
};
use crate::Error;

/// Reproduces a figure. `events` is called from the calling thread.
///
/// In the lab it builds one fabric after the other under the name of the request, and takes each down. Another thread may
/// stop that by [`take_down`]: the request then fails. While a lab is being built, SIGINT and SIGTERM are caught, see
/// [`Lab::up`](lab::Lab::up).
///
/// # Errors
/// [`Error::Unavailable`], if the lab of this machine cannot do it; [`Error::Request`], if a trace does not read. All others
/// are faults of this crate or of the machine.
pub fn reproduce(request: &Request<'_>, events: &dyn Fn(Event<'_>)) -> Result<Reproduction, Error> {
    match &request.testbed {
        Testbed::Simulator => simulated::reproduce(request.figure, &request.replay, events),
        Testbed::Lab(settings) => in_lab::reproduce(request.figure, settings, events),
    }
}
