//! Paths that are longer than the plan allows.
//!
//! ```text
//!   --max-hops 2:   h0─[s0]──▶[s1]──▶[s2]──▶[s3]─h3      h0 -> h3: fatal, 3 hops
//! ```

use fabric::{FindingKind, HostId};

use crate::{
    findings::{Findings, counted},
    state::FabricState,
};

/// The senders in one VLAN whose frames to one receiver cross more links between switches than the plan allows.
pub(crate) struct LongPaths {
    destination: HostId,
    /// The sender with the longest path, and its hops.
    longest: Option<(HostId, u32)>,
    senders: usize,
}

impl LongPaths {
    pub(crate) fn to(destination: HostId) -> Self {
        Self { destination, longest: None, senders: 0 }
    }

    /// Counts the path of one sender's frames, which arrive after so many links between switches.
    pub(crate) fn see(&mut self, state: &FabricState<'_>, source: HostId, hops: u32) {
        if state.plan.policy.hops_max.is_some_and(|limit| hops > limit) {
            self.senders += 1;
            if self.longest.is_none_or(|(_, longest)| hops > longest) {
                self.longest = Some((source, hops));
            }
        }
    }

    /// The same, if there are any.
    pub(crate) fn if_any(self) -> Option<Self> {
        (self.senders > 0).then_some(self)
    }
}

/// One finding for each receiver and VLAN with paths that are too long.
pub(crate) fn judge(state: &FabricState<'_>, long: &[LongPaths], findings: &mut Findings) {
    let Some(limit) = state.plan.policy.hops_max else { return };
    for LongPaths { destination, longest, senders } in long {
        let Some((source, hops)) = *longest else { continue };
        let others = match senders {
            1 => String::new(),
            more => format!("; so do frames from {}", counted(more - 1, "other host")),
        };
        findings.fatal(FindingKind::TooManyHops, || {
            let subject = format!("{} -> {}", state.host_name(source), state.host_name(*destination));
            let links = counted(hops as usize, "link");
            (subject, format!("the frame crosses {links} between switches, where --max-hops allows {limit}{others}"))
        });
    }
}
