//! The models that a topology may name: those that are built in, and those that somebody describes.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use crate::{Model, Topology, format::model::parse_model};

/// A catalogue of models, each under a name of its own. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Models(Arc<BTreeMap<String, Arc<Model>>>);

impl Default for Models {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Models {
    /// Every model that Espalier knows by itself.
    pub fn built_in() -> Self {
        Self::only(Model::built_in().iter().cloned())
    }

    /// These models alone. Of two with one name the last one counts.
    pub fn only(models: impl IntoIterator<Item = Arc<Model>>) -> Self {
        Self(Arc::new(models.into_iter().map(|model| (model.name.clone(), model)).collect()))
    }

    /// The models of a topology's switches.
    pub fn of(topology: &Topology) -> Self {
        Self::only(topology.switches().iter().map(|switch| Arc::clone(&switch.model)))
    }

    /// These models and more, which go before those of the same name.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = Model>) -> Self {
        Self::only(self.iter().cloned().chain(more.into_iter().map(Arc::new)))
    }

    /// The model of this name.
    pub fn by_name(&self, name: &str) -> Option<Arc<Model>> {
        self.0.get(name).cloned()
    }

    /// The first model, by name, that identifies itself by this sysObjectID.
    pub fn by_object_id(&self, object_id: &str) -> Option<Arc<Model>> {
        self.iter().find(|model| model.object_ids.iter().any(|known| known == object_id)).cloned()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.0.values()
    }
}

/// The texts of `models/*.toml`, in the order in which they are listed to people.
const BUILT_IN: [(&str, &str); 27] = [
    ("generic.toml", include_str!("../models/generic.toml")),
    ("linux-bridge.toml", include_str!("../models/linux-bridge.toml")),
    ("cumulus.toml", include_str!("../models/cumulus.toml")),
    ("open-vswitch.toml", include_str!("../models/open-vswitch.toml")),
    ("powerconnect-5324.toml", include_str!("../models/powerconnect-5324.toml")),
    ("powerconnect-5448.toml", include_str!("../models/powerconnect-5448.toml")),
    ("powerconnect-5524.toml", include_str!("../models/powerconnect-5524.toml")),
    ("powerconnect-5224.toml", include_str!("../models/powerconnect-5224.toml")),
    ("smc-8648t.toml", include_str!("../models/smc-8648t.toml")),
    ("ecs4210-28t.toml", include_str!("../models/ecs4210-28t.toml")),
    ("cisco-sg300-28.toml", include_str!("../models/cisco-sg300-28.toml")),
    ("cisco-sg500-28.toml", include_str!("../models/cisco-sg500-28.toml")),
    ("hpe-5130-48.toml", include_str!("../models/hpe-5130-48.toml")),
    ("hpe-comware5.toml", include_str!("../models/hpe-comware5.toml")),
    ("huawei-s5700-48.toml", include_str!("../models/huawei-s5700-48.toml")),
    ("zyxel-gs4012f.toml", include_str!("../models/zyxel-gs4012f.toml")),
    ("tplink-t2600g-28.toml", include_str!("../models/tplink-t2600g-28.toml")),
    ("netgear-m4100-26.toml", include_str!("../models/netgear-m4100-26.toml")),
    ("edgeswitch-24.toml", include_str!("../models/edgeswitch-24.toml")),
    ("mikrotik-crs326.toml", include_str!("../models/mikrotik-crs326.toml")),
    ("sonic.toml", include_str!("../models/sonic.toml")),
    ("arista-eos.toml", include_str!("../models/arista-eos.toml")),
    ("cisco-catalyst.toml", include_str!("../models/cisco-catalyst.toml")),
    ("juniper-ex.toml", include_str!("../models/juniper-ex.toml")),
    ("aruba-aos-s.toml", include_str!("../models/aruba-aos-s.toml")),
    ("aruba-aos-cx.toml", include_str!("../models/aruba-aos-cx.toml")),
    ("dlink-dgs.toml", include_str!("../models/dlink-dgs.toml")),
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

    /// The built-in model of this name.
    pub fn by_name(name: &str) -> Option<Arc<Self>> {
        Self::built_in().iter().find(|model| model.name == name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Basis;

    #[test]
    fn a_model_of_one_s_own_goes_before_the_built_in_one() {
        let known = Model::by_name("powerconnect-5324").expect("a known model");
        let own = Model { static_entries_max: 7, ..(*known).clone() };
        let models = Models::built_in().with([own.clone()]);
        assert_eq!(models.by_name("powerconnect-5324").as_deref(), Some(&own));
        assert_eq!(models.iter().count(), Models::built_in().iter().count());
        assert_eq!(models.by_object_id("1.3.6.1.4.1.674.10895.3004").as_deref(), Some(&own));
        assert_eq!(models.by_object_id("1.3.6.1.4.1.674.10895.30"), None);
    }

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
    fn tables_hold_their_static_entries() {
        for model in Model::built_in() {
            assert!(model.static_entries_max <= model.total_entries_max, "{}", model.name);
            assert!((1..=4094).contains(&model.vlans_max), "{}", model.name);
        }
    }

    #[test]
    fn a_fact_may_rest_on_something_else() {
        let model = Model::by_name("cisco-sg300-28").expect("a known model");
        assert_eq!(model.basis_of("static-macs"), Basis::Manual);
        assert_eq!(model.basis_of("pause"), Basis::Untested);
        let unknown = "name='x'\ndescription='x'\nbasis='manual'\nmax-vlans=1\nstatic-macs=1\ntotal-macs=1\n\
            hybrid-ports=true\nindependent-vlan-learning=true\npause=true\npfc-classes=0\n[basis-of]\ncolour='tested'";
        assert!(parse_model(unknown).is_err_and(|error| error.contains("colour")));
    }

    #[test]
    fn a_listed_port_range_is_expanded() {
        let model = Model::by_name("powerconnect-5324").expect("a known model");
        assert!(model.ports.contains("g1") && model.ports.contains("g24"));
        assert!(!model.ports.contains("g0") && !model.ports.contains("g25"));
    }
}
