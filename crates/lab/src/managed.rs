//! Switches that can be managed: each answers SNMP on an address of its own, speaks LLDP and spanning tree on its ports,
//! and forwards what managers have written.
//!
//! ```text
//!              esp-LAB-mgmt (the manager's place)
//!        m0 ╱        m1 │          ╲ m2                   a star of its own, apart from the fabric
//!   mgmt~ ╱       mgmt~ │           ╲ mgmt~
//!   switch 0        switch 1        switch 2              UDP 161: an agent; ports: spanning tree, LLDP
//! ```
//!
//! Where the topology has its switches managed over their data ports, there is no star: the manager's cable leads to the
//! controller's port, and each switch takes part in the management VLAN by a port of its own that people do not see.
//!
//! ```text
//!   esp-LAB-mgmt m0 ── s0:ctl   s0 ══ s1 ══ s2      the cables that carry data
//!                               cpu~ ─ mgmt~        in every switch: agent behind the data plane
//! ```
//!
//! One process serves all switches of a lab, a thread each, from [`serve`]. It lives in the management namespace, so it
//! ends with the lab. Credentials are no secret, as nothing but the lab can reach the agents.

mod plane;
mod traps;

use std::{
    fmt::Write as _,
    fs, io,
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bridge_mib::{
    AcceptableFrames, Enabled, IfStatus, PortList, RowStatus, StaticStatus,
    index::{StaticRow, VlanIndex},
};
use fabric::{
    LagNumber, Plan, SwitchId, VlanId,
    format::plan::{ReadMode, read_plan},
};
use snmp::wire::{AuthProtocol, Keys, PrivacyProtocol};
use switchd::agent::{
    Access, Config, Engine, Facts, HybridPorts, Learning, Limits, PortFacts, PortKind, Responder as _, Rights, Server,
    StaticConfig, Switch, User, VlanConfig,
};

use self::{plane::Plane, traps::Traps};
pub use crate::management::CONTROLLER;
use crate::{
    Backend, Lab, LabError,
    directory::state_file,
    ebpf,
    error::Context,
    lag,
    layout::{HostSite, Layout, PortSite, SwitchSite, port_address},
    management::{InBandSite, ManagedSite, Management, StartWord},
    name::plain,
    netns, priority,
    table::{PORT_IFINDEX_BASE, Service, SwitchTable},
    tool::{Batch, BatchOrigin, run_batch},
};
use linux_net::offload;

/// The device that leads from a switch to the management network.
const SWITCH_DEVICE: &str = "mgmt~";
/// The port by which a switch takes part in its own data plane, where it is managed over data ports.
const OWN_PORT_DEVICE: &str = "cpu~";
/// The manager's device, where switches are managed over data ports.
pub(crate) const MANAGER_DEVICE: &str = "m0";
/// Its index: below those of ports.
const SWITCH_IFINDEX: u32 = 8;
/// Where agents answer.
pub const SNMP_PORT: u16 = 161;
/// Community of version 2c that reads.
pub const READ_COMMUNITY: &str = "public";
/// Community of version 2c that reads and writes.
pub const WRITE_COMMUNITY: &str = "private";
/// User of version 3 with SHA-256 and AES-128.
pub const USER: &str = "espalier";
/// User of version 3 with SHA-1 and AES-128, as older switches have.
pub const OLD_USER: &str = "espalier-sha1";
/// Both users' password for signatures.
pub const AUTH_PASSWORD: &str = "lab-authenticate";
/// Both users' password for encipherment.
pub const PRIVACY_PASSWORD: &str = "lab-encipher";
/// Longest wait of a thread for something to happen: spanning tree's clock.
const TICK: Duration = Duration::from_millis(50);
/// How long agents have until they answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Makes the management network; namespaces are there.
pub(crate) fn build(layout: &Layout) -> Result<(), LabError> {
    let Some(management) = &layout.management else { return Ok(()) };
    let place = |step| BatchOrigin { operation: "up", device: &management.namespace, step };
    if let Some(in_band) = &management.in_band {
        return build_in_band(layout, management, in_band);
    }
    let mut cables = String::new();
    let mut center = format!("link set lo up\naddr add {CONTROLLER}/32 dev lo\n");
    for (number, (switch, site)) in layout.switches.iter().zip(&management.switches).enumerate() {
        let _ = writeln!(
            cables,
            "link add m{number} netns {} type veth peer name {SWITCH_DEVICE} index {SWITCH_IFINDEX} netns {}",
            management.namespace, switch.namespace
        );
        let _ = writeln!(center, "link set m{number} up\nroute add {}/32 dev m{number} src {CONTROLLER}", site.address);
    }
    run_batch(&Batch { tool: "ip", namespace: None, script: cables }, place("make cables"))?;
    for (switch, site) in layout.switches.iter().zip(&management.switches) {
        let script = format!(
            "addr add {}/32 dev {SWITCH_DEVICE}\nlink set {SWITCH_DEVICE} up\nroute add {CONTROLLER}/32 dev {SWITCH_DEVICE}\n",
            site.address
        );
        run_batch(&Batch { tool: "ip", namespace: Some(&switch.namespace), script }, place("configure addresses"))?;
    }
    run_batch(
        &Batch { tool: "ip", namespace: Some(&management.namespace), script: center },
        place("configure addresses"),
    )
}

/// Plugs the manager into the fabric, and each switch into its own data plane.
fn build_in_band(layout: &Layout, management: &Management, in_band: &InBandSite) -> Result<(), LabError> {
    let place = |step| BatchOrigin { operation: "up", device: &management.namespace, step };
    let entry = &layout.switches[in_band.switch];
    let device = entry.ports[in_band.port].device.as_deref().unwrap_or_default();
    let port_index = |number: usize| PORT_IFINDEX_BASE + number as u32;
    let mut cables = format!(
        "link add name {device} index {} netns {} type veth peer name {MANAGER_DEVICE} netns {}\n",
        port_index(in_band.port),
        entry.namespace,
        management.namespace
    );
    let mut center =
        format!("link set lo up\naddr add {CONTROLLER}/32 dev {MANAGER_DEVICE}\nlink set {MANAGER_DEVICE} up\n");
    for (switch, site) in layout.switches.iter().zip(&management.switches) {
        let _ = writeln!(
            cables,
            "link add {OWN_PORT_DEVICE} index {} netns {} type veth peer name {SWITCH_DEVICE} index {SWITCH_IFINDEX} netns {}",
            port_index(switch.ports.len()),
            switch.namespace,
            switch.namespace
        );
        let _ = writeln!(center, "route add {}/32 dev {MANAGER_DEVICE} src {CONTROLLER}", site.address);
    }
    run_batch(&Batch { tool: "ip", namespace: None, script: cables }, place("make cables"))?;
    for (switch, site) in layout.switches.iter().zip(&management.switches) {
        let script = format!(
            "addr add {}/32 dev {SWITCH_DEVICE}\nlink set {SWITCH_DEVICE} up\nlink set {OWN_PORT_DEVICE} up\n\
             route add {CONTROLLER}/32 dev {SWITCH_DEVICE}\n",
            site.address
        );
        run_batch(&Batch { tool: "ip", namespace: Some(&switch.namespace), script }, place("configure addresses"))?;
        whole_frames(&switch.namespace, SWITCH_DEVICE)?;
    }
    run_batch(
        &Batch { tool: "ip", namespace: Some(&management.namespace), script: center },
        place("configure addresses"),
    )?;
    whole_frames(&management.namespace, MANAGER_DEVICE)
}

/// Lets a device send frames as they are on a cable, with their checksums.
fn whole_frames(namespace: &str, device: &'static str) -> Result<(), LabError> {
    netns::within(namespace, || offload::disable(std::iter::once(device))).and_then(|result| result).context(
        "up",
        namespace,
        "turn offload off",
    )
}

/// Starts `program`, which must end up in [`serve`], apart from the caller, and LLDP daemons in the hosts; waits until
/// the agents answer and LACP has all members of LAGs in use. Returns how many hosts speak LLDP: none where Debian's lldpd is
/// not installed.
///
/// # Errors
/// [`LabError::Io`] with the last words of the program if the agents do not come up.
pub fn start(lab: &Lab, program: &mut Command) -> Result<usize, LabError> {
    let layout = lab.layout();
    let log = state_file(&layout.name, "agents.log");
    let file = fs::File::create(&log).context("up", &layout.name, "start agents")?;
    program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    std::os::unix::process::CommandExt::process_group(program, 0);
    let mut child = program.spawn().context("up", &layout.name, "start agents")?;
    let since = Instant::now();
    while !state_file(&layout.name, "agents").exists() {
        let ended = child.try_wait().context("up", &layout.name, "start agents")?;
        if ended.is_some() || since.elapsed() > PATIENCE {
            // It must not come up after all when nobody waits for it any more.
            let _ = child.kill();
            let _ = child.wait();
            let words = fs::read_to_string(&log).unwrap_or_default();
            let last = words.lines().last().unwrap_or("they do not answer").to_owned();
            return Err(io::Error::other(last)).context("up", &layout.name, "start agents");
        }
        thread::sleep(Duration::from_millis(5));
    }
    lag::await_active(lab)?;
    Ok(layout.hosts.iter().filter(|host| announce_host(&layout.name, host)).count())
}

/// Has a host announce itself by Debian's lldpd, if that is installed.
fn announce_host(lab: &str, site: &HostSite) -> bool {
    let HostSite { name: host, namespace, device, members, .. } = site;
    // Who is at the other end of a cable, the members say.
    let members: Vec<&str> = members.iter().map(|member| member.device.as_str()).collect();
    let devices = if members.is_empty() { device.clone() } else { members.join(",") };
    // The daemon puts its unprivileged half there.
    let _ = fs::create_dir_all("/run/lldpd");
    let socket = lldp_socket(lab, host);
    let settings = socket.with_extension("conf");
    // Without this all hosts would have this machine's name, and speak twice a minute.
    let named =
        fs::write(&settings, format!("configure system hostname {host:?}\nconfigure lldp tx-interval 1\n")).is_ok();
    let mut daemon = Command::new("ip");
    daemon
        .args(["netns", "exec", namespace, "lldpd", "-d", "-u"])
        .arg(socket)
        .args(["-I", &devices, "-O"])
        .arg(settings);
    daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut daemon, 0);
    let installed = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]).any(|place| place.join("lldpd").exists())
    });
    named && installed && daemon.spawn().is_ok()
}

