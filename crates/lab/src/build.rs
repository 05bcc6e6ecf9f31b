//! Builds a lab, step by step, and takes back what it built if a step fails or somebody presses Ctrl-C.
//!
//! ```text
//! state directory ─▶ namespaces ─▶ cables ─▶ switches and hosts, several at once ─▶ carrier ─▶ finished mark
//! ```
//!
//! The state directory comes first and goes last, so that [`down`](crate::down) finds everything at any point between.
//!
//! Every direction of every cable is shaped by a token bucket (`tbf`) where it leaves its device. Two numbers decide how
//! well that imitates a real cable:
//! - the *burst*, what may leave at once after silence. A timer that fires late is made up for only within the burst, so
//!   it must cover the scheduling delay of a busy machine; but whatever is sent beyond the rate is an error of the
//!   measurement, and comes as fast as memory. [`BURST_US`] is an error of four percent after a tenth of a second.
//! - the *queue*, what waits for the cable. TCP fills any queue up to its window. If all windows that meet at the busiest
//!   channel fit, nothing is lost and the channel never idles, which is what flow control gives on real switches.
//!
//! Frames of the classes 6 and 7 pass those that wait, and 4 and 5 pass the rest, as on switches with three queues a port
//! (IEEE 802.1Q-2022, Table 8-5): under the bucket is `pfifo_fast`, and the switches' program gives frames their band.

use std::{
    fmt::{self, Write},
    fs, io,
    num::NonZero,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use fabric::{Flood, Plan};
use serde::{Deserialize, Serialize};
use tagger::{Spread, Table};

use crate::{
    Backend, Lab, LabError, backlog, bridge, ebpf,
    error::Context,
    layout::{CableEnd, HostSite, Layout, Shut, SwitchSite},
    link, managed,
    name::{HOST_DEVICE, check_lab_name},
    netns, ready,
    signal::Watch,
    state::{self, Directory},
    table::{AGEING_S, PORT_IFINDEX_BASE, SwitchTable},
    tool::{Batch, Place, run_batch},
};

/// How a lab is built.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// Its name.
    pub name: String,
    /// Rate of the fastest host cable; all other cables keep their proportion to it.
    pub rate_bps: u64,
    /// Most bytes that wait for one direction of a cable, in frames of the largest size.
    pub queue_bytes: u32,
    /// What switches are made of; none is the first of [`Backend::ALL`] that runs here.
    pub backend: Option<Backend>,
    /// Whether hosts send super-packets.
    pub offload: Offload,
    /// Whether switches can be managed.
    pub managed: Managed,
    /// What switches do at first.
    pub start: Start,
    /// How a host that tags its own frames spreads them over the VLANs of a pair.
    pub spread: Spread,
    /// How long switches that learn remember an address, in seconds, if they are not managed.
    pub ageing_s: u32,
    /// The plan's own text, kept with the lab for whoever opens it later.
    pub plan_text: Option<String>,
}

impl LabOptions {
    /// 100 Mbit/s, 4 MiB queues, frames one by one: half of them full frames of 64 windows, half what acknowledges them.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            rate_bps: 100_000_000,
            queue_bytes: 4 << 20,
            backend: None,
            offload: Offload::Off,
            managed: Managed::No,
            start: Start::Planned,
            spread: Spread::First,
            ageing_s: AGEING_S,
            plan_text: None,
        }
    }
}

/// Whether switches can be managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Managed {
    /// They do what they are told when the lab is built, and have no management.
    No,
    /// Each has an address in a management network, where agents answer once
    /// [`managed::serve`](crate::managed::serve) runs.
    Yes,
}

/// What switches do at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// What the plan says.
    Planned,
    /// What they do when they leave the factory: one VLAN for all, learning, and spanning tree, which has opened no port
    /// yet. Only for managed switches.
    Factory,
}

/// Whether hosts send super-packets through the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offload {
    /// Every frame by itself, as on a cable: shaping, loss and fairness are those of frames.
    Off,
    /// Trains of up to [`TRAIN_FRAMES`] TCP segments: a third of the work, for rates that a machine could not carry frame
    /// by frame. Shaping stays exact; what is lost or overtaken is a train.
    Trains,
    /// Super-packets of up to 64 KiB: many times faster, and no longer like a cable.
    On,
}

/// Most TCP segments of one train, with [`Offload::Trains`].
pub const TRAIN_FRAMES: u32 = 4;

