//! A store that lasts as long as its process: for tests, and for dry runs.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use enrol::kept::KeptLedger;
use rollout::deploy::Journal;
use switch_model::mark::Mark;

use super::Store;
use crate::Error;

/// A store in memory; clones are the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    journal: Option<Journal>,
    aside: Vec<Journal>,
    generation: Option<u32>,
    claims: Vec<Mark>,
    ledgers: BTreeMap<IpAddr, KeptLedger>,
}

impl MemoryStore {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn journal(&self) -> Result<Option<Journal>, Error> {
        Ok(self.kept().journal.clone())
    }

    fn record(&self, journal: &Journal) -> Result<(), Error> {
        self.kept().journal = Some(journal.clone());
        Ok(())
    }

    fn finish(&self) -> Result<(), Error> {
        self.kept().journal = None;
        Ok(())
    }

    fn set_aside(&self) -> Result<String, Error> {
        let mut kept = self.kept();
        let journal =
            kept.journal.take().ok_or_else(|| Error::Request("there is no journal to put aside".to_owned()))?;
        kept.aside.push(journal);
        Ok(format!("journal {} in memory", kept.aside.len()))
    }

    fn generation(&self) -> Result<Option<u32>, Error> {
        Ok(self.kept().generation)
    }

    fn claims(&self) -> Result<Vec<Mark>, Error> {
        Ok(self.kept().claims.clone())
    }

    fn claim(&self, mark: Mark) -> Result<(), Error> {
        let mut kept = self.kept();
        if !kept.claims.contains(&mark) {
            kept.claims.push(mark);
        }
        Ok(())
    }

    fn settle(&self, generation: u32) -> Result<(), Error> {
        let mut kept = self.kept();
        kept.generation = Some(generation);
        kept.claims.clear();
        Ok(())
    }

    fn ledgers(&self) -> Result<Vec<KeptLedger>, Error> {
        Ok(self.kept().ledgers.values().cloned().collect())
    }

    fn keep_ledger(&self, ledger: &KeptLedger) -> Result<(), Error> {
        self.kept().ledgers.insert(ledger.address.ip(), ledger.clone());
        Ok(())
    }

    fn forget_ledger(&self, address: IpAddr) -> Result<(), Error> {
        self.kept().ledgers.remove(&address);
        Ok(())
    }
}
