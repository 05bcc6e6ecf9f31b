//! LAGs without the kernel's bonds: the lab's own data planes distribute and collect, and speakers of LACP decide by which
//! members.
//!
//! ```text
//!   switches of a managed lab   their agents speak (managed.rs)
//!   all other nodes             one process a lab, a thread a node: serve
//! ```
//! The process lives in a namespace of the lab, so it ends with the lab.

use std::{
    fs, io,
    os::fd::AsRawFd as _,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use fabric::Mac;
use linux_net::{
    links,
    packet::{drain, link_events, wait},
};

use crate::{
    Backend, Lab, LabError, Managed, bond,
    directory::state_file,
    ebpf::lag::{LagSite, LagTables, lags},
    error::Context,
    host_lag::HostLagTable,
    layout::{BondMember, CableEnd, HostSite, LagMethod, Layout, Shut, SwitchSite, port_address},
    netns, priority,
    speaker::{MemberUse, Speaker, SpokenLag, SpokenMember},
    table::PORT_IFINDEX_BASE,
};

/// How often a node looks at the carriers of its members: the kernel tells of them at most once a second.
const LOOK: Duration = Duration::from_millis(10);
/// How long LACP has until all members are in use.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often they are looked at meanwhile.
const PERIOD: Duration = Duration::from_millis(10);
/// The key of a host's LAG, which has no other.
const HOST_KEY: u16 = 1;

/// What the LAGs of a lab are made of.
///
/// # Errors
/// [`LabError::Missing`] where neither the kernel nor the back end has LAGs, with the way out.
pub(crate) fn method(backend: Backend, managed: Managed) -> Result<LagMethod, LabError> {
    match (managed, bond::probe(), backend) {
        (Managed::Yes, ..) => Ok(LagMethod::Own),
        (Managed::No, Ok(()), _) => Ok(LagMethod::Bonds),
        (Managed::No, Err(_), Backend::Ebpf) => Ok(LagMethod::Own),
        (Managed::No, Err(error), Backend::Bridge) => Err(LabError::Missing(format!(
            "the topology has LAGs, which the bridge back end makes of the kernel's bonds, and this kernel has none ({error}): choose \
             --backend ebpf, or load the kernel's module bonding"
        ))),
    }
}

/// Starts `program`, which must end up in [`serve`], apart from the caller, and waits until all members of all LAGs are in
/// use. A lab whose LAGs nobody needs to speak for is left as it is.
///
/// # Errors
/// [`LabError::Io`] with the last words of the program, or naming a LAG whose members are not in use after 20 s.
pub fn start(lab: &Lab, program: &mut Command) -> Result<(), LabError> {
    let layout = lab.layout();
    if layout.management.is_some() || nodes(layout).is_empty() {
        return Ok(());
    }
    let log = state_file(&layout.name, "lacp.log");
    let file = fs::File::create(&log).context("up", &layout.name, "start LACP")?;
    program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    std::os::unix::process::CommandExt::process_group(program, 0);
    let mut child = program.spawn().context("up", &layout.name, "start LACP")?;
    let mut ended =
        || -> Result<bool, LabError> { Ok(child.try_wait().context("up", &layout.name, "start LACP")?.is_some()) };
    wait_until_active(layout, &mut ended)
        .map_err(|error| {
            // It must not come up after all when nobody waits for it any more.
            let _ = child.kill();
            let _ = child.wait();
            let words = fs::read_to_string(&log).unwrap_or_default();
            match words.lines().last() {
                Some(last) => io::Error::other(last.to_owned()),
                None => error,
            }
        })
        .context("up", &layout.name, "start LACP")
}

/// Speaks LACP for every LAG of a lab that is not the kernel's bond until `stop` is set, or the process is ended.
///
/// # Errors
/// [`LabError::Unsupported`] for a lab without such LAGs, or whose switches' agents speak for them; whatever keeps a speaker
/// from its sockets or tables.
pub fn serve(name: &str, stop: &AtomicBool) -> Result<(), LabError> {
    let lab = Lab::open(name)?;
    let layout = lab.layout();
    let nodes = nodes(layout);
    let Some(first) = nodes.first().filter(|_| layout.management.is_none()) else {
        return Err(LabError::Unsupported(format!("lab {name} has no LAGs of its own to speak LACP for")));
    };
    priority::raise();
    let namespace = first.namespace(layout).to_owned();
    let failed = AtomicBool::new(false);
    let ends = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let speak = |node: &Node| node.speak(layout, &ends).inspect_err(|_| failed.store(true, Ordering::Relaxed));
        let threads: Vec<_> = nodes.iter().map(|node| scope.spawn(move || speak(node))).collect();
        let entered = netns::enter(&namespace).context("serve", name, "enter namespace");
        let results =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results.collect::<Result<Vec<()>, LabError>>().and(entered)
    })
}

