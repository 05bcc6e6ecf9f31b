//! What a switch is to do in a round: entries to hold, and rows to forget. No thread, no clock, no switch.

use fabric::{Mac, SwitchId, VlanId};
use rollout::addresses::Addresses;
use switch_model::{Entries, Slot, edit::Edit};

/// What a switch is to do: the entries to hold, and rows to forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressOrder {
    /// Entries of learned addresses; there are to be no others.
    pub entries: Entries,
    /// Learned rows that are to go, each with its port.
    pub stale: Entries,
}

/// What all switches do before any of them does the next: no frame meets a switch that has no entry yet, or none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressStep {
    /// Entries where there are none.
    Add,
    /// Entries to another port, and in the place of rows that are to be forgotten.
    Turn,
    /// Entries that go.
    Remove,
}

impl AddressStep {
    /// In this order.
    pub const ALL: [Self; 3] = [Self::Add, Self::Turn, Self::Remove];
}

impl AddressOrder {
    /// What a switch is to do by what is known of addresses.
    pub fn of(addresses: &Addresses, switch: SwitchId) -> Self {
        Self { entries: addresses.entries(switch), stale: addresses.stale(switch) }
    }

    /// What a step changes at a switch that holds these entries of learned addresses.
    pub fn edits(&self, step: AddressStep, held: &Entries) -> Vec<Edit> {
        // An entry takes the place of a row, and leaves none behind when it goes.
        let stale = self.stale.iter().filter(|(key, _)| !self.entries.contains_key(key));
        let set = |((vlan, mac), slot): (&(VlanId, Mac), &Slot)| Edit::SetEntry(*vlan, *mac, *slot);
        match step {
            AddressStep::Add => self.entries.iter().filter(|(key, _)| !held.contains_key(key)).map(set).collect(),
            AddressStep::Turn => {
                let turns = self.entries.iter().filter(|(key, slot)| held.get(key) != Some(slot));
                turns.chain(stale).map(set).collect()
            }
            AddressStep::Remove => {
                let gone = held.keys().filter(|key| !self.entries.contains_key(key));
                gone.map(|(vlan, mac)| Edit::UnsetEntry(*vlan, *mac)).collect()
            }
        }
    }
}

/// Takes that edits of a step were carried out at a switch that held these entries.
pub fn note_edits(edits: &[Edit], held: &mut Entries) {
    for edit in edits {
        match edit {
            Edit::SetEntry(vlan, mac, slot) => _ = held.insert((*vlan, *mac), *slot),
            Edit::UnsetEntry(vlan, mac) => _ = held.remove(&(*vlan, *mac)),
            _ => {}
        }
    }
}
