//! Heartbeats of a host that tags its own frames: which of its paths fail and what it sends to whom, told to espalierd.
//!
//! The thread that watches the paths only notes verdicts; this one reads counters and waits for the controller.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use api_client::{
    Ask, Endpoint,
    documents::{FailingPath, Heartbeat, PathLoss, SentBytes},
};
use fabric::{Mac, VlanSet};
use tagger::{
    daemon::Notice,
    device::Tagged,
    health::{PathId, Verdict, Why},
    paths::Paths,
};

/// How long the controller may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How soon a new verdict is sent after the heartbeat before.
const SOON: Duration = Duration::from_secs(1);
/// Longest sleep, so that a request to end is heard.
const NAP: Duration = Duration::from_millis(100);
/// Destinations of a heartbeat, those that were sent most to.
const DESTINATIONS_MAX: usize = 4096;

/// Whoever sends heartbeats.
pub(super) struct Heartbeats<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) tagged: &'a Tagged,
    pub(super) paths: &'a Paths,
    /// The VLANs whose paths are watched.
    pub(super) vlans: &'a VlanSet,
    pub(super) every_s: u64,
    pub(super) verdicts: Verdicts,
}

/// Paths that fail, as far as is known.
#[derive(Default)]
pub(super) struct Verdicts {
    failing: Mutex<BTreeMap<PathId, FailingPath>>,
    is_news: AtomicBool,
}

impl Heartbeats<'_> {
    /// Takes a verdict. A path that is late is by comparison alone, and does not fail.
    pub(super) fn note(&self, notice: &Notice) {
        let Some(path) = self.paths.path(notice.toward, notice.vlan) else { return };
        let loss = match notice.verdict {
            Verdict::Sick(Why::Silent) => Some(PathLoss::Silent),
            Verdict::Sick(Why::Lossy) => Some(PathLoss::Lossy),
            Verdict::Sick(Why::Late) | Verdict::Healthy => None,
        };
        let mut failing = self.verdicts.failing.lock().unwrap_or_else(PoisonError::into_inner);
        match loss {
            Some(loss) => {
                let toward = notice.toward.to_string();
                failing.insert(path, FailingPath { vlan: notice.vlan.get(), toward, loss });
            }
            None => drop(failing.remove(&path)),
        }
        self.verdicts.is_news.store(true, Ordering::SeqCst);
    }

    /// Sends heartbeats until `stop` says so. A controller that does not take them is told of once, and asked again.
    pub(super) fn send(&self, stop: &dyn Fn() -> bool) {
        let mut is_heard = true;
        while !stop() {
            let begun = Instant::now();
            self.verdicts.is_news.store(false, Ordering::SeqCst);
            let sent = serde_json::to_vec(&self.heartbeat()).map_err(|error| error.to_string());
            let sent = sent.and_then(|body| self.endpoint.send(Ask::post("/v1/heartbeats", body), ANSWER_MAX));
            match &sent {
                Err(why) if is_heard => {
                    eprintln!("espalier: no heartbeat: {why}; trying again every {} s", self.every_s)
                }
                Ok(()) if !is_heard => eprintln!("{}: heartbeats arrive again", self.endpoint),
                _ => {}
            }
            is_heard = sent.is_ok();
            let is_due = |waited: Duration| {
                let has_news = is_heard && self.verdicts.is_news.load(Ordering::SeqCst);
                waited >= Duration::from_secs(self.every_s) || has_news && waited >= SOON
            };
            while !stop() && !is_due(begun.elapsed()) {
                thread::sleep(NAP);
            }
        }
    }

    fn heartbeat(&self) -> Heartbeat {
        let failing = self.verdicts.failing.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        // Where somebody has replaced the table, the watcher ends and says why.
        let counted = self.tagged.sent().unwrap_or_default();
        let mut sent: Vec<(u64, Mac)> = (counted.into_iter())
            .filter(|(to, count)| count.bytes > 0 && *to != Mac::BROADCAST)
            .map(|(to, count)| (count.bytes, to))
            .collect();
        sent.sort_unstable_by(|one, other| other.cmp(one));
        let sent = sent.into_iter().take(DESTINATIONS_MAX);
        Heartbeat {
            host: self.tagged.mac().to_string(),
            every_s: self.every_s,
            vlans: self.vlans.to_string(),
            failing,
            sent: sent.map(|(bytes, to)| SentBytes { to: to.to_string(), bytes }).collect(),
        }
    }
}
