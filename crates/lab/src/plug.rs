//! Plugs that are moved while the lab runs.
//!
//! ```text
//!   before   s0:p1 ═══ s1:p1   s2:p1 ═══ s3:p1        plug s0:p1 s2:p1
//!   pulled   s0:p1     s1:p1   s2:p1     s3:p1        no carrier at any of the four; the plugs lie on the floor
//!   after    s2:p1 ═══ s1:p1   s0:p1 ═══ s3:p1
//! ```
//!
//! A cable is a pair of devices that belong together for good. So the device that is in a port leaves it, by way of a
//! namespace that nobody sees (the floor), and becomes the device of the other port, under that port's name and index; the
//! far ends stay where they are. What belongs to the port stays with it: its counters, its index, its part in the switch.

use std::{
    fs::File,
    io,
    os::fd::AsFd,
    thread,
    time::{Duration, Instant},
};

use nix::sched::{CloneFlags, unshare};

use crate::{
    Backend, Lab, LabError, bond, bridge, cable,
    directory::Changing,
    error::Context,
    layout::{CableEnd, Carried, Layout, Side},
    managed,
    name::port_device,
    netns,
    signal::Watch,
    status::device_queue_drops,
    table::PORT_IFINDEX_BASE,
    tool::{Batch, BatchOrigin, run_batch},
};
use linux_net::links;

/// What is in a port once plugs have been moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugged {
    /// The port, as `switch:port`.
    pub port: String,
    /// The cable whose plug is in it, by both its ends; none if the port is empty.
    pub cable: Option<String>,
}

/// How long the far ends have to notice that the plugs are out: the kernel looks at its notes once a second.
const NOTICE: Duration = Duration::from_secs(3);

/// How often they are asked.
const PERIOD: Duration = Duration::from_millis(5);

/// A port, by the positions of its switch and of itself.
type PortAt = (usize, usize);

