//! From a family's wiring to a topology: ports are numbered and named, hosts plugged in, and on request everything that
//! is arbitrary is shuffled.
//!
//! A family says only which switches exist, how many hosts each has, and which are cabled, each cable end with a *slot*:
//! its rank among the switch's ports. Ports are then `p1`, `p2`, … by ascending slot, hosts last:
//!
//! ```text
//! draft                               topology
//! s0-0, 1 host ─ slot 1 … slot 0 ─ s0-1      s0-0:p1 -- s0-1:p1     h0 at s0-0:p2
//! ```
//!
//! A shuffle draws switch order, switch names, port order, port names, link order, link orientation, host order and host
//! names anew, so that nothing but the cables tells what the network is.

use crate::{Mac, Model, PortId, PortNames, SwitchSpec, Topology, TopologyBuilder, rng::Rng};

use super::{GenerateError, Options};

/// A network before ports and identifiers are given.
#[derive(Default)]
pub(super) struct Draft {
    switches: Vec<DraftSwitch>,
    links: Vec<[DraftEnd; 2]>,
}

struct DraftSwitch {
    name: String,
    hosts: usize,
}

struct DraftEnd {
    switch: usize,
    slot: usize,
}

impl Draft {
    /// Adds a switch and returns its number.
    pub(super) fn add_switch(&mut self, name: String, hosts: usize) -> usize {
        self.switches.push(DraftSwitch { name, hosts });
        self.switches.len() - 1
    }

    /// Adds a cable between two ends, each a switch and a slot. Ends of equal slot keep the order of their cables.
    pub(super) fn add_link(&mut self, a: (usize, usize), b: (usize, usize)) {
        self.links.push([a, b].map(|(switch, slot)| DraftEnd { switch, slot }));
    }

    /// Builds the topology.
    pub(super) fn build(self, options: &Options) -> Result<Topology, GenerateError> {
        let mut order = Shuffle { rng: options.shuffle.map(Rng::new) };
        let mut builder = TopologyBuilder::with_models(options.models.clone());
        let switch_order = order.of(self.switches.len());
        let switch_name = order.of(self.switches.len());
        let jacks = self.jacks();
        let mut link_ports = vec![[PortId::new(0); 2]; self.links.len()];
        let mut host_ports = vec![PortId::new(0); self.switches.iter().map(|switch| switch.hosts).sum()];
        for &switch in &switch_order {
            let name = &self.switches[switch_name[switch]].name;
            let id = builder.add_switch(name, SwitchSpec { model: options.model.clone(), mgmt: None })?;
            let jacks = &jacks[switch];
            let names = port_names(options, name, jacks.len())?;
            let named = order.of(names.len());
            for &jack in &order.of(jacks.len()) {
                let port = builder.add_port(id, &names[named[jack]])?;
                match jacks[jack] {
                    Jack::Link { link, end } => link_ports[link][end] = port,
                    Jack::Host(host) => host_ports[host] = port,
                }
            }
        }
        for link in order.of(self.links.len()) {
            let [a, b] = link_ports[link];
            let flip = order.of(2)[0] == 1;
            let (a, b) = if flip { (b, a) } else { (a, b) };
            builder.add_link(a, b, options.rate_bps)?;
        }
        let rate_bps = options.host_rate_bps.unwrap_or(options.rate_bps);
        let mac = |number: usize| Mac::local(u32::try_from(number + 1).expect("hosts are bounded"));
        let Some(nics) = options.nics else {
            let host_number = order.of(host_ports.len());
            for host in order.of(host_ports.len()) {
                let number = host_number[host];
                builder.add_host(&format!("h{number}"), mac(number), host_ports[host], rate_bps, None)?;
            }
            return builder
                .finish()
                .map_err(|faults| faults.into_iter().next().expect("a refusal has a reason").into());
        };
        let machines = self.machines(nics)?;
        let machine_number = order.of(machines.len());
        for machine in order.of(machines.len()) {
            let name = format!("n{}", machine_number[machine]);
            for (rail, host) in (0..=u8::MAX).zip(&machines[machine]) {
                let mac = mac(machine_number[machine] * nics + usize::from(rail));
                let added = builder.add_host(&format!("{name}/{rail}"), mac, host_ports[*host], rate_bps, None)?;
                builder.join_machine(&name)?;
                builder.set_rail(added, rail);
            }
        }
        builder.finish().map_err(|faults| faults.into_iter().next().expect("a refusal has a reason").into())
    }

    /// The hosts of each machine, by rail: one on each of `nics` consecutive switches with hosts.
    fn machines(&self, nics: usize) -> Result<Vec<Vec<usize>>, GenerateError> {
        let rims: Vec<usize> = self.switches.iter().map(|switch| switch.hosts).filter(|hosts| *hosts > 0).collect();
        let hosts = rims.first().copied().unwrap_or(0);
        let refuse = |found: String| Err(GenerateError::NoRails { nics, found });
        if rims.is_empty() || !(1..=usize::from(u8::MAX)).contains(&nics) || rims.len() % nics > 0 {
            return refuse(rims.len().to_string());
        }
        if let Some(other) = rims.iter().find(|other| **other != hosts) {
            return refuse(format!("some with {hosts} and some with {other}"));
        }
        let mut machines = Vec::new();
        for first in (0..rims.len()).step_by(nics) {
            let machine = |place: usize| (first..first + nics).map(|rim| rim * hosts + place).collect();
            machines.extend((0..hosts).map(machine));
        }
        Ok(machines)
    }

    /// What is plugged into each switch, in slot order, hosts last.
    fn jacks(&self) -> Vec<Vec<Jack>> {
        let mut slots: Vec<Vec<(usize, Jack)>> = self.switches.iter().map(|_| Vec::new()).collect();
        for (link, ends) in self.links.iter().enumerate() {
            for (end, DraftEnd { switch, slot }) in ends.iter().enumerate() {
                slots[*switch].push((*slot, Jack::Link { link, end }));
            }
        }
        let mut host = 0;
        (slots.into_iter().zip(&self.switches))
            .map(|(mut slots, switch)| {
                slots.sort_by_key(|(slot, _)| *slot);
                let hosts = (host..host + switch.hosts).map(Jack::Host);
                host += switch.hosts;
                slots.into_iter().map(|(_, jack)| jack).chain(hosts).collect()
            })
            .collect()
    }
}

/// What is plugged into a port.
enum Jack {
    Link { link: usize, end: usize },
    Host(usize),
}

/// The order in which arbitrary things come: as drafted, or shuffled.
struct Shuffle {
    rng: Option<Rng>,
}

impl Shuffle {
    /// An order of `0..count`.
    fn of(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        if let Some(rng) = &mut self.rng {
            rng.shuffle(&mut order);
        }
        order
    }
}

/// The names to draw from for a switch that needs `need` ports.
fn port_names(options: &Options, switch: &str, need: usize) -> Result<Vec<String>, GenerateError> {
    let model = options.model.as_deref().and_then(|name| options.models.by_name(name)).unwrap_or_else(Model::generic);
    match &model.ports {
        PortNames::Any => Ok((1..=need).map(|number| format!("p{number}")).collect()),
        PortNames::Listed(names) if names.len() >= need => Ok(names.clone()),
        PortNames::Listed(names) => Err(GenerateError::TooFewPorts {
            switch: switch.to_owned(),
            model: model.name.clone(),
            need,
            has: names.len(),
        }),
    }
}
