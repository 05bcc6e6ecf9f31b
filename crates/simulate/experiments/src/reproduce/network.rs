//! The papers' networks: generated ones, bundles of cables that no generator makes, and their plans.

use fabric::{
    DEFAULT_RATE_BPS, EngineName, Fault, FlowControl, HostId, Mac, Plan, Policy, PortRole, SwitchId, SwitchSpec,
    Tagging, Topology, TopologyBuilder,
    generate::{Kind, Options, generate},
    rng::Rng,
};

use crate::Error;

/// A network of \[Otsuka\] Fig. 7.
pub(super) struct Network {
    /// Its name there.
    pub(super) name: &'static str,
    /// The kind of network, and its size.
    pub(super) kind: (&'static str, &'static str),
    /// Hosts a switch; none for as many as the kind has by itself.
    pub(super) hosts_per_switch: Option<usize>,
    /// How it is routed.
    pub(super) engine: EngineName,
}

/// The networks of \[Otsuka\] Fig. 7, sixteen hosts each.
pub(super) const FIG_7: [Network; 8] = [
    network("Flat", ("mesh", "1"), Some(16), EngineName::Tree),
    network("Mesh (4 x 2)", ("mesh", "4x2"), Some(2), EngineName::Dor),
    network("Torus (4 x 2)", ("torus", "4x2"), Some(2), EngineName::Dor),
    network("Myri-Clos", ("clos", "4x4"), None, EngineName::Clos),
    network("M-Tree", ("m-tree", "4x4"), None, EngineName::Tree),
    network("Mesh (4 x 4)", ("mesh", "4x4"), None, EngineName::Dor),
    network("Torus (4 x 4)", ("torus", "4x4"), None, EngineName::Dor),
    network("Fat tree", ("fat-tree", "2,4,2"), None, EngineName::Clos),
];

const fn network(
    name: &'static str,
    kind: (&'static str, &'static str),
    hosts_per_switch: Option<usize>,
    engine: EngineName,
) -> Network {
    Network { name, kind, hosts_per_switch, engine }
}

impl Network {
    /// Its plan.
    ///
    /// # Errors
    /// If there is none, which is a mistake of ours.
    pub(super) fn plan(&self) -> Result<Plan, Error> {
        let topology = generated(self.kind.0, self.kind.1, self.hosts_per_switch)?;
        planned(self.name, &topology, &Policy { engine: self.engine, ..Policy::default() })
    }
}

/// The plan of a topology; `network` is what an error calls it.
///
/// # Errors
/// [`Error::Plan`].
pub(super) fn planned(network: &str, topology: &Topology, policy: &Policy) -> Result<Plan, Error> {
    planner::plan(topology, policy, None)
        .map_err(|source| Error::Plan { network: network.to_owned(), source: Box::new(source) })
}

/// The plan of the network of Fig. 7 that has this name.
///
/// # Errors
/// If there is none of that name, or it has no plan.
pub(super) fn plan_named(name: &str) -> Result<Plan, Error> {
    let network = FIG_7.iter().find(|network| network.name == name);
    network.ok_or_else(|| Error::Cabling(format!("there is no {name}")))?.plan()
}

/// A generated topology.
///
/// # Errors
/// If there is no such kind or size.
pub(super) fn generated(kind: &str, size: &str, hosts_per_switch: Option<usize>) -> Result<Topology, Error> {
    let options = Options { hosts_per_switch, ..Options::default() };
    let generated = Kind::parse(kind, &[size.to_owned()]).and_then(|kind| generate(&kind, &options));
    generated.map_err(|error| Error::Cabling(error.to_string()))
}

/// Switches in a row, a host on each: from the first host to the last a frame passes all of them.
///
/// # Errors
/// If it has no plan.
pub(super) fn row_of(switches: usize) -> Result<Plan, Error> {
    let topology = match switches {
        1 => generated("mesh", "1", Some(2))?,
        _ => generated("mesh", &switches.to_string(), Some(1))?,
    };
    let policy = Policy { engine: EngineName::Tree, ..Policy::default() };
    planned(&format!("a row of {switches} switches"), &topology, &policy)
}

/// Two levels of switches, every leaf joined to every top switch by a bundle of parallel cables.
pub(super) struct Bundles {
    /// Switches with hosts.
    pub(super) leaves: usize,
    /// Switches that join them.
    pub(super) tops: usize,
    /// Cables from each leaf to each top switch.
    pub(super) cables: usize,
    /// Hosts on each leaf.
    pub(super) hosts: usize,
}

impl Bundles {
    /// The cabling: hosts are numbered leaf by leaf, and cable `k` of each leaf comes to neighbouring ports above.
    ///
    /// # Errors
    /// If there are too many of something.
    pub(super) fn topology(&self) -> Result<Topology, Error> {
        cabled(|builder| self.cable(builder))
    }