/// The socket by which `lldpcli -u` reaches a host's LLDP daemon.
pub fn lldp_socket(lab: &str, host: &str) -> PathBuf {
    state_file(lab, &format!("lldpd-{}", plain(host)))
}

/// Serves all switches of a lab until `stop` is set, or the process is ended; hosts on LAGs speak LACP meanwhile.
///
/// # Errors
/// [`LabError::Unsupported`] for a lab without management; whatever keeps an agent from its sockets or tables.
pub fn serve(name: &str, stop: &AtomicBool) -> Result<(), LabError> {
    let lab = Lab::open(name)?;
    let layout = lab.layout();
    let Some(management) = &layout.management else {
        return Err(LabError::Unsupported(format!("lab {name} was brought up without management")));
    };
    if layout.backend != Backend::Ebpf {
        return Err(LabError::Unsupported("managed switches need the ebpf back end".to_owned()));
    }
    let configs = first_configs(&lab, management)?;
    priority::raise();
    let ready = Barrier::new(layout.switches.len() + 1);
    let failed = AtomicBool::new(false);
    let served = thread::scope(|scope| {
        let threads: Vec<_> = configs
            .into_iter()
            .enumerate()
            .map(|(switch, config)| {
                let (ready, failed) = (&ready, &failed);
                scope.spawn(move || {
                    let listen = SocketAddr::from((management.switches[switch].address, SNMP_PORT));
                    let server = agent(layout, management, switch, config, listen, &access);
                    failed.fetch_or(server.is_err(), Ordering::SeqCst);
                    ready.wait();
                    let mut server = server?;
                    let mut traps = Traps::new();
                    while !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                        step(&mut server).context("serve", &layout.switches[switch].name, "answer").inspect_err(
                            // The others go on, so this is the only word of it until they end, if anybody reads it.
                            |error| {
                                let words = format!("espalier: {error}\n");
                                let _ = io::Write::write_all(&mut io::stderr().lock(), words.as_bytes());
                            },
                        )?;
                        tell_links(&mut server, &mut traps);
                    }
                    Ok(())
                })
            })
            .collect();
        let ends = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        let speakers: Vec<_> =
            lag::hosts(layout).into_iter().map(|node| scope.spawn(move || node.speak(layout, &ends))).collect();
        ready.wait();
        let entered = netns::enter(&management.namespace).context("serve", name, "enter namespace").and_then(|()| {
            match failed.load(Ordering::SeqCst) {
                true => Ok(()),
                false => fs::write(state_file(name, "agents"), std::process::id().to_string()).context(
                    "serve",
                    name,
                    "say that all answer",
                ),
            }
        });
        failed.fetch_or(entered.is_err(), Ordering::SeqCst);
        let threads = threads.into_iter().chain(speakers);
        let results = threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results.collect::<Result<Vec<()>, LabError>>().and(entered)
    });
    let _ = fs::remove_file(state_file(name, "agents"));
    served
}

