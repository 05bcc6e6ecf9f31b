//! What a worker's connections know together of the paths that they share.

use crate::ids::IdSet;
use ri2n::{Neighbours, Path, PathKnowledge, PathReport, Time};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Silence after which an answer is news to all connections: longer than what one of them would wait before it suspects a path.
const NEWS_AFTER: Duration = Duration::from_millis(50);
/// Paths that are remembered; beyond, those of which nothing was heard for longest are forgotten.
const PATHS_MAX: usize = 4096;

/// What is known of each path.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    known: HashMap<(Option<IpAddr>, SocketAddr, u8), PathKnowledge>,
    count: usize,
    /// Connections that had data waiting when they were last looked at.
    backlogged: IdSet,
    has_news: bool,
}

impl Paths {
    /// Notes how many connections there are.
    pub(crate) fn set_count(&mut self, count: usize) {
        self.count = count;
    }

    /// How many connections there are, and how many have data waiting.
    pub(crate) fn neighbours(&self) -> Neighbours {
        Neighbours { connections: self.count, backlogged: self.backlogged.len() }
    }

    /// Notes whether a connection has data waiting.
    pub(crate) fn note_backlog(&mut self, id: u32, is_backlogged: bool) {
        if is_backlogged {
            self.backlogged.insert(id);
        } else {
            self.backlogged.remove(&id);
        }
    }

    /// Takes in what one connection knows of a path, and returns what all know.
    pub(crate) fn meet(&mut self, path: &Path, report: &PathReport) -> PathKnowledge {
        if self.known.len() >= PATHS_MAX {
            let mut all: Vec<Time> = self.known.values().map(PathKnowledge::answered).collect();
            let (_, middle, _) = all.select_nth_unstable(PATHS_MAX / 2);
            let middle = *middle;
            self.known.retain(|_, known| known.answered() > middle);
        }
        let known = self.known.entry((path.local, path.remote, path.entropy)).or_default();
        let is_known = known.answered() > Time::ZERO;
        self.has_news |= is_known && report.answered.since(known.answered()) > NEWS_AFTER;
        known.learn(report);
        *known
    }

    /// Whether a path has answered after silence since the last call, which all connections want to know.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_knows_all_know_and_an_answer_after_silence_is_news() {
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let path =
            |ip: u32| Path { local: None, interface: 0, entropy: 0, remote: (std::net::Ipv4Addr::from(ip), 9).into() };
        let mut paths = Paths::default();
        let meet = |paths: &mut Paths, ip, at| {
            paths.meet(&path(ip), &PathReport { answered: ms(at), answer_time: None }).answered()
        };
        assert_eq!(meet(&mut paths, 1, 100), ms(100));
        assert_eq!((meet(&mut paths, 1, 90), meet(&mut paths, 2, 90)), (ms(100), ms(90)));
        assert_eq!((meet(&mut paths, 1, 140), paths.take_news()), (ms(140), false));
        assert_eq!((meet(&mut paths, 1, 300), paths.take_news(), paths.take_news()), (ms(300), true, false));
        for ip in 0..3 * PATHS_MAX as u32 {
            meet(&mut paths, ip, 1000 + u64::from(ip));
        }
        assert!(paths.known.len() <= PATHS_MAX);
        assert_eq!(meet(&mut paths, 3 * PATHS_MAX as u32 - 1, 0), ms(999 + 3 * PATHS_MAX as u64));
    }
}
