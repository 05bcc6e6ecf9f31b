//! What can go wrong between a table and a tagged device.

use std::io;

use thiserror::Error;

/// Why a device cannot be tagged, read or left.
#[derive(Debug, Error)]
pub enum TaggerError {
    /// There is no such network device.
    #[error("there is no network device {device} here: `ip link` lists those there are")]
    NoDevice {
        /// As asked for.
        device: String,
    },
    /// The device is not tagged.
    #[error("{device} is not tagged: espalier tagger attach {device} …")]
    NotAttached {
        /// The device.
        device: String,
    },
    /// The device has no Ethernet address.
    #[error("{device} has no Ethernet address: tags go on Ethernet frames alone")]
    NotEthernet {
        /// The device.
        device: String,
    },
    /// Another program has our place among the device's filters.
    #[error(
        "{device}: another program ({program}) has tc priority {priority} and handle {handle} at {hook}: remove it \
         (tc filter del dev {device} {hook} pref {priority})"
    )]
    PlaceTaken {
        /// The device.
        device: String,
        /// `ingress` or `egress`.
        hook: &'static str,
        /// The other program's name.
        program: String,
        /// The place.
        priority: u32,
        /// The place.
        handle: u32,
    },
    /// The device has the older qdisc, which has no egress.
    #[error(
        "{device} has an `ingress` qdisc, which has no place for what leaves: replace it by clsact (tc qdisc del dev {device} ingress)"
    )]
    NoEgress {
        /// The device.
        device: String,
    },
    /// A table that does not fit.
    #[error("{device}: {needed} destinations, but there is room for {room}: detach, and attach with --room {needed}")]
    NoRoom {
        /// The device.
        device: String,
        /// Destinations of the new table.
        needed: usize,
        /// What there is room for.
        room: u32,
    },
    /// The kernel refused a step with programs or maps.
    #[error("{device}: {step}: {source}{}", hint(.source))]
    Bpf {
        /// The device.
        device: String,
        /// The step.
        step: &'static str,
        /// Why.
        source: libbpf_rs::Error,
    },
    /// The kernel refused another step.
    #[error("{device}: {step}: {source}")]
    Io {
        /// The device.
        device: String,
        /// The step.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
}

fn hint(error: &libbpf_rs::Error) -> &'static str {
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            " (it needs root, or the capabilities CAP_NET_ADMIN, CAP_BPF and CAP_SYS_ADMIN)"
        }
        _ => "",
    }
}

/// Names device and step of a failure.
pub(crate) trait Context<T> {
    /// The same with device and step.
    fn at(self, device: &str, step: &'static str) -> Result<T, TaggerError>;
}

impl<T> Context<T> for Result<T, libbpf_rs::Error> {
    fn at(self, device: &str, step: &'static str) -> Result<T, TaggerError> {
        self.map_err(|source| TaggerError::Bpf { device: device.to_owned(), step, source })
    }
}

impl<T> Context<T> for io::Result<T> {
    fn at(self, device: &str, step: &'static str) -> Result<T, TaggerError> {
        self.map_err(|source| TaggerError::Io { device: device.to_owned(), step, source })
    }
}
