//! Heartbeats of a host that tags its own frames: which of its paths fail and what it sends to whom.
//!
//! The thread that watches the paths only notes verdicts; this one reads counters and waits for the controller.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use api_client::{
    Endpoint,
    documents::{FailingPath, Heartbeat, PathLoss, SentBytes},
};
use fabric::{Mac, VlanSet};
use tagger::{
    daemon::Notice,
    device::Tagged,
    health::{PathId, Verdict, Why},
    paths::Paths,
};

use super::send;

/// Destinations of a heartbeat, those that were sent most to.
const DESTINATIONS_MAX: usize = 4096;

/// Sends heartbeats of a tagger.
pub(in crate::commands) struct TaggerHeartbeats<'a> {
    pub(in crate::commands) endpoint: &'a Endpoint,
    pub(in crate::commands) tagged: &'a Tagged,
    pub(in crate::commands) paths: &'a Paths,
    /// The VLANs whose paths are watched.
    pub(in crate::commands) vlans: &'a VlanSet,
    pub(in crate::commands) every_s: u64,
    pub(in crate::commands) verdicts: Verdicts,
}

/// Paths that fail, as far as is known.
#[derive(Default)]
pub(in crate::commands) struct Verdicts {
    failing: Mutex<BTreeMap<PathId, FailingPath>>,
    is_news: AtomicBool,
}

impl TaggerHeartbeats<'_> {
    /// Takes a verdict. A path that is late is by comparison alone, and does not fail.
    pub(in crate::commands) fn note(&self, notice: &Notice) {
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

    /// Sends heartbeats until `stop` says so.
    pub(in crate::commands) fn send(&self, stop: &dyn Fn() -> bool) {
        let is_news = &self.verdicts.is_news;
        let mut heartbeats = || {
            is_news.store(false, Ordering::SeqCst);
            vec![self.heartbeat()]
        };
        send(self.endpoint, self.every_s, stop, &|| is_news.load(Ordering::SeqCst), &mut heartbeats);
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
            ..Heartbeat::default()
        }
    }
}
