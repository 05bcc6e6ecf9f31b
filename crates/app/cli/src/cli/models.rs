//! Where models of switches are.

use std::path::PathBuf;

use clap::Args;

/// Models of switches beside the built-in ones.
#[derive(Args)]
pub(crate) struct OwnModels {
    /// Folder of model files, as `enrol` writes them; `models` beside the topology unless given.
    #[arg(long, value_name = "DIR")]
    pub(crate) models: Option<PathBuf>,
}
