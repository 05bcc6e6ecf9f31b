//! Typed indices. A `SwitchId` can index only switches, so a port number never passes for a host number.

use std::fmt;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// Wraps a position.
            ///
            /// # Panics
            /// If `index` does not fit in 32 bits; every count in a [`Topology`](crate::Topology) is bounded far below.
            #[inline]
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("index fits in 32 bits"))
            }

            /// The position that this index stands for.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The indices `0..count`, in order.
            pub fn all(count: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
                (0..count).map(Self::new)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
    };
}

index!(
    /// A switch's position in [`Topology::switches`](crate::Topology::switches).
    SwitchId, "s");
index!(
    /// A host's position in [`Topology::hosts`](crate::Topology::hosts).
    HostId, "h");
index!(
    /// A machine's position in [`Topology::machines`](crate::Topology::machines).
    MachineId, "m");
index!(
    /// A switch port's position in [`Topology::ports`](crate::Topology::ports).
    PortId, "p");
index!(
    /// A cable's position in [`Topology::links`](crate::Topology::links).
    LinkId, "l");
index!(
    /// A group's position in [`Topology::groups`](crate::Topology::groups).
    GroupId, "g");
index!(
    /// One direction of a link: channel `2·link` runs from the link's port `a` to `b`, `2·link + 1` from `b` to `a`.
    ChannelId, "c");

impl ChannelId {
    /// The channel of `link` that leaves its port `a`.
    #[inline]
    pub fn forward(link: LinkId) -> Self {
        Self::new(2 * link.index())
    }

    /// The channel of `link` that leaves its port `b`.
    #[inline]
    pub fn backward(link: LinkId) -> Self {
        Self::new(2 * link.index() + 1)
    }

    /// The cable that carries this channel.
    #[inline]
    pub fn link(self) -> LinkId {
        LinkId::new(self.index() / 2)
    }

    /// The other direction of the same cable.
    #[inline]
    pub fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// Whether this channel leaves the link's port `a`.
    #[inline]
    pub fn is_forward(self) -> bool {
        self.0 & 1 == 0
    }
}
