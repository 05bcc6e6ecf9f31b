//! Cablings that change: random ones, and random accidents and improvements.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod covering;
pub(crate) mod named;

use std::collections::BTreeSet;

use fabric::{HostId, LinkId, Mac, PortId, SwitchId, SwitchSpec, Topology, TopologyBuilder, rng::Rng};

/// Switch and port, the same of the other end, and the rate.
type Cable = ((usize, usize), (usize, usize), u64);

/// A cabling as people know it, by names and port numbers.
#[derive(Clone, Debug)]
pub(crate) struct Cabling {
    /// Numbers of the switches that there are.
    pub(crate) switches: Vec<usize>,
    /// Cables between switches.
    pub(crate) links: Vec<Cable>,
    /// Number, switch, port.
    pub(crate) hosts: Vec<(usize, usize, usize)>,
    /// Links that died and may come back.
    pub(crate) dead: Vec<Cable>,
    /// Further addresses, and the number of the host that each is behind.
    further: Vec<(u32, usize)>,
    /// Numbers of hosts that are the active ports of their bonds.
    active: Vec<usize>,
    next: usize,
}

const RATES: [u64; 3] = [100_000_000, 1_000_000_000, 10_000_000_000];

impl Cabling {
    /// A connected one of `switches` with `extra` cables beyond a tree, some parallel, and none to three hosts a switch.
    pub(crate) fn random(switches: usize, extra: usize, rng: &mut Rng) -> Self {
        let mut cabling = Self {
            switches: Vec::new(),
            links: Vec::new(),
            hosts: Vec::new(),
            dead: Vec::new(),
            further: Vec::new(),
            active: Vec::new(),
            next: 1,
        };
        for number in 0..switches {
            cabling.switches.push(number);
            if number > 0 {
                let other = rng.below(number);
                cabling.cable(other, number, RATES[1]);
            }
        }
        for _ in 0..extra {
            cabling.add_link(rng);
        }
        for switch in 0..switches {
            for _ in 0..if switch == 0 { 1 } else { rng.below(3) } {
                cabling.add_host(switch);
            }
        }
        cabling
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn cable(&mut self, a: usize, b: usize, rate: u64) {
        let ends = ((a, self.fresh()), (b, self.fresh()));
        self.links.push((ends.0, ends.1, rate));
    }

    fn add_link(&mut self, rng: &mut Rng) {
        let [a, b] = [(); 2].map(|()| self.switches[rng.below(self.switches.len())]);
        if a != b {
            self.cable(a, b, RATES[rng.below(3)]);
        }
    }

    fn add_host(&mut self, switch: usize) {
        let (number, port) = (self.fresh(), self.fresh());
        self.hosts.push((number, switch, port));
        // Every third is a machine with addresses of virtual machines behind its port.
        let macs = if number / 6 % 3 == 0 { number % 3 } else { 0 };
        self.further.extend((0..macs).map(|k| (100_000 + 10 * number as u32 + k as u32, number)));
    }

    /// The topology; none if it is not connected or nobody lives there.
    pub(crate) fn topology(&self) -> Option<Topology> {
        let mut builder = TopologyBuilder::new();
        let mut ids = std::collections::BTreeMap::new();
        for &number in &self.switches {
            let id = builder.add_switch(&format!("s{number}"), SwitchSpec::default()).expect("a fresh name");
            ids.insert(number, id);
        }
        for &((a, pa), (b, pb), rate) in &self.links {
            let cables = cables(pa);
            let (pa, pb) = (plug(&mut builder, ids[&a], pa, cables), plug(&mut builder, ids[&b], pb, cables));
            builder.add_link(pa, pb, cables as u64 * rate).ok()?;
        }
        let (mut last_bond, mut has_edge) = (None, false);
        for &(number, switch, port) in &self.hosts {
            let rate = cables(port) as u64 * RATES[1];
            let port = plug(&mut builder, ids[&switch], port, cables(port));
            let number = number as u32;
            // Some are ports of machines, with further addresses; numbers ascend, so a machine's stand together.
            let machine = (number / 6 % 3 == 0).then(|| format!("m{}", number / 6));
            let name = machine.as_ref().map_or(format!("h{number}"), |machine| format!("{machine}/{number}"));
            // Every other machine is a failover bond, of which some other port than the first may be active.
            let bond = machine.is_some().then_some(number / 6).filter(|bond| bond % 2 == 1);
            // One host is an uplink, behind which any address may be, and others are on standby beside it.
            let is_edge = machine.is_none() && number % 11 == 5;
            if is_edge && has_edge && builder.add_standby_edge(&name, port, rate).is_ok() {
                continue;
            }
            let is_edge = is_edge && !has_edge;
            has_edge |= is_edge;
            let host = if bond.is_some() && bond == last_bond {
                builder.add_standby(&name, port, rate).ok()?
            } else if is_edge {
                builder.add_edge(&name, port, rate, None).ok()?
            } else {
                let host = builder
                    .add_host(&name, Mac::local(bond.map_or(number, |bond| 200_000 + bond)), port, rate, None)
                    .ok()?;
                machine.map_or(Ok(()), |machine| builder.join_machine(&machine)).ok()?;
                host
            };
            if bond.is_some() && self.active.contains(&(number as usize)) {
                builder.set_active(host);
            }
            last_bond = bond;
            for (mac, _) in self.further.iter().filter(|(_, behind)| *behind == number as usize) {
                builder.add_mac(host, Mac::local(*mac)).ok()?;
            }
        }
        builder.finish().ok().filter(|topology| !topology.hosts().is_empty())
    }

    /// Changes something at random, or nothing.
    pub(crate) fn change(&mut self, rng: &mut Rng) {
        let before = self.clone();
        // Now and then a bond fails over.
        if rng.below(3) == 0 && !self.hosts.is_empty() {
            let (number, ..) = self.hosts[rng.below(self.hosts.len())];
            self.active.retain(|active| active / 6 != number / 6);
            self.active.push(number);
        }
        // Now and then a virtual machine moves to another host as well.
        if rng.below(4) == 0 && !self.further.is_empty() && !self.hosts.is_empty() {
            let at = rng.below(self.further.len());
            self.further[at].1 = self.hosts[rng.below(self.hosts.len())].0;
        }
        match rng.below(12) {
            0..3 if !self.links.is_empty() => {
                let gone = self.links.remove(rng.below(self.links.len()));
                self.dead.push(gone);
            }
            3 if !self.dead.is_empty() => {
                let back = self.dead.swap_remove(rng.below(self.dead.len()));
                if [back.0.0, back.1.0].iter().all(|switch| self.switches.contains(switch)) {
                    self.links.insert(rng.below(self.links.len() + 1), back);
                }
            }
            4 => self.add_link(rng),
            5 if self.switches.len() > 2 => {
                let gone = self.switches.remove(rng.below(self.switches.len()));
                self.links.retain(|(a, b, _)| a.0 != gone && b.0 != gone);
                self.hosts.retain(|host| host.1 != gone);
            }
            6 => {
                let number = self.fresh() + 1000;
                for _ in 0..1 + rng.below(3) {
                    let other = self.switches[rng.below(self.switches.len())];
                    self.cable(other, number, RATES[1]);
                }
                self.switches.push(number);
                for _ in 0..rng.below(3) {
                    self.add_host(number);
                }
            }
            7 if self.hosts.len() > 2 => {
                self.hosts.remove(rng.below(self.hosts.len()));
            }
            8 => {
                let switch = self.switches[rng.below(self.switches.len())];
                self.add_host(switch);
            }
            // A cable or host is plugged in elsewhere: the same port at one end, another at the other.
            9 if rng.below(2) == 0 && !self.hosts.is_empty() => {
                let at = rng.below(self.hosts.len());
                self.hosts[at].1 = self.switches[rng.below(self.switches.len())];
                self.hosts[at].2 = self.fresh();
            }
            9 if !self.links.is_empty() => {
                let at = rng.below(self.links.len());
                let other = self.switches[rng.below(self.switches.len())];
                if other != self.links[at].0.0 {
                    self.links[at].1 = (other, self.fresh());
                }
            }
            // Somebody pulls two cables and puts each into the other's port.
            10..12 if self.links.len() > 1 => {
                let [one, other] = [(); 2].map(|()| rng.below(self.links.len()));
                let (a, b) = (self.links[one].1, self.links[other].1);
                if self.links[one].0.0 != b.0 && self.links[other].0.0 != a.0 {
                    (self.links[one].1, self.links[other].1) = (b, a);
                }
            }
            _ => {}
        }
        if self.topology().is_none() {
            *self = before;
        }
    }
}

/// The same cabling with up to three groups, each of some switches and links.
pub(crate) fn grouped(topology: &Topology, rng: &mut Rng) -> Topology {
    let mut builder = TopologyBuilder::of(topology);
    for number in 0..rng.below(4) {
        let (most_switches, most_links) = (1 + rng.below(3), rng.below(4));
        let (of, links_of) = (topology.switches().len(), topology.links().len());
        let switches: BTreeSet<SwitchId> =
            (0..rng.below(most_switches + 1)).map(|_| SwitchId::new(rng.below(of))).collect();
        let links: BTreeSet<LinkId> = match links_of {
            0 => BTreeSet::new(),
            _ => (0..rng.below(most_links + 1)).map(|_| LinkId::new(rng.below(links_of))).collect(),
        };
        if !switches.is_empty() || !links.is_empty() {
            let (switches, links): (Vec<_>, Vec<_>) = (switches.into_iter().collect(), links.into_iter().collect());
            builder.add_group(&format!("group{number}"), &switches, &links).expect("a fresh name");
        }
    }
    builder.finish().expect("as connected as before")
}

/// How many cables there are where one is in a port of this number: more than one is a LAG.
fn cables(port: usize) -> usize {
    match port % 5 {
        0 if port < 1000 => 1 + port / 5 % 3,
        _ => 1,
    }
}

/// The port of this number, or the LAG with so many members.
fn plug(builder: &mut TopologyBuilder, switch: SwitchId, port: usize, cables: usize) -> PortId {
    if cables == 1 {
        return builder.add_port(switch, &format!("p{port}")).expect("a fresh port");
    }
    let lag = builder.add_port(switch, &format!("lag{port}")).expect("a fresh LAG");
    for member in 0..cables {
        let member = builder.add_port(switch, &format!("p{port}.{member}")).expect("a fresh port");
        builder.add_to_lag(lag, member).expect("a free port");
    }
    lag
}

/// Ordered pairs as people read them.
pub(crate) fn pairs(topology: &Topology, pairs: &[(HostId, HostId)]) -> String {
    let name = |host: HostId| topology.host(host).name.as_str();
    pairs.iter().map(|(a, b)| format!("{}>{}", name(*a), name(*b))).collect::<Vec<_>>().join(" ")
}
