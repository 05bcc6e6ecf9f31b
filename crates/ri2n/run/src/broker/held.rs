//! The count of a broker's streams.

use std::sync::Arc;

use ri2n_io::Descriptors;

use super::Broker;
use crate::saved::{Kept, SavedKept};

/// Counts a stream as long as it lives.
pub(super) struct Held(Arc<Broker>);

impl Held {
    /// Of a stream that the table has counted already.
    pub(super) fn new(broker: Arc<Broker>) -> Self {
        Self(broker)
    }
}

impl Kept for Held {
    fn save(&self, _descriptors: &mut Descriptors) -> Option<SavedKept> {
        Some(SavedKept { port: None })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut table = self.0.table();
        table.streams -= 1;
        if table.waiting_for_room > 0 {
            self.0.ended.notify_one();
        }
    }
}