/// How far the building is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being made.
    pub step: Step,
    /// How many of them are made.
    pub done: usize,
    /// How many there will be.
    pub total: usize,
}

/// What is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A namespace for every switch and host.
    Namespaces,
    /// A pair of devices for every cable.
    Cables,
    /// Switches and hosts.
    Nodes,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Namespaces => "namespaces",
            Self::Cables => "cables",
            Self::Nodes => "switches and hosts",
        })
    }
}

/// How much time's worth of bytes a cable may send at once: what the shaper's timer may be late on a busy machine.
const BURST_US: u64 = 4000;

/// Smallest burst, in what hosts send at once: one that waits, and one that is sent.
const BURST_SENDINGS_MIN: u64 = 2;

/// Room for the Ethernet header and two tags beyond the largest IP packet.
const FRAME_EXTRA_BYTES: u64 = 14 + 8;

/// Room that a switch port leaves for tags beyond the hosts' MTU.
const TAG_ROOM_BYTES: u16 = 8;

impl Lab {
    /// Builds a plan's fabric. `progress` is called from the calling thread.
    ///
    /// SIGINT and SIGTERM are caught meanwhile, for the whole process.
    ///
    /// # Errors
    /// Any [`LabError`]; whatever had been built is gone again, unless it is [`LabError::LeftBehind`].
    pub fn up(plan: &Plan, options: &LabOptions, progress: &mut dyn FnMut(Progress)) -> Result<Self, LabError> {
        check_lab_name(&options.name)?;
        let tables = (plan.devices.iter())
            .map(|intent| {
                let table = SwitchTable::new(&plan.topology, intent)?;
                Ok(table.forgetting_after(options.ageing_s))
            })
            .collect::<Result<Vec<_>, LabError>>()?;
        if tables.len() != plan.topology.switches().len() {
            return Err(LabError::Unsupported("the plan has no intent for some of its switches".to_owned()));
        }
        let first: Vec<SwitchTable> = match options.start {
            Start::Planned => tables.clone(),
            Start::Factory if options.managed == Managed::No => {
                return Err(LabError::Unsupported("switches with factory settings must be managed".to_owned()));
            }
            Start::Factory => tables.iter().map(SwitchTable::factory).collect(),
        };
        let backend = match options.backend {
            None => Backend::detect()?,
            Some(backend) => {
                backend.probe().map_err(|reason| LabError::Missing(format!("{backend}: {reason}")))?;
                backend
            }
        };
        if plan.policy.flood != Flood::Forward {
            let what =
                format!("its switches forward what they have no entry for; plan with --flood {}", Flood::Forward);
            return Err(LabError::Unsupported(what));
        }
        if plan.policy.storm_limit.is_some() {
            let what = "its switches have no storm control; plan without --storm-control".to_owned();
            return Err(LabError::Unsupported(what));
        }
        if options.managed == Managed::Yes && backend == Backend::Bridge {
            return Err(LabError::Unsupported("managed switches need the ebpf back end (--backend ebpf)".to_owned()));
        }
        let in_band = plan.topology.in_band().filter(|_| options.managed == Managed::Yes);
        let first: Vec<SwitchTable> = match in_band {
            None => first,
            Some(in_band) => {
                first.into_iter().map(|table| table.with_own_port(in_band.vlan)).collect::<Result<_, _>>()?
            }
        };
        let created_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let layout = Layout::new(plan, &tables, options, backend, created_unix_s)?;
        let mtu_bytes = plan.policy.mtu_bytes;
        let tagging: Vec<Option<Table>> =
            (plan.topology.host_ids()).map(|host| tagger::plan::table(plan, host, options.spread)).collect();

        let watch = Watch::begin().context("up", &options.name, "catch signals")?;
        let directory = Directory::claim(&options.name)?;
        let built = (directory.write(&layout, options.plan_text.as_deref()))
            .and_then(|()| build(&layout, &first, &tagging, mtu_bytes, &watch, progress))
            .and_then(|()| directory.finish());
        // A tool that the same Ctrl-C killed fails before the watch is asked.
        let result = if watch.has_fired() { Err(LabError::Interrupted) } else { built };
        if let Err(cause) = result {
            let name = options.name.clone();
            return Err(match state::down(&name) {
                Ok(()) => cause,
                Err(left) => LabError::LeftBehind { name, cause: Box::new(cause), left: Box::new(left) },
            });
        }
        Lab::open(&options.name)
    }
}

