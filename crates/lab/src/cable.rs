//! Cables of a running lab: broken, mended, and the devices at their ends made ready.
//!
//! A cable that is down is a pair of devices that nobody raises: the layout says that it is broken, and agents, which raise
//! devices when a manager opens a port, ask the layout first, under its lock. So ifAdminStatus is
//! the port's and a dead cable stays dead, whatever is written to it.

use crate::{
    Backend, Lab, LabError, bridge,
    directory::Changing,
    ebpf,
    error::Context,
    layout::{CableEnd, FailMode, LagMethod, Layout, Shut},
    loss, netns,
    shaper::{port_mtu_bytes, shaper},
    table::PORT_IFINDEX_BASE,
    tool::{Batch, BatchOrigin, run_batch},
};
use linux_net::links;

impl Lab {
    /// Breaks a cable, named by a host, a port or both ends. It stays broken until [`Lab::heal`], also when its plugs are
    /// moved.
    ///
    /// # Errors
    /// [`LabError::NoSuchCable`], or the tool's refusal.
    pub fn fail(&self, cable: &str, mode: FailMode) -> Result<(), LabError> {
        let mut changing = Changing::begin(&self.layout().name)?;
        let position = changing.layout.cable_position(cable)?;
        changing.layout.cables[position].failed = Some(mode);
        changing.keep()?;
        let (layout, cable) = (&changing.layout, &changing.layout.cables[position]);
        [&cable.a, &cable.b].into_iter().try_for_each(|end| break_end(layout, end, mode))
    }

    /// Mends a cable, however it failed. An end whose port is administratively down stays down.
    ///
    /// # Errors
    /// As [`Lab::fail`].
    pub fn heal(&self, cable: &str) -> Result<(), LabError> {
        let mut changing = Changing::begin(&self.layout().name)?;
        let position = changing.layout.cable_position(cable)?;
        changing.layout.cables[position].failed = None;
        changing.keep()?;
        let (layout, cable) = (&changing.layout, &changing.layout.cables[position]);
        for end in [&cable.a, &cable.b] {
            netns::within(&end.namespace, || loss::end(end.ifindex))
                .context("cable", &end.label, "enter namespace")?
                .context("cable", &end.label, "mend cable")?;
            at(end, "tc", shaper(layout, &end.device, cable.rate_bps, layout.mtu_bytes()), "mend cable")?;
        }
        let ports = [&cable.a, &cable.b].map(|end| Some((layout.switch_of(end)?, end.port())));
        ports.into_iter().flatten().try_for_each(|(switch, port)| raise_port(layout, switch, port))
    }
}

/// Does to one end of a cable what a failure does to it. A host's own end stays up, as when a plug is pulled: its carrier
/// goes with the switch's end.
fn break_end(layout: &Layout, end: &CableEnd, mode: FailMode) -> Result<(), LabError> {
    let device = &end.device;
    match mode {
        FailMode::Down if layout.switch_of(end).is_none() => Ok(()),
        FailMode::Down => at(end, "ip", format!("link set dev {device} down\n"), "cut cable"),
        FailMode::Silent => at(end, "tc", format!("qdisc replace dev {device} root blackhole\n"), "cut cable"),
        FailMode::Lossy { loss_ppm } => netns::within(&end.namespace, || loss::begin(end.ifindex, loss_ppm))
            .context("cable", &end.label, "enter namespace")?
            .context("cable", &end.label, "lose frames"),
    }
}

/// Raises the device in a port, if there is one, unless the port is administratively down or its cable is.
pub(crate) fn raise_port(layout: &Layout, switch: usize, port: usize) -> Result<(), LabError> {
    let site = &layout.switches[switch];
    let dead = layout.plug(switch, port).is_some_and(|(cable, _)| layout.cables[cable].is_down());
    let open = match layout.backend {
        _ if layout.lags == LagMethod::Bonds && site.ports[port].lag.is_some() => site.ports[port].shut == Shut::No,
        Backend::Ebpf => ebpf::is_up(&layout.name, switch, &site.name, port)?,
        Backend::Bridge => site.ports[port].shut == Shut::No,
    };
    let Some(device) = site.ports[port].device.as_deref().filter(|_| open && !dead) else { return Ok(()) };
    let place = BatchOrigin { operation: "cable", device: &site.name, step: "raise port" };
    let script = format!("link set dev {device} up\n");
    run_batch(&Batch { tool: "ip", namespace: Some(&site.namespace), script }, place)
}

/// Makes the device in a port, which has just come there, what the port's devices are: its size and alias, its part in the
/// switch (for a bridge, what [`bridge::held`] kept), and, where it is the end of a cable, the cable's rate and
/// failure. It is left down.
pub(crate) fn fit(layout: &Layout, switch: usize, port: usize, held: &bridge::Held) -> Result<(), LabError> {
    let site = &layout.switches[switch];
    let namespace = Some(site.namespace.as_str());
    let Some(device) = &site.ports[port].device else { return Ok(()) };
    let ifindex = PORT_IFINDEX_BASE + port as u32;
    let place = |step| BatchOrigin { operation: "plug", device: &site.name, step };
    let script = format!("link set dev {device} mtu {}\n", port_mtu_bytes(layout.mtu_bytes()));
    run_batch(&Batch { tool: "ip", namespace, script }, place("set the MTU"))?;
    netns::within(&site.namespace, || links::set_alias(ifindex, site.ports[port].alias()))
        .and_then(|result| result)
        .context("plug", &site.name, "set the alias")?;
    match layout.backend {
        Backend::Ebpf => ebpf::attach_pinned(layout, switch, ifindex)?,
        Backend::Bridge => bridge::fit(site, device, held)?,
    }
    let Some((position, side)) = layout.plug(switch, port) else { return Ok(()) };
    let cable = &layout.cables[position];
    let end = cable.end(side);
    at(end, "tc", shaper(layout, device, cable.rate_bps, layout.mtu_bytes()), "shape cable")?;
    cable.failed.map_or(Ok(()), |mode| break_end(layout, end, mode))
}

fn at(end: &CableEnd, tool: &'static str, script: String, step: &'static str) -> Result<(), LabError> {
    let place = BatchOrigin { operation: "cable", device: &end.label, step };
    run_batch(&Batch { tool, namespace: Some(&end.namespace), script }, place)
}
