//! Which members of a switch's LAGs are active, as the switch program reads it: maps that LACP alone writes.

use fabric::LagNumber;
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::pinned;
use crate::{
    LabError,
    error::Context,
    layout::{Layout, SwitchSite},
    speaker::MemberUse,
    table::{LAG_MEMBERS_MAX, LagPart, SwitchTable},
};

/// A LAG of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LagSite {
    /// Its number on the switch.
    pub(crate) number: LagNumber,
    /// The position of its port.
    pub(crate) port: usize,
    /// The positions of its members' ports.
    pub(crate) members: Vec<usize>,
}

/// The LAGs of a switch that have members, in port order.
pub(crate) fn lags(site: &SwitchSite) -> Vec<LagSite> {
    let members = |lag: usize| (0..site.ports.len()).filter(|at| site.ports[*at].lag == Some(lag)).collect::<Vec<_>>();
    let lag = |(port, number): (usize, LagNumber)| LagSite { number, port, members: members(port) };
    let numbered = site.ports.iter().enumerate();
    let numbered = numbered.filter_map(|(port, site)| Some((port, LagNumber::of_port(&site.name)?)));
    numbered.map(lag).filter(|lag| !lag.members.is_empty()).collect()
}

/// The maps of a running switch.
pub(crate) struct LagTables {
    device: String,
    members: MapHandle,
    lags: MapHandle,
}

impl LagTables {
    /// Opens the pinned maps of a switch.
    ///
    /// # Errors
    /// [`LabError::Bpf`] if a pin is gone.
    pub(crate) fn open(layout: &Layout, switch: usize) -> Result<Self, LabError> {
        let device = layout.switches[switch].name.clone();
        let map = |name| pinned(&layout.name, switch, &device, name);
        Ok(Self { members: map("members")?, lags: map("lags")?, device })
    }

    /// Writes what the members of a LAG do. `uses[member]`, in the order of the site.
    ///
    /// # Errors
    /// [`LabError::Bpf`].
    pub(crate) fn set(&self, site: &LagSite, uses: &[MemberUse]) -> Result<(), LabError> {
        let lag = site.port as u16;
        let numbered = || site.members.iter().map(|member| *member as u16).zip(uses);
        let distributing: Vec<u16> = numbered().filter(|(_, of)| of.distributes).map(|(member, _)| member).collect();
        let write = || -> Result<(), libbpf_rs::Error> {
            write_lag(&self.lags, lag, &distributing)?;
            numbered().try_for_each(|(member, of)| write_member(&self.members, member, lag, *of))
        };
        write().context("serve", &self.device, "write LAGs")
    }

    /// How many members of a LAG distribute.
    ///
    /// # Errors
    /// [`LabError::Bpf`].
    pub(crate) fn active(&self, site: &LagSite) -> Result<usize, LabError> {
        let value = self.lags.lookup(&(site.port as u32).to_ne_bytes(), MapFlags::ANY);
        let value = value.context("status", &self.device, "read LAGs")?;
        let count = value.as_deref().and_then(|value| value.get(..4)?.try_into().ok());
        Ok(count.map_or(0, u32::from_ne_bytes) as usize)
    }
}

/// Writes what tables say of LAGs.
pub(super) fn fill(members: &impl MapCore, lags: &impl MapCore, table: &SwitchTable) -> Result<(), libbpf_rs::Error> {
    for (number, port) in (0_u16..).zip(&table.ports) {
        match port.part {
            LagPart::None => {}
            LagPart::Lag => {
                write_lag(lags, number, table.active.distributing.get(&number).map_or(&[], Vec::as_slice))?;
            }
            LagPart::Member(lag) => {
                let collects = table.active.collecting.contains(number);
                write_member(members, number, lag, MemberUse { collects, ..MemberUse::default() })?;
            }
        }
    }
    Ok(())
}

/// `struct lag_entry`, whose members are these.
pub(crate) fn lag_value(members: &[u16]) -> Vec<u8> {
    let count = members.len().min(LAG_MEMBERS_MAX);
    let mut value = (count as u32).to_ne_bytes().to_vec();
    value.extend(members[..count].iter().flat_map(|member| member.to_ne_bytes()));
    value.resize(size_of::<u32>() + LAG_MEMBERS_MAX * size_of::<u16>(), 0);
    value
}

fn write_lag(map: &impl MapCore, lag: u16, members: &[u16]) -> Result<(), libbpf_rs::Error> {
    map.update(&u32::from(lag).to_ne_bytes(), &lag_value(members), MapFlags::ANY)
}

/// `struct member_entry`.
fn write_member(map: &impl MapCore, member: u16, lag: u16, of: MemberUse) -> Result<(), libbpf_rs::Error> {
    let value = [lag.to_ne_bytes(), u16::from(of.collects).to_ne_bytes()].concat();
    map.update(&u32::from(member).to_ne_bytes(), &value, MapFlags::ANY)
}
