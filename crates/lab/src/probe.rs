//! Which back ends run here.

use std::{io, thread};

use nix::sched::{CloneFlags, unshare};

use crate::{
    Backend, LabError, ebpf,
    tool::{BatchOrigin, output},
};

impl Backend {
    /// The first back end that this kernel lets this user run.
    ///
    /// # Errors
    /// [`LabError::Missing`], with what each back end lacks and the way out.
    pub fn detect() -> Result<Self, LabError> {
        let mut reasons = Vec::new();
        for &backend in Self::ALL {
            match backend.probe() {
                Ok(()) => return Ok(backend),
                Err(reason) => reasons.push(format!("{backend}: {reason}")),
            }
        }
        Err(LabError::Missing(format!("no switch back end runs here. {}", reasons.join(" "))))
    }

    /// Tries the back end in a namespace that nobody else sees.
    ///
    /// # Errors
    /// What is missing, and the way out.
    pub fn probe(self) -> Result<(), String> {
        match self {
            Self::Bridge => probe_bridge(),
            Self::Ebpf => ebpf::probe(),
        }
    }
}

fn probe_bridge() -> Result<(), String> {
    let probe = || {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| {
            let why = io::Error::from(error);
            format!("cannot make a network namespace ({why}): run as root, or allow user namespaces.")
        })?;
        let args = ["link", "add", "br0", "type", "bridge", "vlan_filtering", "1", "vlan_default_pvid", "0"];
        let place = BatchOrigin { operation: "probe", device: "bridge", step: "vlan_filtering" };
        output("ip", &args, None, place).map(drop).map_err(|error| match error {
            LabError::Tool { message, .. } => format!(
                "the kernel has no VLAN-aware bridge ({}): it needs CONFIG_BRIDGE and CONFIG_BRIDGE_VLAN_FILTERING \
                 (modprobe bridge).",
                message.trim_end_matches('.')
            ),
            other => format!("{other}."),
        })
    };
    thread::scope(|scope| scope.spawn(probe).join().unwrap_or_else(|_| Err("the probe failed.".to_owned())))
}
