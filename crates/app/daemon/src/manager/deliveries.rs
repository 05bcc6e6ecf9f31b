//! Deliveries of notifications: queued, due, accepted or failed.

use std::{collections::BTreeMap, sync::PoisonError, time::Duration};

use super::{Inner, Manager, Refused};
use crate::{
    archive::ArchiveError,
    core::{
        deliveries::{after_failure, is_notified},
        events::EventChange,
    },
    documents::{Delivery, Notification},
    show::timestamp,
};

/// Deliveries that are remembered; beyond, the oldest failed ones are forgotten.
const DELIVERIES_MAX: usize = 1000;

/// Deliveries that are pending or have failed, as they are in the archive.
#[derive(Default)]
pub(super) struct Deliveries {
    by_id: BTreeMap<u64, Delivery>,
    /// Whether some may be due that were not when it was looked last.
    news: bool,
}

impl Deliveries {
    pub(super) fn pending(&self) -> usize {
        self.by_id.len() - self.failed()
    }

    pub(super) fn failed(&self) -> usize {
        self.by_id.values().filter(|delivery| delivery.next_s.is_none()).count()
    }
}

impl Inner {
    /// Queues deliveries.
    pub(super) fn post(&mut self, deliveries: Vec<Delivery>) {
        self.deliveries.news |= !deliveries.is_empty();
        self.deliveries.by_id.extend(deliveries.into_iter().map(|delivery| (delivery.id, delivery)));
    }
}

impl Manager {
    /// Deliveries of a change to all receivers that are notified of it; without numbers.
    pub(super) fn deliveries_about(&self, change: &EventChange) -> Vec<Delivery> {
        let config = self.config();
        let notified = config.notify.iter().filter(|notify| is_notified(change, notify.least));
        let at_s = self.now_s();
        let delivery = |to: &str| {
            let notification = Notification {
                kind: format!("event.{}", change.word()),
                timestamp: timestamp(at_s),
                data: change.event().clone(),
            };
            let body = serde_json::to_string(&notification).expect("notifications have only keys that are text");
            Delivery { id: 0, to: to.to_owned(), body, at_s, tries: 0, next_s: Some(at_s), failure: None }
        };
        notified.map(|notify| delivery(&notify.name)).collect()
    }

    /// Deliveries that are due, oldest first.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn deliveries_due(&self) -> Result<Vec<Delivery>, ArchiveError> {
        let now_s = self.now_s();
        let mut inner = self.inner();
        inner.deliveries.news = false;
        while inner.deliveries.by_id.len() > DELIVERIES_MAX {
            let mut deliveries = inner.deliveries.by_id.values();
            let Some(oldest) = deliveries.find(|delivery| delivery.next_s.is_none()).map(|delivery| delivery.id) else {
                break;
            };
            self.archive.forget_delivery(oldest)?;
            inner.deliveries.by_id.remove(&oldest);
        }
        let is_due = |delivery: &&Delivery| delivery.next_s.is_some_and(|next_s| next_s <= now_s);
        Ok(inner.deliveries.by_id.values().filter(is_due).cloned().collect())
    }

    /// Waits until deliveries may be due, at most so long.
    pub fn wait_for_deliveries(&self, at_most: Duration) {
        let inner = self.inner();
        let idle = |inner: &mut Inner| !inner.deliveries.news && !inner.stop;
        drop(self.due.wait_timeout_while(inner, at_most, idle).unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes that a receiver has accepted a delivery.
    ///
    /// # Errors
    /// [`ArchiveError`]; then it is delivered once more.
    pub fn delivered(&self, delivery: &Delivery) -> Result<(), ArchiveError> {
        self.archive.forget_delivery(delivery.id)?;
        let mut inner = self.inner();
        inner.deliveries.by_id.remove(&delivery.id);
        // The receiver's next one may be due.
        inner.deliveries.news = true;
        drop(inner);
        self.due.notify_all();
        Ok(())
    }

    /// Takes that a try has failed.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn delivery_failed(
        &self,
        delivery: Delivery,
        why: String,
        is_hopeless: bool,
        jitter: f64,
    ) -> Result<(), ArchiveError> {
        let delivery = after_failure(delivery, self.now_s(), why, is_hopeless, jitter);
        // It waits all the same if that cannot be kept.
        self.inner().deliveries.by_id.insert(delivery.id, delivery.clone());
        self.archive.keep_delivery(&delivery)
    }

    /// Deliveries that are pending or have failed, oldest first.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.inner().deliveries.by_id.values().cloned().collect()
    }

    /// Has a delivery tried again at once, as if it were new.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn retry_delivery(&self, id: u64, by: &str) -> Result<Delivery, Refused> {
        let delivery = Delivery { tries: 0, next_s: Some(self.now_s()), ..self.find_delivery(id)? };
        self.archive.keep_delivery(&delivery)?;
        self.inner().post(vec![delivery.clone()]);
        self.due.notify_all();
        self.audit(by, &format!("had delivery {id} to {} tried again", delivery.to))?;
        Ok(delivery)
    }

    /// Forgets a delivery.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn drop_delivery(&self, id: u64, by: &str) -> Result<(), Refused> {
        let delivery = self.find_delivery(id)?;
        self.delivered(&delivery)?;
        self.audit(by, &format!("dropped delivery {id} to {}", delivery.to))?;
        Ok(())
    }

    fn find_delivery(&self, id: u64) -> Result<Delivery, Refused> {
        let found = self.inner().deliveries.by_id.get(&id).cloned();
        found.ok_or_else(|| Refused::NotFound(format!("there is no delivery {id}; espalierd deliveries lists them")))
    }
}
