//! Maintenance marks: what is left alone, or to be done without.

use super::{Manager, Refused, WHOLE_FABRIC};
use crate::{archive::ArchiveError, core::parts::Parts, documents::Maintenance};

impl Manager {
    /// Sets a maintenance mark.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn set_maintenance(&self, mark: Maintenance) -> Result<Maintenance, Refused> {
        if let Some((_, plan)) = &self.inner().held {
            let topology = &plan.topology;
            let is_known = mark.subject == WHOLE_FABRIC
                || !Parts::named(topology, [mark.subject.as_str()]).is_empty()
                || topology.hosts().iter().any(|host| host.name == mark.subject);
            if !is_known {
                return Err(Refused::Bad(format!(
                    "{}: no switch, link or host has this name; write a switch as sw1, a link as \"sw1:p1 -- sw2:p2\", or {WHOLE_FABRIC} for everything",
                    mark.subject
                )));
            }
        }
        if mark.drain && mark.subject == WHOLE_FABRIC {
            return Err(Refused::Bad("the whole fabric cannot be drained; name switches or links".to_owned()));
        }
        let mark = self.archive.add_maintenance(&mark)?;
        self.audit(&mark.by, &format!("set maintenance {} of {}: {}", mark.id, mark.subject, mark.reason))?;
        self.look_at_once();
        Ok(mark)
    }

    /// Removes a maintenance mark.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn remove_maintenance(&self, id: u64, by: &str) -> Result<(), Refused> {
        if !self.archive.remove_maintenance(id)? {
            return Err(Refused::NotFound(format!("there is no maintenance mark {id}; espalierd status lists them")));
        }
        self.audit(by, &format!("removed maintenance {id}"))?;
        self.look_at_once();
        Ok(())
    }

    /// Maintenance marks that are in force.
    pub(super) fn marks(&self, now_s: u64) -> Result<Vec<Maintenance>, ArchiveError> {
        let mut marks = self.archive.maintenance()?;
        marks.retain(|mark| mark.until_s.is_none_or(|until_s| now_s < until_s));
        Ok(marks)
    }
}
