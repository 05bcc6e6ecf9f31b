//! Labs of one name, one after the other.

use std::{fs, io, path::PathBuf};

use fabric::{Plan, format::plan::write_plan};
use lab::{
    Lab, LabError, LabOptions,
    measure::{Load, Measurement, measure},
};

use super::{
    super::{Event, LabSettings, event::Events},
    mpi,
};
use crate::{Error, error::OnFile as _};

/// Lab and flow level agree within this.
pub(super) const CLOSE: f64 = 0.15;

/// How labs are built, and who hears of it.
pub(super) struct Labs<'a> {
    pub(super) settings: LabSettings<'a>,
    pub(super) events: Events<'a>,
}

impl Labs<'_> {
    /// Builds a plan's fabric, does something with it, and takes it down whether that succeeds or not.
    ///
    /// # Errors
    /// [`Error::Lab`], if the fabric cannot be built or taken down, and what `work` returns.
    pub(super) fn with<T>(&self, plan: &Plan, work: impl FnOnce(&Lab) -> Result<T, Error>) -> Result<T, Error> {
        let lab = self.up(plan)?;
        let done = work(&lab);
        lab.down()?;
        done
    }

    fn up(&self, plan: &Plan) -> Result<Lab, Error> {
        let mut text = Vec::new();
        write_plan(plan, &mut text).with_context(|| "write plan".to_owned())?;
        let options = LabOptions {
            rate_bps: self.settings.rate_bps,
            plan_text: Some(String::from_utf8_lossy(&text).into_owned()),
            ..LabOptions::new(self.settings.name)
        };
        let lab = Lab::up(plan, &options, &mut |progress| (self.events)(Event::Building(progress)));
        (self.events)(Event::Ended);
        Ok(lab?)
    }

    /// Runs a load in a lab.
    ///
    /// # Errors
    /// [`Error::Lab`], if it stalls or cannot be set up.
    pub(super) fn measure(&self, lab: &Lab, load: &Load) -> Result<Measurement, Error> {
        let tell = |part| (self.events)(Event::Measuring { pattern: &load.pattern, part });
        tell(0.0);
        let measured = measure(lab, load, &mut { tell });
        (self.events)(Event::Ended);
        Ok(measured?)
    }
}

/// What [`take_down`] could not remove.
#[derive(Debug)]
pub enum Leftover {
    /// The folder of MPI programs.
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The lab.
    Lab(LabError),
}

/// Ends and removes what a request has under way in labs of this name: the lab, with all programs in it, and then the folder
/// that MPI programs write to. The request fails, if it still runs. It is no fault if nothing is there.
pub fn take_down(name: &str) -> Vec<Leftover> {
    // First what still writes to the folder is ended.
    let lab = lab::down(name).err().map(Leftover::Lab);
    let path = mpi::folder(name);
    let error = fs::remove_dir_all(&path).err().filter(|error| error.kind() != io::ErrorKind::NotFound);
    let folder = error.map(|error| Leftover::Folder { path, error });
    folder.into_iter().chain(lab).collect()
}
