//! Messages and receives of one rank that wait for each other, matched as MPI does.
//!
//! A message goes to the receive that was posted first of those that suit it; a receive takes the message that came first
//! of those that suit it. Receives that name sender and tag, nearly all, are found by these; the others are searched.

use std::collections::{BTreeMap, VecDeque};

use super::{COLLECTIVE_TAG, token::Token};

/// See above.
#[derive(Default)]
pub(super) struct Mailbox {
    /// Receives that name sender and tag: their order, and the action.
    posted: BTreeMap<(u32, u32), VecDeque<(u64, u32)>>,
    /// Receives that leave one or both open, in order.
    open: VecDeque<Open>,
    /// Messages that nobody has asked for yet, with the order of their arrival.
    unexpected: BTreeMap<(u32, u32), VecDeque<(u64, Token)>>,
    counter: u64,
}

struct Open {
    order: u64,
    from: Option<u32>,
    tag: Option<u32>,
    action: u32,
}

impl Mailbox {
    /// The receive that takes a message.
    pub(super) fn take_receive(&mut self, from: u32, tag: u32) -> Option<u32> {
        let exact = self.posted.get(&(from, tag)).and_then(|queue| queue.front()).map(|(order, _)| *order);
        let open = self.open.iter().position(|open| suits(open.from, open.tag, from, tag));
        match open {
            Some(at) if exact.is_none_or(|order| self.open[at].order < order) => {
                self.open.remove(at).map(|open| open.action)
            }
            _ => take_first(&mut self.posted, (from, tag)).map(|(_, action)| action),
        }
    }

    /// The message that a receive takes.
    pub(super) fn take_message(&mut self, from: Option<u32>, tag: Option<u32>) -> Option<Token> {
        let key = match (from, tag) {
            (Some(from), Some(tag)) => (from, tag),
            _ => {
                let suiting = self.unexpected.iter().filter(|((f, t), _)| suits(from, tag, *f, *t));
                *suiting.min_by_key(|(_, queue)| queue.front().map(|(order, _)| *order))?.0
            }
        };
        take_first(&mut self.unexpected, key).map(|(_, token)| token)
    }

    /// Nobody has asked for this message yet.
    pub(super) fn keep_message(&mut self, from: u32, tag: u32, token: Token) {
        let order = self.next();
        self.unexpected.entry((from, tag)).or_default().push_back((order, token));
    }

    /// The message for this receive has not come yet.
    pub(super) fn keep_receive(&mut self, from: Option<u32>, tag: Option<u32>, action: u32) {
        let order = self.next();
        match (from, tag) {
            (Some(from), Some(tag)) => self.posted.entry((from, tag)).or_default().push_back((order, action)),
            _ => self.open.push_back(Open { order, from, tag, action }),
        }
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}

fn suits(wanted_from: Option<u32>, wanted_tag: Option<u32>, from: u32, tag: u32) -> bool {
    wanted_from.is_none_or(|wanted| wanted == from) && wanted_tag.map_or(tag < COLLECTIVE_TAG, |wanted| wanted == tag)
}

/// The first of a queue, which goes when it is empty.
fn take_first<T>(queues: &mut BTreeMap<(u32, u32), VecDeque<T>>, key: (u32, u32)) -> Option<T> {
    let queue = queues.get_mut(&key)?;
    let first = queue.pop_front();
    if queue.is_empty() {
        queues.remove(&key);
    }
    first
}