/// Serves one switch of a lab on an address of its own, for whom the caller lets in, until `stop` is set.
///
/// # Errors
/// As [`serve`], and [`LabError::Unsupported`] for a switch that the lab does not have.
pub fn serve_one(
    name: &str,
    switch: &str,
    listen: SocketAddr,
    access: &dyn Fn(&[u8]) -> Access,
    stop: &AtomicBool,
    ready: &mut dyn FnMut(),
) -> Result<(), LabError> {
    let lab = Lab::open(name)?;
    let layout = lab.layout();
    let management = layout.management.as_ref().filter(|_| layout.backend == Backend::Ebpf).ok_or_else(|| {
        LabError::Unsupported(format!("lab {name} has no managed switches: espalier lab up --managed PLAN"))
    })?;
    let number = layout.switches.iter().position(|site| site.name == switch);
    let number = number.ok_or_else(|| LabError::Unsupported(format!("lab {name} has no switch {switch}")))?;
    let config = first_configs(&lab, management)?.swap_remove(number);
    let mut server = agent(layout, management, number, config, listen, access)?;
    ready();
    while !stop.load(Ordering::Relaxed) {
        step(&mut server).context("serve", switch, "answer")?;
    }
    server.engine().responder().handle_tick(u64::MAX);
    Ok(())
}

