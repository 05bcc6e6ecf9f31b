//! How many of the paths between two addresses a stream uses.
//!
//! Links between the same two addresses differ by their source ports, which a network carries apart. The first of them is opened and
//! kept as any link is. The further ones are *unused* until a stream needs them, and again when it no longer does: an unused link
//! sends nothing, so a thousand streams that wait for their turn do not ask after eight thousand paths.
//!
//! ```text
//!   all windows are full, and hold three packets for each link, it included  ──▶ one path more
//!   they are full, and there was more to send for a second                   ──▶ one path more, until all are in use
//!   a link between the same addresses is suspected                           ──▶ one path more
//!   the windows hold less than two packets for each link, not yet a second   ──▶ without that of the smallest window
//!   no data on a path for two seconds, or nothing answers there              ──▶ without that path
//! ```
//!
//! So a stream of bulk data uses all paths, and one of messages, on a busy network, few. A client whose peer has more to say tells it of
//! one path after the other.

use super::{Connection, Role, timers::IN_USE};
use crate::{
    health::{Health, PROBE_INTERVAL},
    link::{Link, LinkId},
    time::Time,
};
use std::time::Duration;

/// Packets that the windows of all links between two addresses hold for each of them, one more included, when that is added.
const PACKETS_TO_ADD: f64 = 3.0;
/// The same below which one of them is left: that of the smallest window.
const PACKETS_TO_KEEP: f64 = 2.0;
/// After so long with more to send than the windows allow, data are bulk: every path may be the one that has room.
const BULK_AFTER: Duration = Duration::from_secs(1);
/// How long a path that was left is not tried again for data.
const RETRY_AFTER: Duration = Duration::from_millis(100);

impl Connection {
    /// Opens a further path between two addresses whose links are all full. Returns whether it did.
    pub(super) fn add_path_for_data(&mut self, now: Time) -> bool {
        self.backlogged_since.get_or_insert(now);
        let is_bulk = self.sends_bulk(now);
        let may_carry = |link: &Link| {
            let (windows, links) = self.windows_beside(link);
            let has_room = is_bulk || windows >= PACKETS_TO_ADD * (links + 1) as f64;
            has_room && (link.packets_sent == 0 || now.since(link.monitor.changed_at) >= RETRY_AFTER)
        };
        if self.has_carried_little() {
            return false;
        }
        let wanted = self.unused_path(now, may_carry);
        self.open_path(now, wanted)
    }

    /// Leaves a path on which nothing is in flight if the windows between its ends are too small for so many.
    pub(super) fn leave_path(&mut self, now: Time, index: usize) {
        let Some(link) = self.links[index].as_ref().filter(|link| self.may_be_left(link)) else { return };
        let (windows, links) = self.windows_beside(link);
        let is_smaller = |other: &&Link| {
            other.path.entropy > 0
                && other.is_usable_between_ends_of(link)
                && other.packets_in_window() < link.packets_in_window()
        };
        if !self.sends_bulk(now)
            && windows < PACKETS_TO_KEEP * links as f64
            && !self.each_link().any(|other| is_smaller(&other))
        {
            self.leave(now, index);
        }
    }

    fn sends_bulk(&self, now: Time) -> bool {
        self.backlogged_since.is_some_and(|since| now.since(since) >= BULK_AFTER)
    }

    /// Packets that the windows of the usable links between the ends of this one hold, and how many those are.
    fn windows_beside(&self, link: &Link) -> (f64, usize) {
        let usable = self.each_link().filter(|other| other.is_usable_between_ends_of(link));
        usable.fold((0.0, 0), |(windows, links), other| (windows + other.packets_in_window(), links + 1))
    }

    /// Tells the server of one path more, since it may have data for it.
    pub(super) fn introduce_path(&mut self, now: Time) {
        if self.role == Role::Client && !self.has_carried_little() {
            let wanted = self.unused_path(now, |link| !link.announce.is_empty());
            self.open_path(now, wanted);
        }
    }