fn build(
    layout: &Layout,
    tables: &[SwitchTable],
    tagging: &[Option<Table>],
    mtu_bytes: u16,
    watch: &Watch,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), LabError> {
    if layout.backend == Backend::Ebpf {
        ebpf::mount_bpffs(&layout.name)?;
    }
    backlog::raise().context("up", &layout.name, "make room for frames")?;
    let namespaces: Vec<String> = layout.namespaces().map(|name| format!("netns add {name}")).collect();
    in_chunks(layout, &namespaces, Step::Namespaces, watch, progress)?;
    // Before devices appear: what a device is born with follows from these.
    on_all(layout.namespaces().collect(), |name| {
        let is_switch = layout.switches.iter().any(|switch| switch.namespace == name);
        netns::within(name, || if is_switch { quiet_switch() } else { quiet_host() }).and_then(|result| result).context(
            "up",
            name,
            "set parameters",
        )
    })?;
    let frames = queue_frames(layout.queue_bytes, mtu_bytes);
    let cables: Vec<String> = (layout.cables.iter())
        .map(|cable| {
            let end = |end: &CableEnd| {
                format!("{} txqueuelen {frames} index {} netns {}", end.device, end.ifindex, end.namespace)
            };
            format!("link add name {} type veth peer name {}", end(&cable.a), end(&cable.b))
        })
        .collect();
    in_chunks(layout, &cables, Step::Cables, watch, progress)?;
    managed::build(layout)?;
    nodes(layout, tables, tagging, mtu_bytes, watch, progress)?;
    ready::wait(layout, watch)
}

/// Runs one-line commands in the caller's namespace, a chunk a process, so that progress shows.
fn in_chunks(
    layout: &Layout,
    commands: &[String],
    step: Step,
    watch: &Watch,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), LabError> {
    let total = commands.len();
    let mut done = 0;
    for chunk in commands.chunks(64) {
        progress(Progress { step, done, total });
        if watch.has_fired() {
            return Err(LabError::Interrupted);
        }
        let script = chunk.join("\n") + "\n";
        let name = match step {
            Step::Namespaces => "make namespaces",
            Step::Cables | Step::Nodes => "make cables",
        };
        let place = Place { operation: "up", device: &layout.name, step: name };
        run_batch(&Batch { tool: "ip", namespace: None, script }, place)?;
        done += chunk.len();
    }
    progress(Progress { step, done, total });
    Ok(())
}

