//! Why something cannot be rendered or read.

use std::io;

use thiserror::Error;

/// Why a plan cannot be rendered.
#[derive(Debug, Error)]
pub enum RenderError {
    /// A target that does not exist.
    #[error("{name:?} is no target: {known}, or auto for what each switch's model speaks")]
    UnknownTarget {
        /// The name as given.
        name: String,
        /// The names of all targets.
        known: String,
    },
    /// A switch whose language is not known.
    #[error(
        "switch {switch} ({model}): no driver writes the language of this model; name a target with --target, or a model \
         that has one"
    )]
    NoSyntax {
        /// The switch.
        switch: String,
        /// Its model.
        model: String,
    },
    /// A switch that the plan does not have.
    #[error("the plan has no switch {name}")]
    UnknownSwitch {
        /// The name as given.
        name: String,
    },
    /// The language has no words for it.
    #[error("switch {switch}, port {port}: {target} cannot express {what}; {way_out}")]
    Inexpressible {
        /// The switch.
        switch: String,
        /// The port.
        port: String,
        /// The target.
        target: &'static str,
        /// What it cannot express.
        what: String,
        /// What would work.
        way_out: &'static str,
    },
    /// The language has no such port name.
    #[error(
        "switch {switch}: {target} has no port {port:?}; its ports are named like {like}: name them so in the topology"
    )]
    PortName {
        /// The switch.
        switch: String,
        /// The port.
        port: String,
        /// The target.
        target: &'static str,
        /// An example.
        like: &'static str,
    },
    /// The old and the new do not fit into the tables at once.
    #[error(
        "switch {switch} ({model}) would hold {need} {what} while both plans are there, and holds {limit}; render the new \
         plan in full (without --since) and load it with the ports drained"
    )]
    NoRoom {
        /// The switch.
        switch: String,
        /// Its model.
        model: String,
        /// Of what.
        what: &'static str,
        /// How many are needed.
        need: usize,
        /// How many fit.
        limit: usize,
    },
    /// The folder cannot be written to.
    #[error("{file}: {source}")]
    Write {
        /// The file, relative to the folder.
        file: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// What is wrong with a configuration text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("{file}:{line}: {message}")]
pub struct ParseError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}
