//! What a worker's connections know together of the paths that they share.

use ri2n::{Neighbours, Path, Time};
use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Silence after which an answer is news to all connections: longer than what one of them would wait before it suspects a path.
const NEWS_AFTER: Duration = Duration::from_millis(50);
/// Paths that are remembered; beyond, those of which nothing was heard for longest are forgotten.
const PATHS_MAX: usize = 4096;

/// When the last packet was sent on each path that was answered.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    answered: HashMap<(Option<IpAddr>, SocketAddr), Time>,
    count: usize,
    /// Connections that had data waiting when they were last looked at.
    backlogged: HashSet<u32>,
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
    pub(crate) fn meet(&mut self, path: &Path, answered: Time) -> Time {
        if self.answered.len() >= PATHS_MAX {
            let mut all: Vec<Time> = self.answered.values().copied().collect();
            let (_, middle, _) = all.select_nth_unstable(PATHS_MAX / 2);
            let middle = *middle;
            self.answered.retain(|_, at| *at > middle);
        }
        let known = self.answered.entry((path.local, path.remote)).or_insert(answered);
        self.has_news |= answered.since(*known) > NEWS_AFTER;
        *known = answered.max(*known);
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
        let path = |ip: u32| Path { local: None, interface: 0, remote: (std::net::Ipv4Addr::from(ip), 9).into() };
        let mut paths = Paths::default();
        assert_eq!(paths.meet(&path(1), ms(100)), ms(100));
        assert_eq!((paths.meet(&path(1), ms(90)), paths.meet(&path(2), ms(90))), (ms(100), ms(90)));
        assert_eq!((paths.meet(&path(1), ms(140)), paths.take_news()), (ms(140), false));
        assert_eq!((paths.meet(&path(1), ms(300)), paths.take_news(), paths.take_news()), (ms(300), true, false));
        for ip in 0..3 * PATHS_MAX as u32 {
            paths.meet(&path(ip), ms(1000 + u64::from(ip)));
        }
        assert!(paths.answered.len() <= PATHS_MAX);
        assert_eq!(paths.meet(&path(3 * PATHS_MAX as u32 - 1), ms(0)), ms(999 + 3 * PATHS_MAX as u64));
    }
}