/// Configures all nodes, several at once, and reports from the calling thread.
fn nodes(
    layout: &Layout,
    tables: &[SwitchTable],
    tagging: &[Option<Table>],
    mtu_bytes: u16,
    watch: &Watch,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), LabError> {
    let (switches, total) = (layout.switches.len(), layout.switches.len() + layout.hosts.len());
    let rates = rates(layout);
    let (next, (sender, receiver)) = (AtomicUsize::new(0), std::sync::mpsc::channel());
    let work = |node: usize| {
        if watch.has_fired() {
            return Err(LabError::Interrupted);
        }
        if node < switches {
            switch(layout, node, &tables[node], mtu_bytes, &rates)
        } else {
            host(layout, &layout.hosts[node - switches], tagging[node - switches].as_ref(), &rates)
        }
    };
    thread::scope(|scope| {
        for _ in 0..workers() {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let node = next.fetch_add(1, Ordering::Relaxed);
                    if node >= total || sender.send(work(node)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        progress(Progress { step: Step::Nodes, done: 0, total });
        for (index, result) in receiver.iter().enumerate() {
            if let Err(error) = result {
                next.store(total, Ordering::Relaxed);
                return Err(error);
            }
            progress(Progress { step: Step::Nodes, done: index + 1, total });
        }
        Ok(())
    })
}

fn switch(
    layout: &Layout,
    switch: usize,
    table: &SwitchTable,
    mtu_bytes: u16,
    rates: &Rates<'_>,
) -> Result<(), LabError> {
    let site = &layout.switches[switch];
    let namespace = Some(site.namespace.as_str());
    let place = |step| Place { operation: "up", device: &site.name, step };
    offload(layout, &site.namespace, site.ports.iter().filter_map(|port| port.device.as_deref()), &site.name)?;
    run_batch(
        &Batch { tool: "tc", namespace, script: shaping(layout, &site.namespace, mtu_bytes, rates) },
        place("shape cables"),
    )?;
    match layout.backend {
        Backend::Ebpf => ebpf::build_switch(layout, switch, table)?,
        Backend::Bridge => bridge::build_switch(layout, switch, table)?,
    }
    netns::within(&site.namespace, || name_ports(site)).and_then(|result| result).context(
        "up",
        &site.name,
        "name ports",
    )?;
    run_batch(&Batch { tool: "ip", namespace, script: port_script(site, mtu_bytes) }, place("start ports"))
}

fn host(layout: &Layout, site: &HostSite, tagging: Option<&Table>, rates: &Rates<'_>) -> Result<(), LabError> {
    let namespace = Some(site.namespace.as_str());
    let place = |step| Place { operation: "up", device: &site.name, step };
    let HostSite { mac, address, prefix_bits, mtu_bytes, .. } = site;
    let broadcast = if address.is_ipv4() { " broadcast +" } else { "" };
    let script = format!(
        "link set lo up\nlink set {HOST_DEVICE} address {mac} mtu {mtu_bytes}\nlink set {HOST_DEVICE} up\n\
         addr add {address}/{prefix_bits}{broadcast} dev {HOST_DEVICE}\n"
    );
    let script = match layout.offload {
        Offload::Trains => format!("link set {HOST_DEVICE} gso_max_segs {TRAIN_FRAMES}\n{script}"),
        Offload::Off | Offload::On => script,
    };
    offload(layout, &site.namespace, std::iter::once(HOST_DEVICE), &site.name)?;
    run_batch(
        &Batch { tool: "tc", namespace, script: shaping(layout, &site.namespace, *mtu_bytes, rates) },
        place("shape cables"),
    )?;
    // Before the host says its first word.
    if let Some(table) = tagging {
        let attach = || {
            let address = format!("link set {HOST_DEVICE} address {mac}\n");
            run_batch(&Batch { tool: "ip", namespace, script: address }, place("set address"))?;
            Ok::<(), LabError>(tagger::device::attach(HOST_DEVICE, table, None).map(drop)?)
        };
        netns::within(&site.namespace, attach).context("up", &site.name, "enter namespace")??;
    }
    run_batch(&Batch { tool: "ip", namespace, script }, place("configure address"))
}

/// By namespace: device and rate of each cable end.
type Rates<'a> = std::collections::BTreeMap<&'a str, Vec<(&'a str, u64)>>;

fn rates(layout: &Layout) -> Rates<'_> {
    let mut rates = Rates::new();
    for cable in &layout.cables {
        for end in [&cable.a, &cable.b] {
            rates.entry(&end.namespace).or_default().push((&end.device, cable.rate_bps));
        }
    }
    rates
}

fn shaping(layout: &Layout, namespace: &str, mtu_bytes: u16, rates: &Rates<'_>) -> String {
    let ends = rates.get(namespace).into_iter().flatten();
    ends.map(|(device, rate_bps)| shaper(layout, device, *rate_bps, mtu_bytes)).collect()
}

/// The commands that shape one direction of a cable, a line each.
pub(crate) fn shaper(layout: &Layout, device: &str, rate_bps: u64, mtu_bytes: u16) -> String {
    let frame_bytes = u64::from(mtu_bytes) + FRAME_EXTRA_BYTES;
    let burst_bytes = burst_bytes(layout.offload, rate_bps, frame_bytes);
    let limit = layout.queue_bytes;
    let mut script =
        format!("qdisc replace dev {device} root handle 1: tbf rate {rate_bps}bit burst {burst_bytes} limit {limit}\n");
    // Its queues are as long in frames as the device's, which says nothing of super-packets: those wait in one queue.
    if layout.offload == Offload::Off {
        let _ = writeln!(script, "qdisc replace dev {device} parent 1:1 pfifo_fast");
    }
    script
}

/// How many bytes a cable may send at once after silence. Super-packets are cut into frames where they are too long for it.
fn burst_bytes(offload: Offload, rate_bps: u64, frame_bytes: u64) -> u64 {
    let sending = match offload {
        Offload::Off => 1,
        Offload::Trains | Offload::On => u64::from(TRAIN_FRAMES),
    };
    (rate_bps * BURST_US / 8_000_000).max(BURST_SENDINGS_MIN * sending * frame_bytes)
}

/// How many frames of the largest size a queue holds.
fn queue_frames(queue_bytes: u32, mtu_bytes: u16) -> u64 {
    (u64::from(queue_bytes) / (u64::from(mtu_bytes) + FRAME_EXTRA_BYTES)).max(1)
}

/// Largest IP packet of a switch port where hosts have this one: tags need room.
pub(crate) fn port_mtu_bytes(mtu_bytes: u16) -> u16 {
    mtu_bytes.saturating_add(TAG_ROOM_BYTES)
}

/// Gives devices that could not have their port's name that name beside their own.
fn name_ports(site: &SwitchSite) -> io::Result<()> {
    let named = site.ports.iter().zip(PORT_IFINDEX_BASE..).filter(|(port, _)| port.device.is_some());
    let mut aliases = named.filter(|(port, _)| !port.alias().is_empty());
    aliases.try_for_each(|(port, ifindex)| link::set_alias(ifindex, port.alias()))
}

fn port_script(site: &SwitchSite, mtu_bytes: u16) -> String {
    let mut script = String::new();
    for port in &site.ports {
        let Some(device) = &port.device else { continue };
        let _ = writeln!(script, "link set dev {device} mtu {}", port_mtu_bytes(mtu_bytes));
        if port.shut == Shut::No {
            let _ = writeln!(script, "link set dev {device} up");
        }
    }
    script
}

/// A switch's own stack says nothing: no router solicitation, no multicast report, no duplicate address detection.
fn quiet_switch() -> io::Result<()> {
    set_parameter("ipv6/conf/all/disable_ipv6", "1")?;
    set_parameter("ipv6/conf/default/disable_ipv6", "1")
}

/// Addresses are unique by plan and nobody advertises routes, so hosts need not ask; link-local addresses are usable at
/// once and follow from the station address.
fn quiet_host() -> io::Result<()> {
    for (parameter, value) in
        [("accept_dad", "0"), ("dad_transmits", "0"), ("router_solicitations", "0"), ("addr_gen_mode", "0")]
    {
        set_parameter(&format!("ipv6/conf/default/{parameter}"), value)?;
    }
    Ok(())
}

/// Sets a network parameter of the calling thread's namespace; a kernel without IPv6 has nothing to set.
fn set_parameter(parameter: &str, value: &str) -> io::Result<()> {
    match fs::write(format!("/proc/sys/net/{parameter}"), value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn offload<'a>(
    layout: &Layout,
    namespace: &str,
    devices: impl Iterator<Item = &'a str> + Send,
    node: &str,
) -> Result<(), LabError> {
    match layout.offload {
        Offload::On | Offload::Trains => Ok(()),
        Offload::Off => netns::within(namespace, || crate::ethtool::disable_offload(devices))
            .and_then(|result| result)
            .context("up", node, "turn offload off"),
    }
}

/// Runs `work` on every item, several at once; the error of the first that failed.
fn on_all<T: Send>(items: Vec<T>, work: impl Fn(T) -> Result<(), LabError> + Sync) -> Result<(), LabError> {
    let queue = Mutex::new(items.into_iter());
    thread::scope(|scope| {
        let worker = || {
            loop {
                let Some(item) = queue.lock().expect("no worker panics with the queue").next() else { return Ok(()) };
                work(item)?;
            }
        };
        let workers: Vec<_> = (0..workers()).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Building waits for the kernel more than it computes.
fn workers() -> usize {
    2 * thread::available_parallelism().map_or(1, NonZero::get).min(16)
}

const _: () = assert!(PORT_IFINDEX_BASE > 1, "index 1 is the loopback device");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cable_sends_little_beyond_its_rate() {
        let frame_bytes = 1522;
        for (offload, rate_bps, expected) in [
            (Offload::Off, 100_000_000, 50_000),
            (Offload::Off, 1_000_000_000, 500_000),
            // Two frames, where four milliseconds are less.
            (Offload::Off, 1_000_000, 2 * frame_bytes),
            (Offload::Trains, 1_000_000, 8 * frame_bytes),
        ] {
            let burst = burst_bytes(offload, rate_bps, frame_bytes);
            assert_eq!(burst, expected, "{offload:?} at {rate_bps}");
            let first_tenth = 8.0 * (burst as f64 + rate_bps as f64 / 80.0) / (rate_bps as f64 / 10.0);
            assert!(rate_bps < 100_000_000 || first_tenth < 1.05, "{first_tenth} of the rate in the first 100 ms");
        }
    }
}
