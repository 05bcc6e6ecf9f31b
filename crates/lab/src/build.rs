//! Builds a lab, step by step, and takes back what it built if a step fails or somebody presses Ctrl-C.
//!
//! ```text
//! state directory ─▶ namespaces ─▶ cables ─▶ switches and hosts, several at once ─▶ carrier ─▶ finished mark
//! ```
//!
//! The state directory comes first and goes last, so that [`down`](crate::down) finds everything at any point between.

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

use fabric::{Flood, Plan, network_of};
use tagger::TaggingTable;

use crate::{
    Backend, Lab, LabError, LabOptions, Managed, Offload, Start, TRAIN_FRAMES, backlog, bond, bridge,
    directory::Directory,
    ebpf,
    error::Context,
    host_lag, lag,
    layout::{CableEnd, HostSite, LagMethod, Layout, Shut, SwitchSite},
    managed,
    name::check_lab_name,
    netns, ready,
    shaper::{port_mtu_bytes, queue_frames, shaper},
    signal::Watch,
    state::down,
    table::{PORT_IFINDEX_BASE, SwitchTable},
    tool::{Batch, BatchOrigin, run_batch},
};
use linux_net::{links, offload};

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
        if options.start == Start::Factory && options.managed == Managed::No {
            return Err(LabError::Unsupported("switches with factory settings must be managed".to_owned()));
        }
        let backend = match options.backend {
            None => Backend::detect()?,
            Some(backend) => {
                backend.probe().map_err(|reason| LabError::Missing(format!("{backend}: {reason}")))?;
                backend
            }
        };
        let no_drops = match plan.policy.flood {
            Flood::DropAll => Some("its hosts have no static neighbour entries"),
            Flood::Edge | Flood::Drop if options.managed == Managed::Yes => {
                Some("its managed switches have no object for floods that ports block")
            }
            Flood::Forward | Flood::Edge | Flood::Drop => None,
        };
        if let Some(why) = no_drops {
            return Err(LabError::Unsupported(format!("{why}; plan with --flood {}", Flood::Forward)));
        }
        if plan.policy.storm_limit.is_some() {
            let what = "its switches have no storm control; plan without --storm-control".to_owned();
            return Err(LabError::Unsupported(what));
        }
        if options.managed == Managed::Yes && backend == Backend::Bridge {
            return Err(LabError::Unsupported("managed switches need the ebpf back end (--backend ebpf)".to_owned()));
        }
        let lags = if plan.topology.has_lags() { lag::method(backend, options.managed)? } else { LagMethod::default() };
        let first = tables.iter().zip(&plan.devices).map(|(table, intent)| match lags {
            LagMethod::Own => table.clone().with_lags(&plan.topology, intent),
            LagMethod::Bonds => table.clone(),
        });
        let first: Vec<SwitchTable> = match options.start {
            Start::Planned => first.collect(),
            Start::Factory => first.map(|table| SwitchTable::factory(&table)).collect(),
        };
        let in_band = plan.topology.in_band().filter(|_| options.managed == Managed::Yes);
        let first: Vec<SwitchTable> = match in_band {
            None => first,
            Some(in_band) => {
                first.into_iter().map(|table| table.with_own_port(in_band.vlan)).collect::<Result<_, _>>()?
            }
        };
        let created_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let layout = Layout::new(plan, &tables, options, (backend, lags), created_unix_s)?;
        let mtu_bytes = plan.policy.mtu_bytes;
        let tagging: Vec<Option<TaggingTable>> = (plan.topology.host_ids())
            .map(|host| tagger::plan::table(plan, host, options.spread))
            .chain(plan.topology.standby_edges().iter().map(|_| None))
            .collect();

        let watch = Watch::begin().context("up", &options.name, "catch signals")?;
        let directory = Directory::claim(&options.name)?;
        let built = (directory.write(&layout, options.plan_text.as_deref()))
            .and_then(|()| build(&layout, &first, &tagging, mtu_bytes, &watch, progress))
            .and_then(|()| directory.finish());
        // A tool that the same Ctrl-C killed fails before the watch is asked.
        let result = if watch.has_fired() { Err(LabError::Interrupted) } else { built };
        if let Err(cause) = result {
            let name = options.name.clone();
            return Err(match down(&name) {
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
    tagging: &[Option<TaggingTable>],
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
        let place = BatchOrigin { operation: "up", device: &layout.name, step: name };
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
    tagging: &[Option<TaggingTable>],
    mtu_bytes: u16,
    watch: &Watch,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), LabError> {
    let switches = layout.switches.len();
    let machines: Vec<&[HostSite]> = layout.machines().collect();
    let mut firsts = vec![0];
    machines.iter().for_each(|ports| firsts.push(firsts[firsts.len() - 1] + ports.len()));
    let total = switches + machines.len();
    let rates = rates(layout);
    let (next, (sender, receiver)) = (AtomicUsize::new(0), std::sync::mpsc::channel());
    let work = |node: usize| {
        if watch.has_fired() {
            return Err(LabError::Interrupted);
        }
        if node < switches {
            switch(layout, node, &tables[node], mtu_bytes, &rates)
        } else {
            let at = node - switches;
            machine(layout, firsts[at], machines[at], &tagging[firsts[at]..firsts[at + 1]], &rates)
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
    let place = |step| BatchOrigin { operation: "up", device: &site.name, step };
    if layout.lags == LagMethod::Bonds {
        run_batch(&Batch { tool: "ip", namespace, script: bond::switch_script(site) }, place("make bonds"))?;
    }
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
    run_batch(&Batch { tool: "ip", namespace, script: port_script(site, layout.lags, mtu_bytes) }, place("start ports"))
}

/// Configures the ports of a machine, in order; the first one is this host.
fn machine(
    layout: &Layout,
    first: usize,
    ports: &[HostSite],
    tagging: &[Option<TaggingTable>],
    rates: &Rates<'_>,
) -> Result<(), LabError> {
    let [HostSite { namespace, mtu_bytes, machine, .. }, ..] = ports else { return Ok(()) };
    let place = |step| BatchOrigin { operation: "up", device: machine, step };
    let devices = match layout.lags {
        LagMethod::Bonds => bond::host_script,
        LagMethod::Own => host_lag::device_script,
    };
    let script = ports.iter().map(devices).collect();
    run_batch(&Batch { tool: "ip", namespace: Some(namespace), script }, place("make LAGs"))?;
    let members = ports.iter().flat_map(|port| &port.members).map(|member| member.device.as_str());
    offload(layout, namespace, ports.iter().map(|port| port.device.as_str()).chain(members), machine)?;
    let on_own = |port: &&HostSite| layout.lags == LagMethod::Own && !port.members.is_empty();
    for (number, port) in ports.iter().enumerate().filter(|(_, port)| on_own(port)) {
        let silence = || {
            let devices =
                port.members.iter().map(|member| member.device.clone()).chain([host_lag::inside_device(port)]);
            devices.into_iter().try_for_each(|device| set_parameter(&format!("ipv6/conf/{device}/disable_ipv6"), "1"))
        };
        netns::within(namespace, silence).and_then(|result| result).context("up", machine, "set parameters")?;
        host_lag::attach(layout, first + number)?;
    }
    let script = shaping(layout, namespace, *mtu_bytes, rates);
    run_batch(&Batch { tool: "tc", namespace: Some(namespace), script }, place("shape cables"))?;
    if ports.len() > 1 {
        let apart = || keep_ports_apart();
        netns::within(namespace, apart).and_then(|result| result).context("up", machine, "set parameters")?;
    }
    for (number, (port, tagging)) in ports.iter().zip(tagging).enumerate() {
        host(layout, port, tagging.as_ref())?;
        if ports.len() > 1 && !port.standby {
            let script = own_routes(port, number + 1);
            run_batch(&Batch { tool: "ip", namespace: Some(namespace), script }, place("route by port"))?;
        }
    }
    Ok(())
}

fn host(layout: &Layout, site: &HostSite, tagging: Option<&TaggingTable>) -> Result<(), LabError> {
    let namespace = Some(site.namespace.as_str());
    let place = |step| BatchOrigin { operation: "up", device: &site.name, step };
    let HostSite { mac, address, prefix_bits, mtu_bytes, device, .. } = site;
    let broadcast = if address.is_ipv4() { " broadcast +" } else { "" };
    let words = if site.standby {
        // As the kernel's bond has it: the port is up and has the bond's address, and nobody answers there.
        netns::within(&site.namespace, || set_parameter(&format!("ipv6/conf/{device}/disable_ipv6"), "1"))
            .and_then(|result| result)
            .context("up", &site.name, "set parameters")?;
        format!("link set {device} arp off\nlink set {device} up\n")
    } else {
        format!("link set {device} up\naddr add {address}/{prefix_bits}{broadcast} dev {device}\n")
    };
    let script = format!("link set lo up\nlink set {device} address {mac} mtu {mtu_bytes}\n{words}");
    let script = match layout.offload {
        Offload::Trains => format!("link set {device} gso_max_segs {TRAIN_FRAMES}\n{script}"),
        Offload::Off | Offload::On => script,
    };
    // Before the host says its first word.
    if let Some(table) = tagging {
        let attach = || {
            let address = format!("link set {device} address {mac}\n");
            run_batch(&Batch { tool: "ip", namespace, script: address }, place("set address"))?;
            Ok::<(), LabError>(tagger::device::attach(device, table, None).map(drop)?)
        };
        netns::within(&site.namespace, attach).context("up", &site.name, "enter namespace")??;
    }
    run_batch(&Batch { tool: "ip", namespace, script }, place("configure address"))
}

/// What a machine with several ports in one subnet needs: each port answers for its own address only, and takes frames that the
/// route back would not lead to.
fn keep_ports_apart() -> io::Result<()> {
    for (parameter, value) in [("arp_ignore", "1"), ("arp_announce", "2"), ("rp_filter", "2")] {
        set_parameter(&format!("ipv4/conf/all/{parameter}"), value)?;
    }
    Ok(())
}

/// What a port sends from its own address leaves by it, by a routing table of its own.
fn own_routes(site: &HostSite, table: usize) -> String {
    let HostSite { address, prefix_bits, device, .. } = site;
    let network = network_of(*address, *prefix_bits);
    format!(
        "rule add from {address} table {table} pref {table}\n\
         route add {network}/{prefix_bits} dev {device} src {address} table {table}\n"
    )
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

/// Gives devices that could not have their port's name that name beside their own.
fn name_ports(site: &SwitchSite) -> io::Result<()> {
    let named = site.ports.iter().zip(PORT_IFINDEX_BASE..).filter(|(port, _)| port.device.is_some());
    let mut aliases = named.filter(|(port, _)| !port.alias().is_empty());
    aliases.try_for_each(|(port, ifindex)| links::set_alias(ifindex, port.alias()))
}

fn port_script(site: &SwitchSite, lags: LagMethod, mtu_bytes: u16) -> String {
    let mut script = String::new();
    // Members are as their bonds.
    for port in site.ports.iter().filter(|port| lags == LagMethod::Own || port.lag.is_none()) {
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
        Offload::Off => netns::within(namespace, || offload::disable(devices)).and_then(|result| result).context(
            "up",
            node,
            "turn offload off",
        ),
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
