//! What the daemon remembers, as typed documents over [`Records`].
//!
//! ```text
//!   target                the plan that switches are to hold; set only in place of its parent
//!   target/N              every target that there was
//!   plan/DIGEST/CHUNK     plans by their digest, in chunks that every store takes
//!   proposal/N · event/N · delivery/N · maintenance/N · audit/N
//!   deploy/…  ledger/…    what a deployment or an enrolment leaves for the next one (controller::Store)
//!   put-back              switches that are to be put back to the plan
//!   kept-out              links that are kept out of use
//!   link-failures         how often in a row links have failed
//!   addresses             where learned addresses were last
//!   probe                 written by each poll, so that a store which takes nothing any more is noticed
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use controller::{Error as ControllerError, Store};
use enrol::kept::{KeptLedger, parse_ledger, write_ledger};
use fabric::{
    HostId, Mac, Plan,
    format::plan::{ReadMode, plan_digest, read_plan, write_plan},
};
use records::{CHANGES_MAX, Change, Commit, Condition, Record, Records, RecordsError};
use rollout::{
    addresses::{parse_record, write_record},
    deploy::Journal,
    journal::{parse_journal, write_journal},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use switch_model::mark::Mark;
use thiserror::Error;

use crate::{
    core::events::EventChange,
    documents::{AuditEntry, Delivery, Event, KeptOut, Maintenance, Proposal, Target},
};

/// Bytes of a chunk of a plan: below what the smallest store takes.
const CHUNK_LEN: usize = 512 << 10;
/// Records that are read at once.
const PAGE: usize = 512;
/// Audit entries that are kept.
const AUDIT_MAX: u64 = 10_000;

const TARGET: &str = "target";
const DELIVERIES: &str = "count/delivery";
const ADDRESSES: &str = "addresses";
const DUE_BACK: &str = "put-back";
const KEPT_OUT: &str = "kept-out";
const FAILURES: &str = "link-failures";
const PROBE: &str = "probe";
const JOURNAL: &str = "deploy/journal";
const GENERATION: &str = "deploy/generation";
const CLAIMS: &str = "deploy/claims";

/// A link that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFailures {
    /// Its ends.
    pub link: String,
    /// How often in a row.
    pub in_a_row: u32,
    /// When it failed last, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
}

/// Why something cannot be remembered or found.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// The store fails.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A record cannot be understood.
    #[error("the record {key} cannot be understood: {why}; restore a backup")]
    Record {
        /// Its key.
        key: String,
        /// Why.
        why: String,
    },
}

/// Documents over records; clones are the same archive.
#[derive(Clone)]
pub struct Archive {
    records: Arc<dyn Records>,
}

impl Archive {
    /// An archive over these records.
    pub fn new(records: Arc<dyn Records>) -> Self {
        Self { records }
    }

    fn document<T: DeserializeOwned>(&self, key: &str) -> Result<Option<(T, Record)>, ArchiveError> {
        let Some(record) = self.records.get(key)? else { return Ok(None) };
        Ok(Some((parse(key, &record)?, record)))
    }

