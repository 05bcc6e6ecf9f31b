//! Maintenance marks: what is left alone, or to be done without.

use fabric::Topology;

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
                    "{}: no switch, link, group or host has this name; write a switch as sw1, a link as \"sw1:p1 -- sw2:p2\", or {WHOLE_FABRIC} for everything",
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

    /// Maintenance marks that are in force, as they were set.
    pub(super) fn marks_set(&self, now_s: u64) -> Result<Vec<Maintenance>, ArchiveError> {
        let mut marks = self.archive.maintenance()?;
        marks.retain(|mark| mark.until_s.is_none_or(|until_s| now_s < until_s));
        Ok(marks)
    }

    /// Maintenance marks that are in force; the mark of a group is one of each of its members as well.
    pub(super) fn marks(&self, now_s: u64) -> Result<Vec<Maintenance>, ArchiveError> {
        let marks = self.marks_set(now_s)?;
        let held = self.inner().held.clone();
        Ok(held.map_or(marks.clone(), |(_, plan)| with_members(&plan.topology, marks)))
    }
}

fn with_members(topology: &Topology, marks: Vec<Maintenance>) -> Vec<Maintenance> {
    let members = marks.iter().filter(|mark| topology.find_group(&mark.subject).is_some()).flat_map(|mark| {
        let names = Parts::named(topology, [mark.subject.as_str()]).names(topology);
        names.into_iter().map(|subject| Maintenance { subject, ..mark.clone() })
    });
    let members: Vec<Maintenance> = members.collect();
    marks.into_iter().chain(members).collect()
}

#[cfg(test)]
mod tests {
    use fabric::format::native::parse_native;

    use super::*;

    #[test]
    fn the_mark_of_a_group_is_one_of_each_member() {
        let text = "switches: {a: {}, b: {}, c: {}}\nlinks: [\"a:p1 -- b:p1\", \"b:p2 -- c:p1\", \"c:p2 -- a:p2\"]\n\
                    hosts: {h1: {mac: \"02:00:00:00:00:01\", port: \"a:h\"}, h2: {mac: \"02:00:00:00:00:02\", port: \"b:h\"}}\n\
                    groups: {feed: [c, \"a:p1 -- b:p1\"]}\n";
        let topology = parse_native("test.yaml", text).expect("a topology");
        let mark = |subject: &str, drain| Maintenance {
            id: 1,
            subject: subject.to_owned(),
            reason: "new cable".to_owned(),
            by: "ada".to_owned(),
            at_s: 0,
            until_s: None,
            drain,
        };
        let marked: Vec<(String, bool)> = with_members(&topology, vec![mark("feed", true), mark("a", false)])
            .into_iter()
            .map(|mark| (mark.subject, mark.drain))
            .collect();
        let expected = [("feed", true), ("a", false), ("c", true), ("a:p1 -- b:p1", true)];
        assert_eq!(marked, expected.map(|(subject, drain)| (subject.to_owned(), drain)));
    }
}
