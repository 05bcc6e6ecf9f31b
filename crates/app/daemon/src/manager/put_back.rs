//! Switches that are put back to the plan, once the daemon has decided so or because somebody asked for it. Which ones is kept until it is
//! done: a daemon that is killed meanwhile goes on after its next start.

use std::collections::BTreeSet;

use super::{Inner, Manager, Refused};
use crate::archive::ArchiveError;

impl Manager {
    /// Has a switch put back to the plan, whoever changed it.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn ask_back(&self, switch: &str, by: &str) -> Result<(), Refused> {
        let mut inner = self.inner();
        let Some((_, plan)) = &inner.held else {
            return Err(Refused::Conflict("no plan is deployed yet; propose one: espalierd propose PLAN".to_owned()));
        };
        if plan.topology.find_switch(switch).is_none() {
            return Err(Refused::NotFound(format!("{switch}: the plan has no switch of this name")));
        }
        let mut due = inner.due_back.clone();
        due.insert(switch.to_owned());
        self.set_due_back(&mut inner, due)?;
        drop(inner);
        self.audit(by, &format!("asked to put {switch} back to the plan"))?;
        self.due.notify_all();
        Ok(())
    }

    /// Takes that switches are being put back.
    ///
    /// # Errors
    /// [`ArchiveError`]; then they must not be.
    pub fn putting_back(&self, switches: &BTreeSet<String>) -> Result<(), ArchiveError> {
        let now_s = self.now_s();
        let mut inner = self.inner();
        let due = inner.due_back.union(switches).cloned().collect();
        self.set_due_back(&mut inner, due)?;
        for switch in switches {
            inner.drift.put_back(now_s, switch);
            inner.put_back.remove(switch);
        }
        Ok(())
    }

    /// Takes that this has ended, well or not.
    ///
    /// # Errors
    /// [`ArchiveError`]; it is not repeated before the daemon is started again.
    pub fn put_back_ended(&self, switches: &BTreeSet<String>) -> Result<(), ArchiveError> {
        let mut inner = self.inner();
        inner.due_back.retain(|switch| !switches.contains(switch));
        self.archive.keep_due_back(&inner.due_back)
    }

    fn set_due_back(&self, inner: &mut Inner, due: BTreeSet<String>) -> Result<(), ArchiveError> {
        if inner.due_back != due {
            self.archive.keep_due_back(&due)?;
            inner.due_back = due;
        }
        Ok(())
    }
}