    fn documents<T: DeserializeOwned>(&self, family: &str) -> Result<Vec<T>, ArchiveError> {
        let prefix = format!("{family}/");
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.records.list(&prefix, after.as_deref(), PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(all) };
            after = Some(last.clone());
            for (key, record) in &page {
                all.push(parse(key, record)?);
            }
        }
    }

    /// Appends a document to a family, under the next number.
    fn append<T: Serialize>(&self, family: &str, make: &dyn Fn(u64) -> T) -> Result<T, ArchiveError> {
        let count_key = format!("count/{family}");
        loop {
            let count = self.records.get(&count_key)?;
            let number = count.as_ref().map_or(Ok(0), |record| parse::<u64>(&count_key, record))? + 1;
            let document = make(number);
            let changes =
                [Change::put(count_key.as_str(), json(&number)), Change::put(key(family, number), json(&document))];
            let unchanged = Condition::unchanged(count_key.as_str(), count.as_ref());
            if let Commit::Done(_) = self.records.commit(&[unchanged], &changes)? {
                return Ok(document);
            }
        }
    }

    /// The target, if there is one.
    pub fn target(&self) -> Result<Option<Target>, ArchiveError> {
        Ok(self.document(TARGET)?.map(|(target, _)| target))
    }

    /// Every target that there was, oldest first.
    pub fn targets(&self) -> Result<Vec<Target>, ArchiveError> {
        self.documents(TARGET)
    }

    /// Sets a target in place of its parent, with the proposal that it was. False if another one was set meanwhile.
    pub fn set_target(&self, target: &Target, proposal: &Proposal) -> Result<bool, ArchiveError> {
        let found = self.document::<Target>(TARGET)?;
        if found.as_ref().map_or(0, |(found, _)| found.number) != target.parent {
            return Ok(false);
        }
        let unchanged = Condition::unchanged(TARGET, found.as_ref().map(|(_, record)| record));
        let changes = [
            Change::put(TARGET, json(target)),
            Change::put(key(TARGET, target.number), json(target)),
            Change::put(key("proposal", proposal.id), json(proposal)),
        ];
        Ok(matches!(self.records.commit(&[unchanged], &changes)?, Commit::Done(_)))
    }

    /// Records what became of the target, if it is still the target.
    pub fn update_target(&self, target: &Target) -> Result<(), ArchiveError> {
        if let Some((found, record)) = self.document::<Target>(TARGET)? {
            if found.number == target.number {
                let changes =
                    [Change::put(TARGET, json(target)), Change::put(key(TARGET, target.number), json(target))];
                // If it is not the target any more, its history keeps what it was.
                self.records.commit(&[Condition::unchanged(TARGET, Some(&record))], &changes)?;
            }
        }
        Ok(())
    }

    /// Keeps a plan, and returns its digest.
    pub fn keep_plan(&self, plan: &Plan) -> Result<String, ArchiveError> {
        let mut text = Vec::new();
        let written = plan_digest(plan).and_then(|digest| write_plan(plan, &mut text).map(|()| digest));
        let digest =
            written.map_err(|error| ArchiveError::Record { key: "plan".to_owned(), why: error.to_string() })?;
        let chunks = text.chunks(CHUNK_LEN).enumerate();
        let changes: Vec<Change> =
            chunks.map(|(at, chunk)| Change::put(format!("plan/{digest}/{at:06}"), chunk)).collect();
        // A store may take only so much in one commit; a plan that is half there is kept once more.
        for change in changes {
            self.records.commit(&[], &[change])?;
        }
        Ok(digest)
    }

    /// The file of a plan, if it is kept.
    pub fn plan_text(&self, digest: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let prefix = format!("plan/{digest}/");
        let (mut text, mut after) = (Vec::new(), None);
        loop {
            let page = self.records.list(&prefix, after.as_deref(), 8)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            page.iter().for_each(|(_, record)| text.extend_from_slice(&record.value));
        }
        Ok((!text.is_empty()).then_some(text))
    }

    /// A plan, if it is kept.
    pub fn plan(&self, digest: &str) -> Result<Option<Plan>, ArchiveError> {
        let Some(text) = self.plan_text(digest)? else { return Ok(None) };
        let plan = read_plan(&text, ReadMode::Strict);
        let misread = |error: &dyn std::fmt::Display| ArchiveError::Record {
            key: format!("plan/{digest}"),
            why: error.to_string(),
        };
        plan.map(Some).map_err(|error| misread(&error))
    }

    /// The digests of all plans that are kept. Cost: a chunk of each is read.
    pub fn plans(&self) -> Result<BTreeSet<String>, ArchiveError> {
        let (mut digests, mut after) = (BTreeSet::new(), None);
        while let Some((key, _)) = self.records.list("plan/", after.as_deref(), 1)?.pop() {
            let Some(digest) = key.split('/').nth(1) else { break };
            // Chunks have numbers, which sort before this.
            after = Some(format!("plan/{digest}/~"));
            digests.insert(digest.to_owned());
        }
        Ok(digests)
    }

    /// Forgets a plan.
    pub fn forget_plan(&self, digest: &str) -> Result<(), ArchiveError> {
        let prefix = format!("plan/{digest}/");
        while let Some((key, _)) = self.records.list(&prefix, None, 1)?.pop() {
            self.records.commit(&[], &[Change::delete(key)])?;
        }
        Ok(())
    }

    /// Forgets proposals, by number.
    pub fn forget_proposals(&self, ids: &[u64]) -> Result<(), ArchiveError> {
        for part in ids.chunks(CHANGES_MAX) {
            let changes: Vec<Change> = part.iter().map(|id| Change::delete(key("proposal", *id))).collect();
            self.records.commit(&[], &changes)?;
        }
        Ok(())
    }

    /// Every proposal, oldest first.
    pub fn proposals(&self) -> Result<Vec<Proposal>, ArchiveError> {
        self.documents("proposal")
    }

    /// One proposal.
    pub fn proposal(&self, id: u64) -> Result<Option<Proposal>, ArchiveError> {
        Ok(self.document(&key("proposal", id))?.map(|(proposal, _)| proposal))
    }

    /// Adds a proposal, under the next number.
    pub fn add_proposal(&self, proposal: &Proposal) -> Result<Proposal, ArchiveError> {
        self.append("proposal", &|id| Proposal { id, ..proposal.clone() })
    }

    /// Writes a proposal that `change` changes, whoever else writes it meanwhile; none if there is none.
    pub fn update_proposal(&self, id: u64, change: &dyn Fn(&mut Proposal)) -> Result<Option<Proposal>, ArchiveError> {
        let key = key("proposal", id);
        loop {
            let Some((mut proposal, record)) = self.document::<Proposal>(&key)? else { return Ok(None) };
            change(&mut proposal);
            let put = Change::put(key.as_str(), json(&proposal));
            if let Commit::Done(_) =
                self.records.commit(&[Condition::unchanged(key.as_str(), Some(&record))], &[put])?
            {
                return Ok(Some(proposal));
            }
        }
    }

    /// Every event, oldest first.
    pub fn events(&self) -> Result<Vec<Event>, ArchiveError> {
        self.documents("event")
    }

    /// Keeps events as they are now and forgets others, each together with the deliveries about it, which get the next numbers.
    pub fn keep_events(&self, changes: &[(EventChange, Vec<Delivery>)]) -> Result<Vec<Delivery>, ArchiveError> {
        let mut numbered = Vec::new();
        let mut rest = changes;
        while !rest.is_empty() {
            // A change and the deliveries about it are kept together.
            let mut writes = 1;
            let fits = |(_, deliveries): &&(EventChange, Vec<Delivery>)| {
                writes += 1 + deliveries.len();
                writes <= CHANGES_MAX
            };
            let (part, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            rest = later;
            loop {
                let count = self.records.get(DELIVERIES)?;
                let first = count.as_ref().map_or(Ok(0), |record| parse::<u64>(DELIVERIES, record))? + 1;
                let deliveries = part.iter().flat_map(|(_, deliveries)| deliveries).zip(first..);
                let deliveries: Vec<Delivery> =
                    deliveries.map(|(delivery, id)| Delivery { id, ..delivery.clone() }).collect();
                let mut writes: Vec<Change> = part.iter().map(|(change, _)| event_write(change)).collect();
                writes.extend(
                    deliveries.iter().map(|delivery| Change::put(key("delivery", delivery.id), json(delivery))),
                );
                let mut conditions = Vec::new();
                if let Some(last) = deliveries.last() {
                    writes.push(Change::put(DELIVERIES, json(&last.id)));
                    conditions.push(Condition::unchanged(DELIVERIES, count.as_ref()));
                }
                if let Commit::Done(_) = self.records.commit(&conditions, &writes)? {
                    numbered.extend(deliveries);
                    break;
                }
            }
        }
        Ok(numbered)
    }

    /// Deliveries that are pending or have failed, oldest first.
    pub fn deliveries(&self) -> Result<Vec<Delivery>, ArchiveError> {
        self.documents("delivery")
    }

    /// Keeps a delivery as it is now.
    pub fn keep_delivery(&self, delivery: &Delivery) -> Result<(), ArchiveError> {
        self.records.commit(&[], &[Change::put(key("delivery", delivery.id), json(delivery))])?;
        Ok(())
    }

    /// Forgets a delivery.
    pub fn forget_delivery(&self, id: u64) -> Result<(), ArchiveError> {
        self.records.commit(&[], &[Change::delete(key("delivery", id))])?;
        Ok(())
    }

    /// Maintenance marks, oldest first.
    pub fn maintenance(&self) -> Result<Vec<Maintenance>, ArchiveError> {
        self.documents("maintenance")
    }

    /// Adds a maintenance mark, under the next number.
    pub fn add_maintenance(&self, mark: &Maintenance) -> Result<Maintenance, ArchiveError> {
        self.append("maintenance", &|id| Maintenance { id, ..mark.clone() })
    }

    /// Removes a maintenance mark; false if there is none.
    pub fn remove_maintenance(&self, id: u64) -> Result<bool, ArchiveError> {
        let key = key("maintenance", id);
        let is_there = self.records.get(&key)?.is_some();
        self.records.commit(&[], &[Change::delete(key)])?;
        Ok(is_there)
    }

    /// The newest audit entries, oldest first.
    pub fn audit(&self) -> Result<Vec<AuditEntry>, ArchiveError> {
        self.documents("audit")
    }

    /// Adds an audit entry.
    pub fn add_audit(&self, at_s: u64, who: &str, what: &str) -> Result<(), ArchiveError> {
        let entry = self.append("audit", &|id| AuditEntry { id, at_s, who: who.to_owned(), what: what.to_owned() })?;
        if entry.id > AUDIT_MAX {
            self.records.commit(&[], &[Change::delete(key("audit", entry.id - AUDIT_MAX))])?;
        }
        Ok(())
    }

    /// Switches that are to be put back to the plan.
    pub fn due_back(&self) -> Result<BTreeSet<String>, ArchiveError> {
        Ok(self.document(DUE_BACK)?.map(|(switches, _)| switches).unwrap_or_default())
    }

    /// Keeps which switches are to be put back.
    pub fn keep_due_back(&self, switches: &BTreeSet<String>) -> Result<(), ArchiveError> {
        self.records.commit(&[], &[Change::put(DUE_BACK, json(switches))])?;
        Ok(())
    }

    /// Links that are kept out of use.
    pub fn kept_out(&self) -> Result<Vec<KeptOut>, ArchiveError> {
        Ok(self.document(KEPT_OUT)?.map(|(links, _)| links).unwrap_or_default())
    }

    /// Keeps which links are kept out of use.
    pub fn keep_kept_out(&self, links: &[KeptOut]) -> Result<(), ArchiveError> {
        self.records.commit(&[], &[Change::put(KEPT_OUT, json(&links))])?;
        Ok(())
    }

    /// Links that have failed, and how often in a row.
    pub fn failures(&self) -> Result<Vec<LinkFailures>, ArchiveError> {
        Ok(self.document(FAILURES)?.map(|(failures, _)| failures).unwrap_or_default())
    }

    /// Keeps which links have failed.
    pub fn keep_failures(&self, failures: &[LinkFailures]) -> Result<(), ArchiveError> {
        self.records.commit(&[], &[Change::put(FAILURES, json(&failures))])?;
        Ok(())
    }

    /// Writes something, which fails if nothing can be written.
    pub fn probe(&self, at_s: u64) -> Result<(), ArchiveError> {
        self.records.commit(&[], &[Change::put(PROBE, json(&at_s))])?;
        Ok(())
    }

    /// Where addresses were last that ports of this plan learn.
    pub fn addresses(&self, plan: &Plan) -> Result<BTreeMap<Mac, HostId>, ArchiveError> {
        let Some(record) = self.records.get(ADDRESSES)? else { return Ok(BTreeMap::new()) };
        let text = String::from_utf8_lossy(&record.value);
        let parsed = parse_record(&plan.topology, &text);
        let misread = |why: String| ArchiveError::Record { key: ADDRESSES.to_owned(), why };
        parsed.map(|record| record.known).map_err(|why| misread(why.to_string()))
    }

    /// Keeps where addresses are.
    pub fn keep_addresses(&self, plan: &Plan, known: &BTreeMap<Mac, HostId>) -> Result<(), ArchiveError> {
        let text = write_record(&plan.topology, known);
        self.records.commit(&[], &[Change::put(ADDRESSES, text)])?;
        Ok(())
    }

    fn text(&self, key: &str) -> Result<Option<String>, ControllerError> {
        let record = self.records.get(key).map_err(|error| refused(&error))?;
        Ok(record.map(|record| String::from_utf8_lossy(&record.value).into_owned()))
    }

    fn write(&self, changes: &[Change]) -> Result<(), ControllerError> {
        self.records.commit(&[], changes).map(drop).map_err(|error| refused(&error))
    }
}

