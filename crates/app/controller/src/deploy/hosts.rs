//! Hosts that tag their own frames, in a change under traffic: what they hold between two steps, and the program that hands it out.
//!
//! ```text
//!   PROGRAM --config FILE    ready, flip: one configuration for all hosts (`espalier tagger attach`, `espalier tagger run`)
//!   PROGRAM --plan FILE      settle: the plan, with whatever options the hosts have; on the way back the old one
//! ```
//! The program ends with status 0 once every host holds it. It may be asked for what hosts hold already.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use fabric::{FlowControl, Plan, Topology, format::plan::write_plan};
use rollout::deploy::Reason;
use tagging::{
    Config,
    config::{Failover, PAIRS_MAX},
    interim,
};
use transition::FabricState;

use crate::{
    CancellationToken, Error,
    number::fresh_number,
    program::{ProgramFault, run_program},
};

/// How long the program may take.
const PROGRAM_MAX: Duration = Duration::from_secs(600);

/// What hosts hold before, between or after the steps of a change under traffic.
#[derive(Clone, Debug)]
pub enum HostsState {
    /// A plan.
    Plan(Arc<Plan>),
    /// What they share between two steps.
    Interim(Config),
}

impl HostsState {
    pub(super) fn plan(plan: &Plan) -> Self {
        Self::Plan(Arc::new(plan.clone()))
    }

    /// The state of hosts on the way to a plan. Where full buffers wait, frames stay in their VLANs even if a path fails: other VLANs are
    /// proven free of deadlock by one plan alone.
    ///
    /// # Errors
    /// [`Error::Request`], if a configuration cannot list so many pairs.
    pub(super) fn between(topology: &Topology, state: &FabricState, next: &Plan) -> Result<Self, Error> {
        let failover = match next.policy.flow_control {
            FlowControl::None => Failover::Any,
            FlowControl::Pause | FlowControl::Pfc(_) => Failover::None,
        };
        let tables = state.tables.as_deref().unwrap_or_default();
        let config = interim::config(topology, &state.devices, tables, failover);
        if config.pairs.len() > PAIRS_MAX {
            return Err(Error::Request(format!(
                "hosts change their tables in {} pairs, and their configuration lists at most {PAIRS_MAX}; deploy without \
                 --since, or plan both with --tagging source",
                config.pairs.len()
            )));
        }
        Ok(Self::Interim(config))
    }

    /// Has the program hand it out.
    ///
    /// # Errors
    /// [`Reason::Hosts`] or [`Reason::Interrupted`].
    pub(super) fn hand_out(&self, program: &[String], token: &CancellationToken) -> Result<(), Reason> {
        let written = Folder::new().and_then(|folder| Ok((self.write(&folder.0)?, folder)));
        let ((option, file), _folder) =
            written.map_err(|error| Reason::Hosts(format!("the file for them could not be written: {error}")))?;
        let words: Vec<String> =
            program.iter().cloned().chain([option.to_owned(), file.display().to_string()]).collect();
        run_program(&words, "", PROGRAM_MAX, &|| token.is_cancelled()).map_err(|fault| match fault {
            ProgramFault::Stopped(_) => {
                token.take();
                Reason::Interrupted
            }
            fault => Reason::Hosts(fault.to_string()),
        })
    }

    fn write(&self, folder: &Path) -> io::Result<(&'static str, PathBuf)> {
        match self {
            Self::Plan(plan) => {
                let file = folder.join("plan.json");
                write_plan(plan, &mut io::BufWriter::new(fs::File::create(&file)?))?;
                Ok(("--plan", file))
            }
            Self::Interim(config) => {
                let file = folder.join("tagger.conf");
                fs::write(&file, config.text())?;
                Ok(("--config", file))
            }
        }
    }
}

/// A folder that nobody else reads, and that is gone with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("espalier-hosts-{:016x}", fresh_number()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
