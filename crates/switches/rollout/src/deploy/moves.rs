//! A storm's signature where nothing counts: addresses that come back to ports of a switch which they had left.
//!
//! ```text
//!            ┌────┐ p2 ══▶ … ══╗      1st reading: h at p2
//!   h ──▶ p1 │ s1 │            ║      2nd reading: h at p3
//!            └────┘ p3 ◀══ … ══╝      3rd reading: h at p2, where it was before: a return
//! ```
//! In a fabric without loops the frames of one station enter a switch in one VLAN by one port, so its address is learned at
//! that port and stays there. Whoever moves the station moves the address, once. In a loop a broadcast comes back by both
//! ports of the loop, thousands of times a second, and every reading finds the address at the port of the last one. So a
//! move says little and a return much: an address that has returned [`STORM_RETURNS`] times is a storm.
//!
//! Broadcast counters are read with one object a port, in the same request as the port's state, and see a storm of any form
//! (`flood.rs`). A table takes at least one request more a reading, and not all of a large table fits into it. So tables are
//! read only of switches whose counters are missing or have not moved since the watch began, and a reading takes
//! a bounded number of rows; the next one goes on behind them. An address is compared with itself whenever its row is read
//! again, so no reading has to be whole.
//!
//! Not seen are loops that pass frames in one direction alone, since the address then stays at one port, and addresses with
//! static entries, which never move. A station whose address is used at two ports at once (a bond without LACP) returns as
//! in a storm, and is named by its address.
//!
//! Source: IEEE 802.1Q, 8.7 (an entry names the port of the last frame); dot1qTpFdbPort, RFC 4363.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Mac, SwitchId};

use super::Weather;
use switch_model::{Slot, sight::Sight};

/// Returns of one address that are a storm.
pub const STORM_RETURNS: usize = 3;
/// Readings that find an address which has moved at the same port, until nothing is doubtful about it any more.
const STEADY: usize = 24;
/// Most addresses that are remembered; more are not looked at.
const TRAILS_MAX: usize = 1 << 16;
/// Most addresses that a storm is reported with.
const FLAPS_MAX: usize = 6;

/// An address that moves to and fro between ports of a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flap {
    /// The switch.
    pub switch: SwitchId,
    /// The address.
    pub mac: Mac,
    /// Ports that it was read at.
    pub ports: BTreeSet<Slot>,
    /// How often it has come back to one of them.
    pub returns: usize,
}

/// Where addresses were read so far.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    trails: BTreeMap<(SwitchId, u32, Mac), Trail>,
}

/// Where an address was read.
#[derive(Clone, Debug)]
struct Trail {
    at: Slot,
    ports: BTreeSet<Slot>,
    returns: usize,
    /// Readings that found it where it is, since it last moved.
    steady: usize,
}

impl Moves {
    /// Takes a reading, `sights[switch]`. Cost: O(rows · log addresses).
    pub fn handle_reading(&mut self, sights: &[Option<Sight>]) -> Weather<Flap> {
        let mut weather = Weather::Calm;
        for (index, sight) in sights.iter().enumerate() {
            let rows = sight.as_ref().and_then(|sight| sight.learned.as_deref()).unwrap_or_default();
            for row in rows {
                let key = (SwitchId::new(index), row.database, row.mac);
                if self.trails.len() >= TRAILS_MAX && !self.trails.contains_key(&key) {
                    continue;
                }
                let fresh = Trail { at: row.at, ports: BTreeSet::from([row.at]), returns: 0, steady: 0 };
                let trail = self.trails.entry(key).or_insert(fresh);
                if trail.at == row.at {
                    trail.steady += 1;
                } else {
                    let returned = !trail.ports.insert(row.at);
                    (trail.at, trail.steady) = (row.at, 0);
                    trail.returns += usize::from(returned);
                }
                if trail.ports.len() > 1 && trail.steady < STEADY {
                    weather = Weather::Doubtful;
                }
            }
        }
        let flaps = self.flaps();
        if flaps.is_empty() { weather } else { Weather::Storm(flaps) }
    }

    /// Forgets where addresses were.
    pub fn forget(&mut self) {
        self.trails.clear();
    }

    /// Addresses that have returned too often, those with the most returns first.
    fn flaps(&self) -> Vec<Flap> {
        let often = self.trails.iter().filter(|(_, trail)| trail.returns >= STORM_RETURNS);
        let flap = |((switch, _, mac), trail): (&(SwitchId, u32, Mac), &Trail)| Flap {
            switch: *switch,
            mac: *mac,
            ports: trail.ports.clone(),
            returns: trail.returns,
        };
        let mut flaps: Vec<Flap> = often.map(flap).collect();
        flaps.sort_by(|a, b| b.returns.cmp(&a.returns).then_with(|| a.cmp(b)));
        flaps.truncate(FLAPS_MAX);
        flaps
    }
}

#[cfg(test)]
mod tests {
    use fabric::rng::Rng;

    use super::*;
    use switch_model::sight::Learned;