/// Waits until all members of all LAGs of a lab's own are in use, but those whose ports are shut.
///
/// # Errors
/// [`LabError::Io`] naming a LAG whose members are not in use after 20 s.
pub fn await_active(lab: &Lab) -> Result<(), LabError> {
    let layout = lab.layout();
    wait_until_active(layout, &mut || Ok(false)).context("up", &layout.name, "wait for LACP")
}

/// The hosts on LAGs of a lab's own.
pub(crate) fn hosts(layout: &Layout) -> Vec<Node> {
    let own = layout.lags == LagMethod::Own;
    let on_lags = |host: &usize| own && !layout.hosts[*host].members.is_empty();
    (0..layout.hosts.len()).filter(on_lags).map(Node::Host).collect()
}

/// A node that speaks LACP.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    /// A switch, by its position.
    Switch(usize),
    /// A port of a host, by its position.
    Host(usize),
}

/// All nodes with LAGs of a lab's own.
fn nodes(layout: &Layout) -> Vec<Node> {
    let own = layout.lags == LagMethod::Own;
    let has_lags = |switch: &usize| own && !lags(&layout.switches[*switch]).is_empty();
    (0..layout.switches.len()).filter(has_lags).map(Node::Switch).chain(hosts(layout)).collect()
}

/// The LAGs of a switch as LACP knows them, in the order of [`lags`].
pub(crate) fn spoken_by_switch(site: &SwitchSite, switch: usize) -> Vec<SpokenLag> {
    let member = |at: &usize| SpokenMember {
        device: site.ports[*at].device.clone().unwrap_or_default(),
        ifindex: PORT_IFINDEX_BASE + *at as u32,
        port: *at as u16 + 1,
    };
    let lag = |lag: &LagSite| SpokenLag {
        system: port_address(switch, 0),
        key: lag.number.get(),
        members: lag.members.iter().map(member).collect(),
    };
    lags(site).iter().map(lag).collect()
}

fn spoken_by_host(site: &HostSite) -> SpokenLag {
    let member = |(at, member): (u16, &BondMember)| SpokenMember {
        device: member.device.clone(),
        ifindex: member.ifindex,
        port: at,
    };
    let system = site.mac.parse().unwrap_or(Mac::new([0; 6]));
    SpokenLag { system, key: HOST_KEY, members: (1..).zip(&site.members).map(member).collect() }
}

/// Where a node's LAGs are written.
enum NodeTable<'a> {
    Switch(usize, LagTables, Vec<LagSite>),
    Host(&'a HostSite, HostLagTable<'a>),
}

impl NodeTable<'_> {
    fn set(&self, lag: usize, uses: &[MemberUse]) -> Result<(), LabError> {
        match self {
            Self::Switch(_, tables, sites) => tables.set(&sites[lag], uses),
            Self::Host(_, table) => table.set(uses),
        }
    }

    /// The name of a LAG of which some members are not in use, how many are, and how many it has. LAGs with a port that is
    /// shut at either end do not count.
    fn short(&self, layout: &Layout) -> Result<Option<(String, usize, usize)>, LabError> {
        match self {
            Self::Switch(switch, tables, sites) => {
                for site in sites.iter().filter(|site| site.members.iter().all(|at| is_open(layout, *switch, *at))) {
                    let (active, members) = (tables.active(site)?, site.members.len());
                    if active < members {
                        return Ok(Some((site.number.to_string(), active, members)));
                    }
                }
                Ok(None)
            }
            Self::Host(site, table) => {
                let is_member = |end: &CableEnd| {
                    end.namespace == site.namespace && site.members.iter().any(|member| member.ifindex == end.ifindex)
                };
                let mut ends = layout.cables.iter().filter(|cable| is_member(&cable.b)).map(|cable| &cable.a);
                let open =
                    ends.all(|end| layout.switch_of(end).is_none_or(|switch| is_open(layout, switch, end.port())));
                let (active, members) = (table.active()?, site.members.len());
                Ok((open && active < members).then(|| (site.device.clone(), active, members)))
            }
        }
    }
}

