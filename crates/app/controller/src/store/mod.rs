//! What the controller keeps between requests: the journal of a deployment, generations, ledgers of enrolments.
//!
//! ```text
//!   journal      what every switch held before a deployment that is not over
//!   claims       deployment tags, written before the first switch gets them
//!   generation   that of the last deployment from here
//!   ledgers      what an enrolment has written to a switch, until it is taken back
//! ```
//! A write that returned without an error survives a crash.

mod folder;
mod memory;

use std::net::IpAddr;

use enrol::kept::KeptLedger;
use rollout::deploy::Journal;
use switch_model::mark::Mark;

use crate::Error;

pub use self::{folder::FolderStore, memory::MemoryStore};

/// What the controller remembers. All of it belongs to one fabric.
///
/// # Errors
/// Of every function: [`Error::File`], or [`Error::Request`] if what is kept cannot be understood.
pub trait Store {
    /// The journal of a deployment that is not over.
    fn journal(&self) -> Result<Option<Journal>, Error>;

    /// Writes the journal, replacing the last one.
    fn record(&self, journal: &Journal) -> Result<(), Error>;

    /// Deletes the journal: the deployment is over.
    fn finish(&self) -> Result<(), Error>;

    /// Moves the journal out of the way, for a person to read, and returns where it is now.
    fn set_aside(&self) -> Result<String, Error>;

    /// The generation of the last deployment from here.
    fn generation(&self) -> Result<Option<u32>, Error>;

    /// Deployment tags claimed since that generation.
    fn claims(&self) -> Result<Vec<Mark>, Error>;

    /// Records a deployment tag before it is written to a switch.
    fn claim(&self, mark: Mark) -> Result<(), Error>;

    /// Records the last generation and deletes all claims.
    fn settle(&self, generation: u32) -> Result<(), Error>;

    /// The ledgers of enrolments that have not been cleaned up, by address.
    fn ledgers(&self) -> Result<Vec<KeptLedger>, Error>;

    /// Writes the ledger of a switch, replacing its last one.
    fn keep_ledger(&self, ledger: &KeptLedger) -> Result<(), Error>;

    /// Deletes the ledger of a switch, if there is one.
    fn forget_ledger(&self, address: IpAddr) -> Result<(), Error>;
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, net::SocketAddr, sync::Arc};

    use enrol::{Ledger, Names};
    use fabric::VlanSet;
    use proptest::prelude::*;
    use switch_model::SwitchConfig;

    use super::*;

    /// One thing that is done to a store.
    #[derive(Clone, Debug)]
    enum Step {
        Record(u32),
        Finish,
        SetAside,
        Claim(u32),
        Settle(u32),
        KeepLedger(u8),
        ForgetLedger(u8),
        /// What was kept by another process: the store is opened anew.
        Reopen,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..5_u32).prop_map(Step::Record),
            Just(Step::Finish),
            Just(Step::SetAside),
            (0..5_u32).prop_map(Step::Claim),
            (0..5_u32).prop_map(Step::Settle),
            (0..4_u8).prop_map(Step::KeepLedger),
            (0..4_u8).prop_map(Step::ForgetLedger),
            Just(Step::Reopen),
        ]
    }

    fn journal(number: u32) -> Journal {
        Journal {
            mark: Mark::new(number, 7, 9),
            stages_done: Some(number as usize),
            backup: vec![Arc::new(SwitchConfig::blank(["p1".to_owned()]))],
            under_way: BTreeMap::new(),
        }
    }

    fn ledger(number: u8) -> KeptLedger {
        let address = SocketAddr::new(IpAddr::from([192, 0, 2, number]), 161);
        let probe = Ledger {
            nonce: u32::from(number),
            names: Names::Kept,
            vlans: VlanSet::new(),
            ports: vec![1, 2],
            pvids: BTreeMap::new(),
            pause: BTreeMap::new(),
            members: BTreeMap::new(),
            list_len: 1,
        };
        KeptLedger { switch: format!("sw{number}"), address, ledger: probe }
    }

    /// Does the steps to a store and to a picture of one in plain variables, and compares after each.
    fn judge(steps: &[Step], mut open: impl FnMut() -> Box<dyn Store>) -> Result<(), TestCaseError> {
        let mut store = open();
        let (mut held, mut generation) = (None, None);
        let (mut claims, mut ledgers) = (Vec::new(), BTreeMap::new());
        for step in steps {
            match step.clone() {
                Step::Record(number) => {
                    store.record(&journal(number)).expect("kept");
                    held = Some(number);
                }
                Step::Finish => {
                    store.finish().expect("forgotten");
                    held = None;
                }
                Step::SetAside => {
                    prop_assert_eq!(store.set_aside().is_ok(), held.is_some());
                    held = None;
                }
                Step::Claim(number) => {
                    store.claim(Mark::new(number, 1, 2)).expect("claimed");
                    if !claims.contains(&number) {
                        claims.push(number);
                    }
                }
                Step::Settle(number) => {
                    store.settle(number).expect("settled");
                    generation = Some(number);
                    claims.clear();
                }
                Step::KeepLedger(number) => {
                    store.keep_ledger(&ledger(number)).expect("kept");
                    ledgers.insert(number, ledger(number));
                }
                Step::ForgetLedger(number) => {
                    store.forget_ledger(IpAddr::from([192, 0, 2, number])).expect("forgotten");
                    ledgers.remove(&number);
                }
                Step::Reopen => {
                    drop(store);
                    store = open();
                }
            }
            prop_assert_eq!(store.journal().expect("a journal or none"), held.map(journal));
            prop_assert_eq!(store.generation().expect("a number or none"), generation);
            let wanted: Vec<Mark> = claims.iter().map(|number| Mark::new(*number, 1, 2)).collect();
            prop_assert_eq!(store.claims().expect("claims"), wanted);
            prop_assert_eq!(store.ledgers().expect("ledgers"), ledgers.values().cloned().collect::<Vec<_>>());
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn every_store_remembers_the_same(steps in prop::collection::vec(step(), 1..24)) {
            let folder = std::env::temp_dir().join(format!("espalier-store-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            judge(&steps, || Box::new(FolderStore::open(&folder).expect("nobody else holds it")))?;
            fs::remove_dir_all(&folder).expect("a folder");
            let memory = MemoryStore::default();
            judge(&steps, || Box::new(memory.clone()))?;
        }
    }
}
