//! Who is served at once: so many in all and for each client, none for ever, and room for a newcomer when all seats are taken.
//!
//! ```text
//!   newcomer ─▶ its client has its share? ─▶ refused
//!            ─▶ a seat is free?           ─▶ seated
//!            ─▶ a client has more seats than the newcomer's will?  its oldest transfer leaves
//!            ─▶ a transfer is slow?                                the slowest leaves; else the newcomer is refused
//! ```
//!
//! No clock: `now_ms` comes with each call. Cost: O(seats) a call.

use std::{collections::BTreeMap, net::IpAddr};

/// Most transfers of one protocol at once.
pub const SEATS_MAX: usize = 64;
/// Most transfers of one client (an address, behind which there may be several switches) at once.
pub const CLIENT_SEATS_MAX: usize = SEATS_MAX / 2;
/// How long a transfer is left in peace before it may have to make room, in milliseconds.
pub const GRACE_MS: u64 = 5000;
/// Slower than this, in bytes a second, a transfer may have to make room, and in the end is given up.
pub const RATE_MIN: u64 = 4096;
/// How long any transfer may take, beyond the time for its bytes at [`RATE_MIN`], in milliseconds.
pub const PATIENCE_MS: u64 = 60_000;

/// How long a transfer of so many bytes may take in all, in milliseconds.
pub const fn time_limit_ms(bytes: u64) -> u64 {
    PATIENCE_MS + bytes * 1000 / RATE_MIN
}

/// A transfer that has a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeatId(u64);

/// What becomes of a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It has a seat.
    Seated(SeatId),
    /// It has a seat, and the other transfer's is gone.
    Instead(SeatId, SeatId),
    /// Its client has as many as it may have.
    ClientFull,
    /// All seats are taken by transfers that make progress.
    Full,
}

/// Who is served.
#[derive(Clone, Debug, Default)]
pub struct Seats {
    taken: BTreeMap<SeatId, Seat>,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    client: IpAddr,
    since_ms: u64,
    bytes: u64,
}

impl Seats {
    /// A transfer wants to begin.
    pub fn handle_request(&mut self, now_ms: u64, client: IpAddr) -> Admission {
        let own = self.of(client);
        if own >= CLIENT_SEATS_MAX {
            return Admission::ClientFull;
        }
        let leaves = if self.taken.len() < SEATS_MAX {
            None
        } else {
            match self.of_greediest(own + 1).or_else(|| self.slowest(now_ms)) {
                Some(leaves) => Some(leaves),
                None => return Admission::Full,
            }
        };
        self.next += 1;
        let id = SeatId(self.next);
        self.taken.insert(id, Seat { client, since_ms: now_ms, bytes: 0 });
        match leaves {
            None => Admission::Seated(id),
            Some(leaves) => {
                self.taken.remove(&leaves);
                Admission::Instead(id, leaves)
            }
        }
    }

    /// A transfer has brought so many bytes to its client, all in all. False if it has had to make room: it ends.
    #[must_use]
    pub fn handle_progress(&mut self, id: SeatId, bytes: u64) -> bool {
        self.taken.get_mut(&id).map(|seat| seat.bytes = bytes).is_some()
    }

    /// A transfer has ended.
    pub fn handle_end(&mut self, id: SeatId) {
        self.taken.remove(&id);
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.taken.len()
    }

    fn of(&self, client: IpAddr) -> usize {
        self.taken.values().filter(|seat| seat.client == client).count()
    }

    /// The oldest transfer of a client that has more seats than so many.
    fn of_greediest(&self, share: usize) -> Option<SeatId> {
        let greedy = self.taken.values().map(|seat| (self.of(seat.client), seat.client)).max()?;
        let its = |(_, seat): &(&SeatId, &Seat)| seat.client == greedy.1;
        (greedy.0 > share).then(|| self.taken.iter().find(its).map(|(id, _)| *id))?
    }

    /// The slowest transfer that is slower than it may be.
    fn slowest(&self, now_ms: u64) -> Option<SeatId> {
        let rate = |seat: &Seat| seat.bytes * 1000 / (now_ms.saturating_sub(seat.since_ms)).max(1);
        let old = self.taken.iter().filter(|(_, seat)| now_ms.saturating_sub(seat.since_ms) >= GRACE_MS);
        let slow = old.map(|(id, seat)| (rate(seat), *id)).filter(|(rate, _)| *rate < RATE_MIN);
        slow.min().map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u16) -> IpAddr {
        let [high, low] = number.to_be_bytes();
        IpAddr::from([192, 0, high, low])
    }

    fn full(seats: &mut Seats, clients: u16) -> Vec<SeatId> {
        (0..SEATS_MAX as u16)
            .map(|number| match seats.handle_request(0, client(number % clients)) {
                Admission::Seated(id) => id,
                other => panic!("{number}: {other:?}"),
            })
            .collect()
    }

    #[test]
    fn one_client_has_its_share_and_no_more() {
        let mut seats = Seats::default();
        for _ in 0..CLIENT_SEATS_MAX {
            assert!(matches!(seats.handle_request(0, client(1)), Admission::Seated(_)));
        }
        assert_eq!(seats.handle_request(0, client(1)), Admission::ClientFull);
        assert!(matches!(seats.handle_request(0, client(2)), Admission::Seated(_)));
    }

    #[test]
    fn a_client_with_many_seats_makes_room_for_one_with_none() {
        let mut seats = Seats::default();
        let ids = full(&mut seats, 8);
        let Admission::Instead(id, left) = seats.handle_request(0, client(100)) else {
            panic!("eight have eight each")
        };
        assert!(ids.contains(&left) && !seats.handle_progress(left, 1) && seats.handle_progress(id, 1));
        assert_eq!(seats.taken(), SEATS_MAX);
        // Until all have the same.
        let mut others = 0;
        while let Admission::Instead(..) = seats.handle_request(0, client(200 + others)) {
            others += 1;
        }
        assert_eq!((others, seats.taken()), (SEATS_MAX as u16 - 9, SEATS_MAX));
    }

    #[test]
    fn who_is_slow_makes_room_and_who_is_not_stays() {
        let mut seats = Seats::default();
        let ids = full(&mut seats, SEATS_MAX as u16);
        assert_eq!(seats.handle_request(GRACE_MS - 1, client(100)), Admission::Full);
        for (number, id) in ids.iter().enumerate() {
            let bytes = if number == 7 { 100 } else { 10 * RATE_MIN * GRACE_MS / 1000 };
            assert!(seats.handle_progress(*id, bytes));
        }
        let Admission::Instead(_, left) = seats.handle_request(GRACE_MS, client(100)) else { panic!("one is slow") };
        assert_eq!(left, ids[7]);
        assert_eq!(seats.handle_request(GRACE_MS, client(101)), Admission::Full);
        seats.handle_end(ids[0]);
        assert!(matches!(seats.handle_request(GRACE_MS, client(101)), Admission::Seated(_)));
    }

    #[test]
    fn the_time_for_a_transfer_is_bounded() {
        assert_eq!(time_limit_ms(0), 60_000);
        assert_eq!(time_limit_ms(400_000), 157_656);
    }
}
