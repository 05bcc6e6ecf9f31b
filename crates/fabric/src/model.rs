//! What a make of switch can do, as data: the limits that plans must keep.

use crate::{FloodSet, name::check_name, vlan::VlanPool};

/// What the facts about a model rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Tried on the device or the software itself.
    Tested,
    /// Written to one such device and read back, by `espalier enrol`.
    Probed,
    /// Read in the vendor's manual or MIB.
    Manual,
    /// Believed; nobody has checked.
    Untested,
}

/// The capabilities of one make of switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The name that topology files use.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// What the facts below rest on, but for those that say otherwise.
    pub basis: Basis,
    /// Facts that rest on something else: their key in the model file, ascending, and what they rest on.
    pub basis_of: Vec<(String, Basis)>,
    /// What sysObjectID says on it, as dotted numbers; several for variants of one make, none if that is not known.
    pub object_ids: Vec<String>,
    /// The configuration language that it speaks, as `espalier render --target` names it; none if no driver writes it.
    pub syntax: Option<String>,
    /// How its running configuration is saved by SNMP, as the device layer names it; none if no way is known.
    pub save: Option<String>,
    /// Which port names exist.
    pub ports: PortNames,
    /// Most VLANs that can be configured at once.
    pub vlans_max: usize,
    /// Most static forwarding-table entries.
    pub static_entries_max: usize,
    /// Most forwarding-table entries, static and learned together.
    pub total_entries_max: usize,
    /// Whether a port can be an untagged member of many VLANs with a PVID of its own ("hybrid" or "general" mode).
    pub hybrid_ports: bool,
    /// Whether every VLAN has a filtering table of its own (independent VLAN learning).
    pub independent_vlan_learning: bool,
    /// Whether ports honour and send 802.3x PAUSE frames.
    pub pause: bool,
    /// Classes of 802.1Qbb priority flow control; 0 if it has none.
    pub pfc_classes: u8,
    /// Floods that each port can be told not to let out, so that the switch drops them.
    pub blocks_floods: FloodSet,
    /// Whether each port can be told the most broadcasts, multicasts and unknown unicasts that it admits, in percent of its rate.
    pub storm_control: bool,
    /// Most LAGs; none if that is not known, and then nothing is refused.
    pub lags_max: Option<usize>,
}

/// Which port names a model has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortNames {
    /// Any name is a port: software switches, and switches of unknown make.
    Any,
    /// Exactly these, in front-panel order.
    Listed(Vec<String>),
}

impl Basis {
    /// Every basis.
    pub const ALL: [Self; 4] = [Self::Tested, Self::Probed, Self::Manual, Self::Untested];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tested => "tested",
            Self::Probed => "probed",
            Self::Manual => "manual",
            Self::Untested => "untested",
        }
    }
}

impl PortNames {
    /// Whether the model has a port of this name.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(names) => names.iter().any(|known| known == name),
        }
    }
}

/// The VLAN ids of 802.1Q.
const VLANS_MAX: usize = 4094;
/// The priorities of 802.1Q.
const PFC_CLASSES_MAX: u8 = 8;

impl Model {
    /// What a fact rests on, by its key in the model file.
    pub fn basis_of(&self, fact: &str) -> Basis {
        self.basis_of.iter().find(|(key, _)| key == fact).map_or(self.basis, |(_, basis)| *basis)
    }

    /// Checks that the facts are those of a switch that there can be.
    ///
    /// # Errors
    /// A message naming the fact that is not.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let usable = |what: &str, name: &str| check_name(name).map_err(|fault| format!("{what}: {fault}"));
        usable("name", &self.name)?;
        if let PortNames::Listed(names) = &self.ports {
            let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
            sorted.sort_unstable();
            if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(format!("ports: {} is named twice", twice[0]));
            }
            names.iter().try_for_each(|name| usable("ports", name))?;
        }
        if !(1..=VLANS_MAX).contains(&self.vlans_max) {
            return Err(format!("max-vlans: a switch has 1 to {VLANS_MAX}, not {}", self.vlans_max));
        }
        if self.static_entries_max > self.total_entries_max {
            return Err("static-macs: static entries are among all entries, so there cannot be more".to_owned());
        }
        if self.pfc_classes > PFC_CLASSES_MAX {
            return Err(format!("pfc-classes: there are {PFC_CLASSES_MAX} at most"));
        }
        let dotted = |text: &String| !text.is_empty() && text.split('.').all(|part| part.parse::<u32>().is_ok());
        match self.object_ids.iter().find(|text| !dotted(text)) {
            Some(text) => Err(format!("object-ids: {text:?} is no row of numbers such as 1.3.6.1.4.1.674.10895.3004")),
            None => Ok(()),
        }
    }

    /// How many VLANs of `pool` fit on this model.
    pub fn vlans_available(&self, pool: &VlanPool) -> usize {
        pool.iter().count().min(self.vlans_max)
    }
}
