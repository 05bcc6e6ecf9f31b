//! Registrations with epoll that must follow a swapped descriptor.
//!
//! epoll watches the open file, not the number: when `dup2` puts another file behind the number, the old registration is
//! gone without a word. So the last event that a program registered for a number is remembered, a few epoll instances each.
//! A number may have been closed and opened again in between; the kernel is asked whether the registration still holds
//! before it is carried over.
//!
//! ```text
//!  pages[fd / 512] ─▶ page[fd % 512] = { epoll + 1, events, data } × 4     (0: free)
//! ```

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use libc::{c_int, epoll_event};

use crate::{
    errno::{errno, set_errno},
    real,
    table::Table,
};

/// Epoll instances that are remembered for one number.
const INSTANCES_MAX: usize = 4;

#[derive(Default)]
struct Slot {
    /// The epoll descriptor plus one.
    epoll: AtomicI32,
    events: AtomicU32,
    data: AtomicU64,
}

static TABLE: Table<[Slot; INSTANCES_MAX]> = Table::new();

/// What [`leave`] took out, for [`enter`].
pub(crate) type Registrations = [Option<(c_int, epoll_event)>; INSTANCES_MAX];

/// Notes a successful `epoll_ctl`.
pub(crate) fn remember(epoll: c_int, operation: c_int, fd: c_int, event: Option<&epoll_event>) {
    let Some(slots) = TABLE.make(fd) else { return };
    let own = slots.iter().find(|slot| slot.epoll.load(Ordering::Acquire) == epoll + 1);
    match (operation, event) {
        (libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD, Some(event)) => {
            let free = || slots.iter().find(|slot| slot.epoll.load(Ordering::Acquire) == 0);
            let slot = own.or_else(free).unwrap_or(&slots[0]);
            slot.events.store(event.events, Ordering::Relaxed);
            slot.data.store(event.u64, Ordering::Relaxed);
            slot.epoll.store(epoll + 1, Ordering::Release);
        }
        (libc::EPOLL_CTL_DEL, _) => {
            if let Some(slot) = own {
                slot.epoll.store(0, Ordering::Release);
            }
        }
        _ => {}
    }
}

/// What an instance watches a number for.
pub(crate) struct Registration {
    pub(crate) epoll: c_int,
    pub(crate) event: epoll_event,
}

/// What is remembered of a number; instances may have forgotten it since.
pub(crate) fn registrations(fd: c_int) -> impl Iterator<Item = Registration> {
    TABLE.find(fd).into_iter().flatten().filter_map(|slot| {
        let epoll = slot.epoll.load(Ordering::Acquire) - 1;
        let event = epoll_event { events: slot.events.load(Ordering::Relaxed), u64: slot.data.load(Ordering::Relaxed) };
        (epoll >= 0).then_some(Registration { epoll, event })
    })
}

/// Takes `fd` out of the instances that still watch it.
pub(crate) fn leave(fd: c_int) -> Registrations {
    let mut left: Registrations = [None; INSTANCES_MAX];
    let before = errno();
    for (slot, left) in TABLE.make(fd).into_iter().flatten().zip(&mut left) {
        let epoll = slot.epoll.swap(0, Ordering::AcqRel) - 1;
        let mut event =
            epoll_event { events: slot.events.load(Ordering::Relaxed), u64: slot.data.load(Ordering::Relaxed) };
        // SAFETY: the event is live; a number that is no epoll instance any more is refused by the kernel.
        if epoll >= 0 && unsafe { real::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, fd, &mut event) } == 0 {
            *left = Some((epoll, event));
        }
    }
    set_errno(before);
    left
}

/// Registers what is behind `fd` now as what was behind it before.
pub(crate) fn enter(fd: c_int, registrations: &Registrations) {
    for (epoll, event) in registrations.iter().flatten() {
        let mut event = *event;
        // SAFETY: the event is live.
        if unsafe { real::epoll_ctl(*epoll, libc::EPOLL_CTL_ADD, fd, &mut event) } == 0 {
            remember(*epoll, libc::EPOLL_CTL_ADD, fd, Some(&event));
        }
    }
}
