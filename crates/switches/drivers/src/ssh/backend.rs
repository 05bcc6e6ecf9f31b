//! What a deployment asks of a switch by its command line, whichever kind of command line it is.

use std::time::Duration;

use switch_model::{
    SwitchConfig,
    driver::{Fault, Reading},
    mark::Mark,
};

/// How a switch is spoken to.
pub(super) trait CliBackend: Send {
    /// Reads the whole state: the ports that it was told of, and behind them any others that it finds.
    fn read(&mut self) -> Result<(SwitchConfig, Option<Mark>), Fault>;
    /// Includes ports behind those that it was told of.
    fn include(&mut self, names: &[String]);
    /// What it calls itself, if it has said so.
    fn called(&self) -> Option<&str> {
        None
    }
    /// Leaves a mark.
    fn mark(&mut self, mark: Mark) -> Result<(), Fault>;
    /// Has it go back from `after` to what it holds, `before`, unless it is told otherwise in time; how, if it can.
    fn arm(&mut self, before: &Reading, after: &SwitchConfig, guard: Duration) -> Result<Option<Armed>, Fault>;
    /// Whether it has gone back, all the way.
    fn has_returned(&mut self) -> Result<bool, Fault>;
    /// Tells it to stay as it is.
    fn disarm(&mut self) -> Result<(), Fault>;
    /// Brings it from one state to another.
    fn write(&mut self, before: &SwitchConfig, after: &SwitchConfig) -> Result<(), Fault>;
    /// What would be said to leave a mark, if one is given, and to bring it from one state to another.
    fn rehearse(&self, before: &SwitchConfig, after: &SwitchConfig, mark: Option<Mark>) -> Result<Vec<String>, Fault>;
    /// Makes the running state the one that it starts with.
    fn save(&mut self) -> Result<(), Fault>;
}

/// A switch that will go back by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Armed {
    /// When it begins to, at the latest, counted from now.
    pub(super) after: Duration,
    /// How long that may take, until it can be asked again.
    pub(super) takes_max: Duration,
}