impl Node {
    fn namespace(self, layout: &Layout) -> &str {
        match self {
            Self::Switch(switch) => &layout.switches[switch].namespace,
            Self::Host(host) => &layout.hosts[host].namespace,
        }
    }

    fn name(self, layout: &Layout) -> &str {
        match self {
            Self::Switch(switch) => &layout.switches[switch].name,
            Self::Host(host) => &layout.hosts[host].name,
        }
    }

    fn table(self, layout: &Layout) -> Result<NodeTable<'_>, LabError> {
        Ok(match self {
            Self::Switch(switch) => {
                NodeTable::Switch(switch, LagTables::open(layout, switch)?, lags(&layout.switches[switch]))
            }
            Self::Host(host) => NodeTable::Host(&layout.hosts[host], HostLagTable::open(layout, host)?),
        })
    }

    /// Speaks LACP on the calling thread, which enters the node for good, until it `ends`.
    pub(crate) fn speak(self, layout: &Layout, ends: &(dyn Fn() -> bool + Sync)) -> Result<(), LabError> {
        let name = self.name(layout);
        let table = self.table(layout)?;
        netns::enter(self.namespace(layout)).context("serve", name, "enter namespace")?;
        let spoken = match self {
            Self::Switch(switch) => spoken_by_switch(&layout.switches[switch], switch),
            Self::Host(host) => vec![spoken_by_host(&layout.hosts[host])],
        };
        let work = || -> io::Result<()> {
            let (mut speaker, events, since) = (Speaker::open(spoken)?, link_events()?, Instant::now());
            while !ends() {
                let now_ms = since.elapsed().as_millis() as u64;
                speaker.handle_links(now_ms, &links::dump()?, &|_, _| true);
                speaker.poll(now_ms, &mut |lag, uses| table.set(lag, uses).map_err(io::Error::other))?;
                wait([speaker.as_raw_fd(), events.as_raw_fd()], LOOK)?;
                drain(&events);
            }
            Ok(())
        };
        work().context("serve", name, "speak LACP")
    }
}

fn wait_until_active(layout: &Layout, ended: &mut dyn FnMut() -> Result<bool, LabError>) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Some(short) = short_lag(layout).map_err(io::Error::other)? else { return Ok(()) };
        if ended().map_err(io::Error::other)? {
            return Err(io::Error::other("it has ended"));
        }
        if Instant::now() > deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{short} after {PATIENCE:?}")));
        }
        thread::sleep(PERIOD);
    }
}

/// A LAG of which not all members are in use, in words.
fn short_lag(layout: &Layout) -> Result<Option<String>, LabError> {
    for node in nodes(layout) {
        if let Some((lag, active, members)) = node.table(layout)?.short(layout)? {
            return Ok(Some(format!("{}:{lag} has {active} of {members} members in use", node.name(layout))));
        }
    }
    Ok(None)
}

/// Whether neither a port of a switch nor the far end of its cable is shut.
fn is_open(layout: &Layout, switch: usize, port: usize) -> bool {
    let is_shut = |switch: usize, port: usize| layout.switches[switch].ports[port].shut == Shut::Yes;
    let far = layout.plug(switch, port).map(|(cable, side)| layout.cables[cable].end(side.far()));
    let far_shut = far.is_some_and(|end| layout.switch_of(end).is_some_and(|switch| is_shut(switch, end.port())));
    !is_shut(switch, port) && !far_shut
}