/// What is pulled out of a port.
struct Pulled {
    from: PortAt,
    /// Whether it is a plug: a cable's or the manager's. Otherwise the port was empty.
    plug: Option<Plug>,
    /// Its part in a bridge, for the next device.
    held: bridge::Held,
    counters: Carried,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plug {
    /// Of a cable, by its position, and which of its ends.
    Cable(usize, Side),
    /// Of the manager's cable, where switches are managed over their data ports.
    Manager,
}

impl Lab {
    /// Exchanges the plugs in two ports, each written `switch:port`; where one of them is empty, the other's plug moves
    /// there. The link goes down at both ports and at the cables' far ends before it comes up again. A broken cable stays
    /// broken. Plugging the same two ports again takes it back.
    ///
    /// # Errors
    /// [`LabError::NoSuchPort`]; [`LabError::Unsupported`] if both ports are one, or both are empty; what the kernel
    /// refuses, after which the lab may have to be taken down.
    pub fn plug(&mut self, one: &str, other: &str) -> Result<[Plugged; 2], LabError> {
        let mut changing = Changing::begin(&self.layout().name)?;
        let layout = &changing.layout;
        let ports = [layout.port(one)?, layout.port(other)?];
        if ports[0] == ports[1] {
            return Err(LabError::Unsupported(format!("{one} is one port: name two, to exchange their plugs")));
        }
        let bonded = |(switch, port): &PortAt| {
            let port = &layout.switches[*switch].ports[*port];
            bond::is_bond(port) || port.lag.is_some()
        };
        if let Some(at) = ports.iter().position(bonded) {
            let what = "is a LAG or a member of one, whose cables `lab plug` does not move; `lab fail` breaks one";
            return Err(LabError::Unsupported(format!("{} {what}", [one, other][at])));
        }
        if ports.iter().all(|port| plug_in(layout, *port).is_none()) {
            return Err(LabError::Unsupported(format!(
                "neither {one} nor {other} has a plug: there is nothing to move"
            )));
        }
        // Half-way a cable has an end that no port knows.
        let _watch = Watch::begin().context("plug", one, "catch signals")?;
        thread::scope(|scope| {
            let hand = scope.spawn(|| exchange(&mut changing, ports));
            hand.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let layout = &changing.layout;
        let plugged = |(switch, port): PortAt| Plugged {
            port: format!("{}:{}", layout.switches[switch].name, layout.switches[switch].ports[port].name),
            cable: match plug_in(layout, (switch, port)) {
                Some(Plug::Cable(position, _)) => Some(layout.cables[position].label.clone()),
                Some(Plug::Manager) => Some("mgmt".to_owned()),
                None => None,
            },
        };
        let result = ports.map(plugged);
        self.take(changing);
        Ok(result)
    }
}

/// Exchanges what is in two ports, from a namespace of its own, which the calling thread enters for good.
fn exchange(changing: &mut Changing, ports: [PortAt; 2]) -> Result<(), LabError> {
    let lab = changing.layout.name.clone();
    unshare(CloneFlags::CLONE_NEWNET).context("plug", &lab, "make a namespace")?;
    let floor = File::open("/proc/thread-self/ns/net").context("plug", &lab, "make a namespace")?;
    let [one, other] = ports;
    let pulled = [pull(&changing.layout, one, &floor, 0)?, pull(&changing.layout, other, &floor, 1)?];
    await_far_ends(&changing.layout, &pulled)?;
    let [first, second] = &pulled;
    let backend = changing.layout.backend;
    record(&mut changing.layout, first.plug, other);
    record(&mut changing.layout, second.plug, one);
    for (leaves, comes) in [(first, second), (second, first)] {
        let (switch, port) = leaves.from;
        let site = &mut changing.layout.switches[switch].ports[port];
        let device = port_device(&site.name, port);
        site.device = (comes.plug.is_some() || backend == Backend::Bridge).then_some(device);
        site.plugged += 1;
        site.before.add(&leaves.counters);
    }
    // Agents read it before they look at the devices that come.
    changing.keep()?;
    let layout = &changing.layout;
    for (number, (to, held)) in [(other, &second.held), (one, &first.held)].into_iter().enumerate() {
        match (pulled[number].plug, backend) {
            (Some(_), _) => drop_in(layout, number, to)?,
            (None, Backend::Bridge) => bridge::fill_empty(&layout.switches[to.0], to.1)?,
            // The program sends to nobody there, and the agent knows its ports by the layout.
            (None, Backend::Ebpf) => continue,
        }
        cable::fit(layout, to.0, to.1, held)?;
    }
    ports.into_iter().try_for_each(|(switch, port)| cable::raise_port(layout, switch, port))
}

/// What is plugged into a port.
fn plug_in(layout: &Layout, (switch, port): PortAt) -> Option<Plug> {
    let manager = layout.management.as_ref().and_then(|management| management.in_band.as_ref());
    let is_manager = || manager.is_some_and(|site| (site.switch, site.port) == (switch, port));
    layout
        .plug(switch, port)
        .map(|(cable, side)| Plug::Cable(cable, side))
        .or_else(|| is_manager().then_some(Plug::Manager))
}

/// Takes the device out of a port.
fn pull(layout: &Layout, from: PortAt, floor: &File, number: usize) -> Result<Pulled, LabError> {
    let site = &layout.switches[from.0];
    let plug = plug_in(layout, from);
    let Some(device) = &site.ports[from.1].device else {
        return Ok(Pulled { from, plug, held: bridge::Held::nothing(), counters: Carried::default() });
    };
    let held = match layout.backend {
        Backend::Ebpf => bridge::Held::nothing(),
        Backend::Bridge => bridge::held(site, device)?,
    };
    let place = |step| BatchOrigin { operation: "plug", device: &site.name, step };
    let down = format!("link set dev {device} down\n");
    run_batch(&Batch { tool: "ip", namespace: Some(&site.namespace), script: down }, place("pull plug"))?;
    // Nothing passes any more, so these are the last values.
    let mut counters =
        Carried { queue_drops: device_queue_drops(site)?.get(device).copied().unwrap_or(0), ..Carried::default() };
    if layout.backend == Backend::Bridge {
        let traffic = bridge::device_traffic(site)?.into_iter().filter(|((port, _), _)| usize::from(*port) == from.1);
        counters.traffic = traffic
            .map(|((_, vlan), seen)| (vlan, [seen.in_frames, seen.in_bytes, seen.out_frames, seen.out_bytes]))
            .collect();
    }
    let ifindex = PORT_IFINDEX_BASE + from.1 as u32;
    if plug.is_some() {
        netns::within(&site.namespace, || {
            links::move_to(ifindex, floor.as_fd(), &on_floor(number), floor_index(number))
        })
        .and_then(|result| result)
        .context("plug", &site.name, "pull plug")?;
    } else {
        let script = format!("link delete dev {device}\n");
        run_batch(&Batch { tool: "ip", namespace: Some(&site.namespace), script }, place("pull plug"))?;
    }
    Ok(Pulled { from, plug, held, counters })
}

/// Puts what lies on the floor, in whose namespace the calling thread is, into a port.
fn drop_in(layout: &Layout, number: usize, to: PortAt) -> Result<(), LabError> {
    let site = &layout.switches[to.0];
    let device = site.ports[to.1].device.as_deref().unwrap_or_default();
    let ifindex = PORT_IFINDEX_BASE + to.1 as u32;
    File::open(netns::path(&site.namespace))
        .and_then(|namespace| links::move_to(floor_index(number), namespace.as_fd(), device, ifindex))
        .context("plug", &site.name, "plug in")
}

fn on_floor(number: usize) -> String {
    format!("plug{number}")
}

fn floor_index(number: usize) -> u32 {
    PORT_IFINDEX_BASE + number as u32
}

/// Waits until the far ends of pulled plugs have no carrier: what a hand needs from port to port is longer.
fn await_far_ends(layout: &Layout, pulled: &[Pulled; 2]) -> Result<(), LabError> {
    let far_end = |pulled: &Pulled| match (pulled.plug?, &layout.management) {
        (Plug::Cable(position, side), _) => {
            let end = layout.cables[position].end(side.far());
            Some((end.namespace.as_str(), end.device.as_str()))
        }
        (Plug::Manager, management) => Some((management.as_ref()?.namespace.as_str(), managed::MANAGER_DEVICE)),
    };
    let since = Instant::now();
    // Of a cable between the two ports both ends are out, and no device is there any more.
    for (namespace, device) in pulled.iter().filter_map(far_end) {
        loop {
            let links = links::links(namespace).context("plug", namespace, "read devices")?;
            if !links.get(device).is_some_and(|link| link.running) {
                break;
            }
            if since.elapsed() > NOTICE {
                let error = io::Error::new(io::ErrorKind::TimedOut, format!("{device} still has a carrier"));
                return Err(error).context("plug", namespace, "await the far end");
            }
            thread::sleep(PERIOD);
        }
    }
    Ok(())
}

/// Notes where a plug is now.
fn record(layout: &mut Layout, plug: Option<Plug>, (switch, port): PortAt) {
    match plug {
        Some(Plug::Cable(position, side)) => {
            let site = &layout.switches[switch];
            let label = format!("{}:{}", site.name, site.ports[port].name);
            let (namespace, device) = (site.namespace.clone(), port_device(&site.ports[port].name, port));
            let cable = &mut layout.cables[position];
            *cable.end_mut(side) = CableEnd { label, namespace, device, ifindex: PORT_IFINDEX_BASE + port as u32 };
            cable.label = format!("{} -- {}", cable.a.label, cable.b.label);
        }
        Some(Plug::Manager) => {
            if let Some(in_band) = layout.management.as_mut().and_then(|management| management.in_band.as_mut()) {
                (in_band.switch, in_band.port) = (switch, port);
            }
        }
        None => {}
    }
}