type Agent = Server<Switch<Plane>>;

/// One switch's agent, on the calling thread, which enters the switch for good.
fn agent(
    layout: &Layout,
    management: &Management,
    switch: usize,
    config: Config,
    listen: SocketAddr,
    access: &dyn Fn(&[u8]) -> Access,
) -> Result<Agent, LabError> {
    let site = &layout.switches[switch];
    let device = site.name.as_str();
    let maps = (ebpf::Tables::open(layout, switch)?, ebpf::lag::LagTables::open(layout, switch)?);
    netns::enter(&site.namespace).context("serve", device, "enter namespace")?;
    let facts = facts(layout, management, switch);
    let since = Instant::now();
    let plane = Plane::new(layout, switch, &facts, &config, maps).context("serve", device, "open ports")?;
    let engine_id = [&[0x80, 0, 0x1f, 0x88, 3][..], &facts.address.octets()].concat();
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut switch = Switch::new(facts, config, plane, &engine_id, 1, 0);
    switch.apply_all().map_err(|refused| LabError::Unsupported(format!("switch {device}: {refused}")))?;
    let socket = UdpSocket::bind(listen).context("serve", device, "open its UDP port")?;
    let engine = Engine::new(switch, access(&engine_id), &engine_id, unix_s << 32);
    Ok(Server::new(engine, socket, since))
}

fn step(server: &mut Agent) -> io::Result<()> {
    let udp = server.socket().as_raw_fd();
    let wait = server.engine().responder().plane().wait(udp, TICK)?;
    if wait.udp {
        server.step(Duration::ZERO)?;
    }
    let now_ms = server.now_ms();
    let switch = server.engine().responder();
    switch.handle_tick(now_ms);
    let up_cs = switch.up_cs(now_ms);
    switch.plane().poll(now_ms, up_cs)
}

/// Tells the manager of links that have changed.
fn tell_links(server: &mut Agent, traps: &mut Traps) {
    let now_ms = server.now_ms();
    let switch = server.engine().responder();
    let (facts, up_cs, running) = (switch.facts().clone(), switch.up_cs(now_ms), switch.plane().running().to_vec());
    traps.tell(server.socket(), &facts, up_cs, &running);
}

fn access(engine_id: &[u8]) -> Access {
    let user = |name: &str, protocol| User {
        name: name.as_bytes().to_vec(),
        keys: Keys::new(protocol, AUTH_PASSWORD, Some((PrivacyProtocol::Aes128, PRIVACY_PASSWORD)), engine_id),
        rights: Rights::Write,
    };
    Access {
        communities: vec![
            (READ_COMMUNITY.as_bytes().to_vec(), Rights::Read),
            (WRITE_COMMUNITY.as_bytes().to_vec(), Rights::Write),
        ],
        users: vec![user(USER, AuthProtocol::Sha256), user(OLD_USER, AuthProtocol::Sha1)],
    }
}