    fn cable(&self, builder: &mut TopologyBuilder) -> Result<(), Fault> {
        for leaf in 0..self.leaves {
            builder.add_switch(&format!("leaf{leaf}"), SwitchSpec::default())?;
        }
        for top in 0..self.tops {
            builder.add_switch(&format!("top{top}"), SwitchSpec::default())?;
        }
        for leaf in 0..self.leaves {
            let switch = SwitchId::new(leaf);
            for host in 0..self.hosts {
                let number = leaf * self.hosts + host;
                add_host(builder, switch, host, number)?;
            }
        }
        for top in 0..self.tops {
            for cable in 0..self.cables {
                for leaf in 0..self.leaves {
                    let below = builder.add_port(SwitchId::new(leaf), &format!("up{top}-{cable}"))?;
                    let above = builder.add_port(SwitchId::new(self.leaves + top), &format!("c{cable}-leaf{leaf}"))?;
                    builder.add_link(below, above, DEFAULT_RATE_BPS)?;
                }
            }
        }
        Ok(())
    }
}

/// Hosts on each of \[Miura\]'s two switches.
pub(super) const SIDE: usize = 4;

/// Two switches with so many cables between them and so many hosts on each; without cables one switch with all hosts.
///
/// # Errors
/// If there are too many of something.
pub(super) fn two_switches(cables: usize, hosts: usize) -> Result<Topology, Error> {
    cabled(|builder| {
        let first = builder.add_switch("s0", SwitchSpec::default())?;
        let second = if cables == 0 { first } else { builder.add_switch("s1", SwitchSpec::default())? };
        for number in 0..2 * hosts {
            add_host(builder, if number < hosts { first } else { second }, number, number)?;
        }
        for cable in 0..cables {
            let name = format!("c{cable}");
            let (a, b) = (builder.add_port(first, &name)?, builder.add_port(second, &name)?);
            builder.add_link(a, b, DEFAULT_RATE_BPS)?;
        }
        Ok(())
    })
}

fn add_host(builder: &mut TopologyBuilder, switch: SwitchId, port: usize, number: usize) -> Result<(), Fault> {
    let port = builder.add_port(switch, &format!("h{port}"))?;
    let [.., high, low] = (number as u32 + 1).to_be_bytes();
    builder.add_host(&format!("n{number}"), Mac::new([2, 0, 0, 0, high, low]), port, DEFAULT_RATE_BPS, None)?;
    Ok(())
}

/// The topology that `cable` builds.
fn cabled(cable: impl FnOnce(&mut TopologyBuilder) -> Result<(), Fault>) -> Result<Topology, Error> {
    let mut builder = TopologyBuilder::new();
    let finished = cable(&mut builder).map_err(|fault| vec![fault]).and_then(|()| builder.finish());
    finished.map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Error::Cabling(faults.join("; "))
    })
}

/// The plan of hosts that tag as \[Miura\]'s driver does, both directions of a pair in one VLAN; no flow control.
///
/// # Errors
/// If there is none.
pub(super) fn tagged_by_hosts(topology: &Topology) -> Result<Plan, Error> {
    let policy = Policy { tagging: Tagging::SourceDestination, flow_control: FlowControl::None, ..Policy::default() };
    planned("hosts that tag", topology, &policy)
}

/// The plan of one tree, its VLAN a tag between switches.
///
/// # Errors
/// If there is none.
pub(super) fn one_tree(topology: &Topology) -> Result<Plan, Error> {
    let policy = Policy { engine: EngineName::Tree, ..Policy::default() };
    planned("one tree", topology, &policy)
}

/// One tree on switches that know nothing of VLANs: no frame has a tag, not between switches either.
///
/// # Errors
/// If there is none.
pub(super) fn plain(topology: &Topology) -> Result<Plan, Error> {
    let mut plan = one_tree(topology)?;
    for port in plan.devices.iter_mut().flat_map(|device| &mut device.ports) {
        if matches!(port.role, PortRole::Link(_)) {
            port.untagged = std::mem::take(&mut port.tagged);
            port.pvid = port.untagged.iter().next();
        }
    }
    Ok(plan)
}

/// Pairs of hosts on different switches by lot, each host in one of them; those that are left over have no partner.
pub(super) fn partners_by_lot(topology: &Topology, seed: u64) -> Vec<(HostId, HostId)> {
    let mut hosts: Vec<HostId> = topology.host_ids().collect();
    Rng::new(seed).shuffle(&mut hosts);
    let mut pairs = Vec::new();
    while let Some(host) = hosts.pop() {
        let other = hosts.iter().rposition(|other| topology.switch_of(*other) != topology.switch_of(host));
        if let Some(other) = other {
            pairs.push((host, hosts.swap_remove(other)));
        }
    }
    pairs
}
