//! What virtual switches learn of who sends.

use fabric::{Mac, PortId, SwitchId, VlanId};
use switch_model::Slot;

use crate::{
    fabric::VirtualFabric,
    frames::{self, Place},
};

/// For how long a row stays whose address is not heard again.
pub(crate) const ROW_AGE_MS: u64 = 300_000;

impl VirtualFabric {
    /// An address behind a host's port sends a broadcast: every switch that it reaches learns, but where there is an entry.
    pub(crate) fn send(&mut self, from: PortId, mac: Mac) {
        let Some(flood) = frames::flood(self, from) else { return };
        for (port, vlan) in flood.entered {
            self.learn((port, vlan), mac);
        }
    }

    fn learn(&mut self, (port, vlan): Place, mac: Mac) {
        let (switch, slot) = self.place(port);
        let now_ms = self.now_ms;
        let state = &mut self.switches[switch.index()];
        if !state.running.entries.contains_key(&(vlan, mac)) {
            state.learned.insert((vlan, mac), (Slot::new(slot), now_ms));
        }
    }

    /// The rows of a switch that are not too old.
    pub(crate) fn rows(&self, switch: SwitchId) -> impl Iterator<Item = (VlanId, Mac, Slot)> + '_ {
        let is_young = |heard_ms: u64| self.now_ms < heard_ms + ROW_AGE_MS;
        let rows = self.switch(switch).learned.iter();
        rows.filter(move |(_, (_, heard_ms))| is_young(*heard_ms)).map(|((vlan, mac), (slot, _))| (*vlan, *mac, *slot))
    }

    /// Where a switch has learned that an address is.
    pub(crate) fn row(&self, switch: SwitchId, vlan: VlanId, mac: Mac) -> Option<Slot> {
        let (slot, heard_ms) = self.switch(switch).learned.get(&(vlan, mac))?;
        (self.now_ms < heard_ms + ROW_AGE_MS).then_some(*slot)
    }

    /// An entry takes the place of a row.
    pub(crate) fn forget_entered(&mut self, switch: SwitchId) {
        let state = &mut self.switches[switch.index()];
        state.learned.retain(|key, _| !state.running.entries.contains_key(key));
    }
}