fn facts(layout: &Layout, management: &Management, switch: usize) -> Facts {
    let site = &layout.switches[switch];
    let ManagedSite { model: [model, described], limits, .. } = &management.switches[switch];
    let limits = Limits {
        vlans_max: limits.vlans_max,
        statics_max: limits.statics_max,
        hybrid: if limits.hybrid_ports { HybridPorts::Allowed } else { HybridPorts::Refused },
        learning: if limits.independent_vlan_learning { Learning::Independent } else { Learning::Shared },
        pfc_classes: limits.pfc_classes,
    };
    let port = |(number, port): (u16, &PortSite)| PortFacts {
        name: port.name.clone(),
        if_index: PORT_IFINDEX_BASE + u32::from(number),
        mac: port_address(switch, number + 1),
        kind: match port.lag {
            Some(lag) => PortKind::Member { lag: lag as u32 + 1 },
            None if LagNumber::of_port(&port.name).is_some() => PortKind::Lag,
            None => PortKind::Own,
        },
    };
    Facts {
        description: format!("Espalier lab switch, limits of {model} ({described})"),
        address: port_address(switch, 0),
        ports: (0..).zip(&site.ports).map(port).collect(),
        limits,
    }
}

/// The configuration that each switch begins with.
fn first_configs(lab: &Lab, management: &Management) -> Result<Vec<Config>, LabError> {
    let layout = lab.layout();
    let named = |site: &SwitchSite, config: Config| Config { name: site.name.as_bytes().to_vec(), ..config };
    match management.start {
        StartWord::Factory => {
            let config = |switch: usize| named(&layout.switches[switch], facts(layout, management, switch).factory());
            Ok((0..layout.switches.len()).map(config).collect())
        }
        StartWord::Planned => {
            let missing = || LabError::Unsupported(format!("lab {} keeps no plan to begin with", layout.name));
            let text = lab.plan_text()?.ok_or_else(missing)?;
            let plan = read_plan(text.as_bytes(), ReadMode::IgnoreDigest)
                .map_err(|error| LabError::Unsupported(format!("the plan of lab {}: {error}", layout.name)))?;
            let sites = layout.switches.iter().zip(plan.topology.switch_ids());
            sites.map(|(site, switch)| Ok(named(site, planned(&plan, switch)?))).collect()
        }
    }
}

/// What a plan makes of a switch: factory settings less VLAN 1, plus the plan's VLANs and entries; no spanning tree.
fn planned(plan: &Plan, switch: SwitchId) -> Result<Config, LabError> {
    let intent = &plan.devices[switch.index()];
    let table = SwitchTable::new(&plan.topology, intent)?;
    let mut config = Config::factory(intent.ports.len());
    for ((port, intent), entry) in config.ports.iter_mut().zip(&intent.ports).zip(&table.ports) {
        port.stp = Enabled::No;
        if intent.admin == fabric::Admin::Down {
            port.admin = IfStatus::Down;
        }
        match entry.pvid {
            Some(pvid) => port.pvid = pvid,
            None => port.frames = AcceptableFrames::OnlyTagged,
        }
        debug_assert!(entry.service == Service::Up || port.admin == IfStatus::Down || intent.pvid == entry.pvid);
    }
    if let Some(default) = config.vlans.get_mut(&VlanIndex(VlanId::MIN)) {
        (default.egress, default.untagged) = (PortList::new(), PortList::new());
    }
    for vlan in intent.vlans().iter() {
        let ports = |member: &dyn Fn(&fabric::PortIntent) -> bool| {
            let members = (1_u32..).zip(&intent.ports).filter(|(_, port)| member(port)).map(|(number, _)| number);
            PortList::of(members).unwrap_or_default()
        };
        let row = VlanConfig {
            name: format!("v{vlan}").into_bytes(),
            egress: ports(&|port| port.is_member(vlan)),
            forbidden: PortList::new(),
            untagged: ports(&|port| port.untagged.contains(vlan)),
            status: RowStatus::Active,
            created_cs: 0,
        };
        config.vlans.insert(VlanIndex(vlan), row);
    }
    config.statics = (table.fdb.iter())
        .map(|((vlan, mac), port)| {
            let row = StaticRow { fdb: u32::from(vlan.get()), mac: *mac, receive_port: 0 };
            let ports = PortList::of([u32::from(*port) + 1]).unwrap_or_default();
            (row, StaticConfig { ports, status: StaticStatus::Permanent })
        })
        .collect();
    Ok(config)
}
