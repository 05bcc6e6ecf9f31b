//! What a make of switch can do, as data: the limits that plans must keep.

use std::sync::{Arc, OnceLock};

use crate::{format::model::parse_model, vlan::VlanPool};

/// What the facts about a model rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Tried on the device or the software itself.
    Tested,
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
    /// What the facts below rest on.
    pub basis: Basis,
    /// Which port names exist.
    pub ports: PortNames,
    /// Most VLANs that can be configured at once.
    pub vlans_max: usize,
    /// Most static forwarding-table entries.
    pub static_entries_max: usize,
    /// Whether a port can be an untagged member of many VLANs with a PVID of its own ("hybrid" or "general" mode).
    pub hybrid_ports: bool,
    /// Whether every VLAN has a filtering table of its own (independent VLAN learning).
    pub independent_vlan_learning: bool,
    /// Whether ports honour and send 802.3x PAUSE frames.
    pub pause: bool,
    /// Classes of 802.1Qbb priority flow control; 0 if it has none.
    pub pfc_classes: u8,
}

/// Which port names a model has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortNames {
    /// Any name is a port: software switches, and switches of unknown make.
    Any,
    /// Exactly these, in front-panel order.
    Listed(Vec<String>),
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

/// The texts of `models/*.toml`, in the order in which they are listed to people.
const BUILT_IN: [(&str, &str); 6] = [
    ("generic.toml", include_str!("../models/generic.toml")),
    ("linux-bridge.toml", include_str!("../models/linux-bridge.toml")),
    ("open-vswitch.toml", include_str!("../models/open-vswitch.toml")),
    ("powerconnect-5324.toml", include_str!("../models/powerconnect-5324.toml")),
    ("powerconnect-5224.toml", include_str!("../models/powerconnect-5224.toml")),
    ("smc-8648t.toml", include_str!("../models/smc-8648t.toml")),
];

impl Model {
    /// The model of switches that state none: any port name, and no limit but 802.1Q's own.
    pub fn generic() -> Arc<Self> {
        Arc::clone(&Self::built_in()[0])
    }

    /// Every model that Espalier knows, `generic` first.
    pub fn built_in() -> &'static [Arc<Self>] {
        static MODELS: OnceLock<Vec<Arc<Model>>> = OnceLock::new();
        MODELS.get_or_init(|| {
            BUILT_IN
                .iter()
                .map(|(file, text)| {
                    Arc::new(parse_model(text).unwrap_or_else(|error| panic!("models/{file}: {error}")))
                })
                .collect()
        })
    }

    /// The known model of this name.
    pub fn by_name(name: &str) -> Option<Arc<Self>> {
        Self::built_in().iter().find(|model| model.name == name).cloned()
    }

    /// How many VLANs of `pool` fit on this model.
    pub fn vlans_available(&self, pool: &VlanPool) -> usize {
        pool.iter().count().min(self.vlans_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_models_parse_and_have_distinct_names() {
        let names: Vec<&str> = Model::built_in().iter().map(|model| model.name.as_str()).collect();
        let mut distinct = names.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        assert_eq!(Model::generic().name, "generic");
    }

    #[test]
    fn a_listed_port_range_is_expanded() {
        let model = Model::by_name("powerconnect-5324").expect("a known model");
        assert!(model.ports.contains("g1") && model.ports.contains("g24"));
        assert!(!model.ports.contains("g0") && !model.ports.contains("g25"));
    }
}
