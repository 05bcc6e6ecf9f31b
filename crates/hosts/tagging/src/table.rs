//! What one host puts on its frames: a VLAN, or several to spread over, for every destination.
//!
//! ```text
//!   02:00:00:00:00:05   ─▶ 3
//!   02:00:00:00:00:06   ─▶ 2, 4 by flow
//!   group, unknown      ─▶ 2            one VLAN a source, so that one copy arrives
//!   tags taken off      2-5           in classes of their own, if the plan has lanes
//! ```

use std::{collections::BTreeMap, fmt};

use fabric::{Mac, VlanId, VlanSet};

/// Most VLANs that the frames for one destination are spread over.
pub const CHOICES_MAX: usize = 8;

/// Most destinations of a table.
pub const DESTINATIONS_MAX: usize = 65_536;

/// The highest class of traffic (IEEE 802.1Q).
pub const CLASS_MAX: u8 = 7;

/// A host's table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TaggingTable {
    /// Where frames for a station go.
    pub destinations: BTreeMap<Mac, Route>,
    /// Where broadcast, multicast and frames for stations that are not listed go; none drops them.
    pub group: Option<Route>,
    /// VLANs whose tag is taken off what comes in.
    pub receive: VlanSet,
    /// The class that frames leave in.
    pub classes: Classes,
}

/// Which of the eight classes of traffic (IEEE 802.1Q priorities) frames leave in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Classes {
    /// That of their VLAN, 0 to 7; those that are not listed have 0. A plan with priority flow control has a class for each
    /// lane, and its proof against deadlock holds for frames in the class of their VLAN's lane.
    Vlan(BTreeMap<VlanId, u8>),
    /// That which each asks for by its DSCP: the upper three bits, at most 5, as those above are the network's own; 0
    /// for what is not IP.
    Dscp,
}

impl Classes {
    /// The class of a VLAN's frames; none if each has its own.
    pub fn of(&self, vlan: VlanId) -> Option<u8> {
        match self {
            Self::Vlan(classes) => Some(classes.get(&vlan).copied().unwrap_or(0)),
            Self::Dscp => None,
        }
    }

    /// As a [configuration](crate::Config) says it after `class`: a class and its VLANs, one line for each but class 0, or
    /// `dscp`.
    pub fn lines(&self) -> Vec<String> {
        let Self::Vlan(classes) = self else { return vec!["dscp".to_owned()] };
        let vlans = |class| classes.iter().filter(move |(_, of)| **of == class).map(|(vlan, _)| *vlan);
        let line = |class| Some((class, vlans(class).collect::<VlanSet>())).filter(|(_, vlans)| !vlans.is_empty());
        (1..=CLASS_MAX).filter_map(line).map(|(class, vlans)| format!("{class} {vlans}")).collect()
    }
}

impl Default for Classes {
    fn default() -> Self {
        Self::Vlan(BTreeMap::new())
    }
}

/// The VLANs for one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// One to [`CHOICES_MAX`].
    choices: Vec<VlanId>,
    /// How frames are spread over them.
    spread: Spread,
}

/// How frames for one destination are spread over its VLANs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All go by the first.
    First,
    /// All go by the first, but those from a source port of 61,440 or above: these
    /// choose, as they do in the spreads below. Port mod [`CHOICES_MAX`] is the place in the list, counted round where the
    /// list is shorter.
    Port,
    /// By a hash of addresses, protocol and ports; both directions of a flow alike.
    Flow,
    /// By flow, and a flow may take another VLAN after a pause of this length. A pause longer than the paths differ
    /// keeps frames in order.
    Flowlet {
        /// In microseconds.
        gap_us: u32,
    },
    /// All go by the first; the daemon (`tagger run`) places long flows.
    Placed,
}

impl Route {
    /// One VLAN.
    pub fn single(vlan: VlanId) -> Self {
        Self { choices: vec![vlan], spread: Spread::First }
    }

    /// Several VLANs; those beyond [`CHOICES_MAX`] are left out. None without any.
    pub fn spread(choices: impl IntoIterator<Item = VlanId>, spread: Spread) -> Option<Self> {
        let choices: Vec<VlanId> = choices.into_iter().take(CHOICES_MAX).collect();
        (!choices.is_empty()).then_some(Self { choices, spread })
    }

    /// The VLANs, in order of preference; never empty.
    pub fn choices(&self) -> &[VlanId] {
        &self.choices
    }

    /// How frames are spread over them.
    pub fn how(&self) -> Spread {
        self.spread
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match self.spread {
            Spread::First => &self.choices[..1],
            Spread::Port | Spread::Flow | Spread::Flowlet { .. } | Spread::Placed => &self.choices[..],
        };
        let words: Vec<String> = shown.iter().map(VlanId::to_string).collect();
        f.write_str(&words.join(","))?;
        match self.spread {
            Spread::First => Ok(()),
            Spread::Port => f.write_str(" by port"),
            Spread::Flow => f.write_str(" by flow"),
            Spread::Flowlet { gap_us } => write!(f, " by flowlet of {gap_us} us"),
            Spread::Placed => f.write_str(" placed"),
        }
    }
}

/// Gives every destination a slot for its counters. Those that were there keep theirs, so that counters go on; the
/// others get free ones, lowest first. Cost: O(n log n).
///
/// # Errors
/// How many slots would be needed, if `room` is too small.
pub fn assign_slots<'a>(
    before: &BTreeMap<Mac, u32>,
    destinations: impl Iterator<Item = &'a Mac> + Clone,
    room: u32,
) -> Result<BTreeMap<Mac, u32>, usize> {
    let mut slots: BTreeMap<Mac, u32> = destinations
        .clone()
        .filter_map(|mac| Some((*mac, *before.get(mac)?)))
        .filter(|(_, slot)| *slot < room)
        .collect();
    let mut taken: Vec<u32> = slots.values().copied().collect();
    taken.sort_unstable();
    let mut taken = taken.into_iter().peekable();
    let mut free = (0..room).filter(move |slot| taken.next_if_eq(slot).is_none());
    let needed = destinations.clone().count();
    for mac in destinations {
        if !slots.contains_key(mac) {
            slots.insert(*mac, free.next().ok_or(needed)?);
        }
    }
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_stay_with_their_destination() {
        let macs: Vec<Mac> = (0..5).map(Mac::local).collect();
        let first = assign_slots(&BTreeMap::new(), macs[..3].iter(), 4).expect("room");
        assert_eq!(first.values().copied().collect::<Vec<_>>(), [0, 1, 2]);
        let second = assign_slots(&first, macs[1..5].iter(), 4).expect("room");
        assert_eq!([1, 2, 3, 4].map(|mac| second[&macs[mac]]), [1, 2, 0, 3]);
        assert_eq!(assign_slots(&second, macs.iter(), 4), Err(5));
    }

    #[test]
    fn a_route_has_one_to_eight_vlans() {
        let vlans = (2..40).map(|id| VlanId::new(id).expect("in range"));
        assert_eq!(Route::spread(vlans, Spread::Flow).expect("some").choices().len(), CHOICES_MAX);
        assert_eq!(Route::spread([], Spread::Flow), None);
    }
}