    /// Opens a further path where a link does not answer.
    pub(super) fn add_path_for_silent_ones(&mut self, now: Time) {
        let wanted = self.unused_path(now, |_| true);
        self.open_path(now, wanted);
    }

    /// That unused path that is wanted which was left first, unless another between its ends is being opened.
    fn unused_path(&self, now: Time, is_wanted: impl Fn(&Link) -> bool) -> Option<LinkId> {
        let is_opening = |link: &Link| link.is_opening() && now.since(link.monitor.changed_at) < PROBE_INTERVAL;
        let is_wanted = |unused: &&Link| {
            let mut siblings = self.each_link().filter(|link| link.is_between_ends_of(unused));
            is_wanted(unused) && !siblings.any(is_opening)
        };
        let wanted = self.each_link().filter(|link| link.is_unused()).filter(is_wanted);
        wanted.min_by_key(|link| link.monitor.changed_at).map(|link| link.id)
    }

    /// Begins to ask on a path, if there is one. Returns whether there is.
    fn open_path(&mut self, now: Time, path: Option<LinkId>) -> bool {
        let Some(link) = path.and_then(|id| self.links[id.index()].as_mut()) else { return false };
        link.monitor.begin_opening(now);
        self.control_due = true;
        true
    }

    /// Leaves a path that has carried no data for a while. Returns whether it did.
    pub(super) fn leave_idle_path(&mut self, now: Time, index: usize) -> bool {
        let is_idle = |link: &Link| self.may_be_left(link) && now.since(link.data_sent) >= IN_USE;
        let is_left = self.links[index].as_deref().is_some_and(is_idle);
        if is_left {
            self.leave(now, index);
        }
        is_left
    }

    /// Leaves a path that was suspected while another between its ends delivers: it is tried again, after the others, once the stream
    /// needs it.
    pub(super) fn leave_silent_path(&mut self, now: Time, index: usize) {
        let Some(link) = &self.links[index] else { return };
        if link.path.entropy > 0 && link.announce.is_empty() && self.has_usable_sibling(link) {
            self.leave(now, index);
        }
    }

    fn leave(&mut self, now: Time, index: usize) {
        if let Some(link) = &mut self.links[index] {
            link.probe_due = false;
            link.monitor.leave(now);
        }
    }

    /// Whether a link is a further path that its peer knows, nothing is in flight on it, and another delivers between its ends.
    fn may_be_left(&self, link: &Link) -> bool {
        link.path.entropy > 0
            && link.monitor.is_usable()
            && link.oldest_sent().is_none()
            && link.announce.is_empty()
            && self.has_usable_sibling(link)
    }

    /// How many links between the ends of this one are suspected, itself included.
    pub(super) fn silent_siblings(&self, index: usize) -> u32 {
        let Some(link) = &self.links[index] else { return 0 };
        let is_silent = |other: &&Link| other.monitor.health() == Health::Suspect && other.is_between_ends_of(link);
        self.each_link().filter(is_silent).count() as u32
    }

    /// Whether another link delivers between the same two addresses.
    pub(super) fn has_usable_sibling(&self, link: &Link) -> bool {
        self.each_link().any(|other| other.id != link.id && other.is_usable_between_ends_of(link))
    }
}

impl Link {
    /// Whether this is a further path that nothing is sent on.
    pub(super) fn is_unused(&self) -> bool {
        self.monitor.health() == Health::Unused
    }

    fn packets_in_window(&self) -> f64 {
        self.congestion.window() as f64 / f64::from(self.datagram)
    }

    fn is_opening(&self) -> bool {
        self.monitor.health() == Health::Opening
    }

    /// Whether both links lead between the same two addresses; a link does with itself.
    pub(super) fn is_between_ends_of(&self, other: &Self) -> bool {
        (self.path.local, self.path.remote.ip()) == (other.path.local, other.path.remote.ip())
    }

    fn is_usable_between_ends_of(&self, other: &Self) -> bool {
        self.monitor.is_usable() && self.is_between_ends_of(other)
    }
}