    const SEEDS: u64 = 300;
    /// Readings of one watch.
    const READINGS: usize = 60;

    fn sight(rows: &[Learned]) -> Option<Sight> {
        Some(Sight { learned: Some(rows.to_vec()), ..Sight::default() })
    }

    fn row(station: usize, at: usize) -> Learned {
        Learned { database: 2, mac: Mac::local(station as u32 + 1), at: Slot::new(at) }
    }

    /// Stations that are moved once or twice, that age, and tables of which each reading shows a part, are no storm.
    #[test]
    fn stations_that_are_moved_are_no_storm() {
        for seed in 0..SEEDS {
            let mut rng = Rng::new(seed);
            let (switches, stations) = (1 + rng.below(4), 1 + rng.below(12));
            let mut places: Vec<Vec<usize>> =
                (0..switches).map(|_| (0..stations).map(|_| rng.below(5)).collect()).collect();
            let mut moves_left = vec![2; stations];
            let mut moves = Moves::default();
            for reading in 0..READINGS {
                let station = rng.below(stations);
                if moves_left[station] > 0 && rng.below(6) == 0 {
                    moves_left[station] -= 1;
                    places.iter_mut().for_each(|places| places[station] = rng.below(5));
                }
                let sights: Vec<Option<Sight>> = (places.iter())
                    .map(|places| {
                        let part = (0..stations).filter(|_| rng.below(4) > 0).collect::<Vec<_>>();
                        sight(&part.into_iter().map(|station| row(station, places[station])).collect::<Vec<_>>())
                    })
                    .collect();
                let weather = moves.handle_reading(&sights);
                assert!(!matches!(weather, Weather::Storm(_)), "seed {seed}, reading {reading}: {weather:?}");
            }
            // Nothing moves any more, and everything is read.
            for _ in 0..=STEADY {
                let all = |places: &Vec<usize>| (0..stations).map(|at| row(at, places[at])).collect::<Vec<_>>();
                let sights: Vec<Option<Sight>> = places.iter().map(|places| sight(&all(places))).collect();
                moves.handle_reading(&sights);
            }
            let none: Vec<Option<Sight>> = vec![None; switches];
            assert_eq!(moves.handle_reading(&none), Weather::Calm, "seed {seed}");
        }
    }

    /// Whatever share of the table a reading shows, an address that comes by either port of a loop at random is found, and
    /// named with ports of the loop alone.
    #[test]
    fn a_loop_is_a_storm_within_bounded_readings() {
        let mut slowest = 0;
        for seed in 0..SEEDS {
            let mut rng = Rng::new(seed);
            let (switches, stations) = (1 + rng.below(4), 1 + rng.below(12));
            let (share, mut moves) = (1 + rng.below(4), Moves::default());
            let storm = (0..READINGS * 4).find_map(|reading| {
                let sights: Vec<Option<Sight>> = (0..switches)
                    .map(|_| {
                        let part: Vec<usize> = (0..stations).filter(|_| rng.below(share) == 0).collect();
                        sight(&part.into_iter().map(|station| row(station, 1 + rng.below(2))).collect::<Vec<_>>())
                    })
                    .collect();
                match moves.handle_reading(&sights) {
                    Weather::Storm(flaps) => Some((reading, flaps)),
                    _ => None,
                }
            });
            let (reading, flaps) = storm.unwrap_or_else(|| panic!("seed {seed}: no storm is seen"));
            slowest = slowest.max(reading);
            let both = BTreeSet::from([Slot::new(1), Slot::new(2)]);
            assert!(
                flaps.iter().all(|flap| flap.ports == both && flap.returns >= STORM_RETURNS),
                "seed {seed}: {flaps:?}"
            );
        }
        assert!(slowest > 3, "three returns take at least five readings: {slowest}");
    }

    #[test]
    fn the_third_return_is_a_storm_and_no_earlier_one() {
        let mut moves = Moves::default();
        let mut read = |at: usize| moves.handle_reading(&[sight(&[row(0, at)])]);
        assert_eq!(read(1), Weather::Calm);
        for at in [2, 1, 2] {
            assert_eq!(read(at), Weather::Doubtful, "at {at}");
        }
        let storm = read(1);
        let ports = BTreeSet::from([Slot::new(1), Slot::new(2)]);
        let flap = Flap { switch: SwitchId::new(0), mac: Mac::local(1), ports, returns: STORM_RETURNS };
        assert_eq!(storm, Weather::Storm(vec![flap]));
        moves.forget();
        assert_eq!(moves.handle_reading(&[sight(&[row(0, 2)])]), Weather::Calm);
    }

    /// One address in two filtering databases is two: in each VLAN it has a port of its own.
    #[test]
    fn each_filtering_database_has_ports_of_its_own() {
        let mut moves = Moves::default();
        for _ in 0..20 {
            for (database, at) in [(2, 1), (3, 2)] {
                let row = Learned { database, ..row(0, at) };
                assert_eq!(moves.handle_reading(&[sight(&[row])]), Weather::Calm);
            }
        }
    }
}
