//! The models that a topology may name: those that are built in, and those that somebody describes.

use std::{collections::BTreeMap, sync::Arc};

use crate::{Model, Topology};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