fn event_write(change: &EventChange) -> Change {
    let event = change.event();
    match change {
        EventChange::Forgotten(_) => Change::delete(key("event", event.id)),
        _ => Change::put(key("event", event.id), json(event)),
    }
}

/// Documents sort by number as their keys do by bytes.
fn key(family: &str, number: u64) -> String {
    format!("{family}/{number:020}")
}

fn json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("documents have only keys that are text")
}

fn parse<T: DeserializeOwned>(key: &str, record: &Record) -> Result<T, ArchiveError> {
    serde_json::from_slice(&record.value)
        .map_err(|error| ArchiveError::Record { key: key.to_owned(), why: error.to_string() })
}

fn refused(error: &dyn std::fmt::Display) -> ControllerError {
    ControllerError::Request(error.to_string())
}

fn unreadable(key: &str, why: &dyn std::fmt::Display) -> ControllerError {
    ControllerError::Request(format!("the record {key} cannot be understood: {why}"))
}

/// What a deployment or an enrolment leaves for the next one.
impl Store for Archive {
    fn journal(&self) -> Result<Option<Journal>, ControllerError> {
        let Some(text) = self.text(JOURNAL)? else { return Ok(None) };
        parse_journal(&text).map(Some).map_err(|error| unreadable(JOURNAL, &error))
    }

    fn record(&self, journal: &Journal) -> Result<(), ControllerError> {
        self.write(&[Change::put(JOURNAL, write_journal(journal))])
    }

    fn finish(&self) -> Result<(), ControllerError> {
        self.write(&[Change::delete(JOURNAL)])
    }

    fn set_aside(&self) -> Result<String, ControllerError> {
        let text = self.text(JOURNAL)?.ok_or_else(|| unreadable(JOURNAL, &"there is none"))?;
        let place = "deploy/journal-set-aside";
        self.write(&[Change::put(place, text), Change::delete(JOURNAL)])?;
        Ok(place.to_owned())
    }

    fn generation(&self) -> Result<Option<u32>, ControllerError> {
        let Some(text) = self.text(GENERATION)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error| unreadable(GENERATION, &error))
    }

    fn claims(&self) -> Result<Vec<Mark>, ControllerError> {
        let text = self.text(CLAIMS)?.unwrap_or_default();
        text.lines().map(|line| line.parse().map_err(|_| unreadable(CLAIMS, &line))).collect()
    }

    fn claim(&self, mark: Mark) -> Result<(), ControllerError> {
        let mut claims = self.claims()?;
        if !claims.contains(&mark) {
            claims.push(mark);
        }
        let lines: Vec<String> = claims.iter().map(ToString::to_string).collect();
        self.write(&[Change::put(CLAIMS, lines.join("\n"))])
    }

    fn settle(&self, generation: u32) -> Result<(), ControllerError> {
        self.write(&[Change::put(GENERATION, generation.to_string()), Change::delete(CLAIMS)])
    }

    fn ledgers(&self) -> Result<Vec<KeptLedger>, ControllerError> {
        let mut ledgers = Vec::new();
        for (key, record) in self.records.list("ledger/", None, usize::MAX).map_err(|error| refused(&error))? {
            let text = String::from_utf8_lossy(&record.value).into_owned();
            ledgers.push(parse_ledger(&text).map_err(|error| unreadable(&key, &error))?);
        }
        ledgers.sort_by_key(|ledger| ledger.address.ip());
        Ok(ledgers)
    }

    fn keep_ledger(&self, ledger: &KeptLedger) -> Result<(), ControllerError> {
        self.write(&[Change::put(format!("ledger/{}", ledger.address.ip()), write_ledger(ledger))])
    }

    fn forget_ledger(&self, address: IpAddr) -> Result<(), ControllerError> {
        self.write(&[Change::delete(format!("ledger/{address}"))])
    }
}
