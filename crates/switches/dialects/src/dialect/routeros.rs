//! MikroTik RouterOS 7: a bridge with VLAN filtering.
//!
//! ```text
//!   /interface bridge add name=espalier protocol-mode=none igmp-snooping=no vlan-filtering=no
//!   /interface bridge port add bridge=espalier interface=ether1 pvid=2 frame-types=admit-all ingress-filtering=yes learn=no
//!   /interface bridge vlan add bridge=espalier vlan-ids=2 tagged=ether24 untagged=ether1,ether2
//!   /interface bridge host add bridge=espalier interface=ether1 mac-address=02:… vid=2
//!   /interface bridge set [ find name=espalier ] vlan-filtering=yes
//!   /interface bonding add name=lag3 mode=802.3ad slaves=ether3,ether4 lacp-rate=1sec transmit-hash-policy=layer-2-and-3
//! ```
//! A port that admits untagged frames is an untagged member of its PVID's VLAN by itself, VLAN 1 unless named; one that
//! admits tagged frames only is not. `unknown-unicast-flood=no` and its kin keep floods from leaving a
//! port; the switch chip's `storm-rate` limits those that come in. Filtering comes on when everything is there.
//! A LAG is a bonding of at least one port, a port of the bridge in place of its members; one none of whose members stay is made
//! anew, so that two LAGs can exchange theirs. Source: vendor's manual for ports, VLANs, storm rates and bonding; static hosts,
//! and what becomes of VLANs that name a bonding which goes, are believed.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    io::Write as _,
};

use fabric::{Admin, Basis, FloodKind, FloodSet, FlowControlMode, LagNumber, Mac, StormLimit, VlanId, VlanSet};

use super::{
    Ability, Dialect, FileErrors, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits, Untagged,
    absent, is_member, is_word, lags, lags_made, lags_removed, present, read_only, remove_lag, stands,
};
use crate::{
    console::take_flow_control,
    text::{LineError, interpret, mac, vlan, vlans},
};
use fabric::{IngressFilter, SpanningTree};
use switch_model::{
    LagMembership, PortConfig, PortLearning, Slot, SwitchConfig,
    change::{Change, PortChange, Stage},
};

/// The bridge.
const BRIDGE: &str = "espalier";

/// The flags of storm control, in the order of [`FloodKind::ALL`].
const STORM_FLAGS: [&str; 3] = ["limit-unknown-unicasts", "limit-unknown-multicasts", "limit-broadcasts"];
/// The storm rate that limits nothing, which is the factory's.
const NO_LIMIT: u8 = 100;

/// How a bonding divides frames among its members.
const HASH_POLICIES: [&str; 5] = ["layer-2", "layer-2-and-3", "layer-3-and-4", "encap-2-and-3", "encap-3-and-4"];

/// The language.
pub(super) struct RouterOs;

impl Dialect for RouterOs {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("#"),
            extension: "rsc",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::InSteps,
            learning: Learns::AsTold,
            blocks: FloodSet::ALL,
            storm_control: StormControl::OfPorts,
            lags: Lags::MadeOfMembers,
            lldp: None,
            snooping: SnoopingWords::NONE,
            port_name: (|name| is_word(name) && !name.contains('/'), "ether1"),
            basis: Basis::Untested,
        }
    }

    /// No bridge yet, and all ports up: what a reset without defaults leaves.
    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        let mut config = SwitchConfig::blank(ports);
        config.ports.iter_mut().for_each(|port| port.admin = Admin::Up);
        config.spanning_tree = SpanningTree::On;
        config
    }

    /// From the moment on when it is in a bridge.
    fn begins_in_vlan_1(&self) -> bool {
        true
    }

    fn write(&self, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
        if change.starts_spanning_tree() {
            return self.remove(change, out);
        }
        // Where the bridge's own spanning tree is still to go, there is no bridge of ours yet.
        let change = &match change.stage {
            Stage::Step if change.stops_spanning_tree() => Change { stage: Stage::Prepare, ..*change },
            _ => *change,
        };
        let bondings = Bondings::of(change);
        let before = bondings.removed_from(change.before);
        let (removed, after) = (&bondings.removed, &change.after.entries);
        let goes = |(key, slot): &(&(VlanId, Mac), &Slot)| removed.contains(slot) || after.get(*key) != Some(slot);
        let unset = change.before.entries.iter().filter(goes).map(|(key, _)| key);
        let (named, change) = (change.before, &Change { before: &before, ..*change });
        for port in change.shut() {
            writeln!(out, "{} disabled=yes", set(port))?;
        }
        if change.stage == Stage::Prepare {
            writeln!(out, "/interface bridge add name={BRIDGE} protocol-mode=none igmp-snooping=no vlan-filtering=no")?;
        }
        for (vlan, mac) in unset {
            let mac = mac.to_string().to_uppercase();
            writeln!(out, "/interface bridge host remove [ find bridge={BRIDGE} mac-address={mac} vid={vlan} ]")?;
        }
        if change.stage == Stage::Step {
            let joins = change.ports().filter(|port| port.joins_lag().is_some() && port.leaves_lag().is_none());
            let joins = joins.map(|port| port.after.name.as_str());
            for port in joins.chain(bondings.removed.iter().map(|lag| change.after.port(*lag).name.as_str())) {
                writeln!(out, "/interface bridge port remove [ find interface={port} ]")?;
            }
        }
        bondings.write(change, out)?;
        self.ports(change, &bondings.made, out)?;
        self.vlans(change, named, out)?;
        for (vlan, mac, port) in change.entries_set() {
            let mac = mac.to_string().to_uppercase();
            writeln!(out, "/interface bridge host add bridge={BRIDGE} interface={port} mac-address={mac} vid={vlan}")?;
        }
        if change.stage == Stage::Prepare {
            writeln!(out, "/interface bridge set [ find name={BRIDGE} ] vlan-filtering=yes")?;
        }
        for port in change.opened() {
            writeln!(out, "{} disabled=no", set(port))?;
        }
        Ok(())
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        read_only(files, |text| {
            let mut reader = Reader::new(config);
            interpret(text, "#", |words| reader.line(words))?;
            let line = text.lines().count().max(1);
            reader.finish().map_err(|message| vec![LineError { line, message }])
        })
    }
}

/// The command that sets something of a port or LAG.
fn set(port: &str) -> String {
    match LagNumber::of_port(port) {
        Some(_) => format!("/interface bonding set [ find name={port} ]"),
        None => format!("/interface ethernet set [ find default-name={port} ]"),
    }
}

/// LAGs that a change removes and makes; one that keeps none of its members is both.
struct Bondings {
    removed: BTreeSet<Slot>,
    made: BTreeSet<Slot>,
}

impl Bondings {
    fn of(change: &Change<'_>) -> Self {
        let Change { before, after, .. } = *change;
        let keeps = |lag: &Slot| before.members_of(*lag).any(|port| after.port(port).lag == LagMembership::Of(*lag));
        let stays = |lag: &Slot| stands(before, *lag) && stands(after, *lag);
        let replaced: Vec<Slot> = lags(after).filter(|lag| stays(lag) && !keeps(lag)).collect();
        Self {
            removed: lags_removed(change).chain(replaced.iter().copied()).collect(),
            made: lags_made(change).chain(replaced).collect(),
        }
    }

    /// The state when LAGs are removed, with the VLANs and entries that lead to them.
    fn removed_from(&self, config: &SwitchConfig) -> SwitchConfig {
        let mut config = config.clone();
        config.entries.retain(|_, slot| !self.removed.contains(slot));
        for lag in &self.removed {
            config.ports[lag.index()] = absent(config.port(*lag));
        }
        config
    }

    /// Removes LAGs, has ports leave and join those that stay, and makes new ones, disabled.
    fn write(&self, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
        let Change { before, after, .. } = *change;
        let name = |slot: Slot| after.port(slot).name.as_str();
        let slaves = |members: &mut dyn Iterator<Item = Slot>| {
            let names: Vec<&str> = members.map(name).collect();
            format!("slaves={}", names.join(","))
        };
        for lag in &self.removed {
            writeln!(out, "/interface bonding remove [ find name={} ]", name(*lag))?;
        }
        let kept = || lags(after).filter(|lag| stands(after, *lag) && !self.made.contains(lag));
        for lag in kept() {
            let stays = |port: &Slot| after.port(*port).lag == LagMembership::Of(lag);
            if !before.members_of(lag).all(|port| stays(&port)) {
                writeln!(out, "{} {}", set(name(lag)), slaves(&mut before.members_of(lag).filter(stays)))?;
            }
        }
        for lag in kept() {
            if !after.members_of(lag).all(|port| before.port(port).lag == LagMembership::Of(lag)) {
                writeln!(out, "{} {}", set(name(lag)), slaves(&mut after.members_of(lag)))?;
            }
        }
        for lag in &self.made {
            let slaves = slaves(&mut after.members_of(*lag));
            writeln!(
                out,
                "/interface bonding add name={} mode=802.3ad {slaves} lacp-rate=1sec link-monitoring=mii \
                 mii-interval=100ms transmit-hash-policy=layer-2-and-3 disabled=yes",
                name(*lag)
            )?;
        }
        Ok(())
    }
}

/// What says of a port whether untagged frames come in, and whose they are.
fn ingress(pvid: Option<VlanId>) -> String {
    match pvid {
        Some(pvid) => format!("pvid={pvid} frame-types=admit-all"),
        None => "pvid=1 frame-types=admit-only-vlan-tagged".to_owned(),
    }
}

/// What says whether a port learns.
fn learn(learning: PortLearning) -> &'static str {
    match learning {
        PortLearning::On | PortLearning::Always => "learn=yes",
        PortLearning::Off => "learn=no",
    }
}

/// What says of a port which floods leave by it.
fn flood(kinds: FloodSet, state: &str) -> String {
    let word = |kind| match kind {
        FloodKind::UnknownUnicast => "unknown-unicast-flood",
        FloodKind::Multicast => "unknown-multicast-flood",
        FloodKind::Broadcast => "broadcast-flood",
    };
    kinds.iter().map(|kind| format!(" {}={state}", word(kind))).collect()
}

impl RouterOs {
    /// Takes the bridge away with all that is in it.
    fn remove(&self, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
        for port in change.shut() {
            writeln!(out, "{} disabled=yes", set(port))?;
        }
        for menu in ["host", "vlan", "port"] {
            writeln!(out, "/interface bridge {menu} remove [ find bridge={BRIDGE} ]")?;
        }
        writeln!(out, "/interface bridge remove [ find name={BRIDGE} ]")?;
        let bondings = Bondings::of(change);
        let before = bondings.removed_from(change.before);
        let change = &Change { before: &before, ..*change };
        bondings.write(change, out)?;
        for port in change.ports().filter(|port| port.after.lag_number().is_none()) {
            self.flow_control(&port, out)?;
            self.storm_control(&port, out)?;
        }
        for port in change.opened() {
            writeln!(out, "{} disabled=no", set(port))?;
        }
        Ok(())
    }

    fn flow_control(&self, port: &PortChange<'_>, out: &mut Output<'_>) -> io::Result<()> {
        let state = match port.flow_control() {
            Some(FlowControlMode::Pause) => "on",
            Some(_) => "off",
            None => return Ok(()),
        };
        let name = port.name();
        writeln!(
            out,
            "/interface ethernet set [ find default-name={name} ] rx-flow-control={state} tx-flow-control={state}"
        )
    }

    /// One rate for all kinds of floods, and whether each is limited by it.
    fn storm_control(&self, port: &PortChange<'_>, out: &mut Output<'_>) -> io::Result<()> {
        if port.storm_limits().next().is_none() {
            return Ok(());
        }
        let (name, limits) = (port.name(), port.after.storm_limits.unwrap_or_default());
        let rate = limits.iter().flatten().min().map_or(NO_LIMIT, |limit| limit.percent());
        let flags = STORM_FLAGS.iter().zip(limits).map(|(flag, limit)| {
            let state = if limit.is_some() { "yes" } else { "no" };
            format!(" {flag}={state}")
        });
        let flags: String = flags.collect();
        writeln!(out, "/interface ethernet switch port set [ find name={name} ] storm-rate={rate}{flags}")
    }

    fn ports(&self, change: &Change<'_>, made: &BTreeSet<Slot>, out: &mut Output<'_>) -> io::Result<()> {
        let add = |out: &mut Output<'_>, port: &PortConfig| {
            let (name, settings, learn) = (&port.name, ingress(port.pvid), learn(port.learning));
            let flood = flood(port.blocked.unwrap_or_default(), "no");
            writeln!(
                out,
                "/interface bridge port add bridge={BRIDGE} interface={name} {settings} ingress-filtering=yes {learn}{flood}"
            )
        };
        let made: BTreeSet<&str> = made.iter().map(|lag| change.after.port(*lag).name.as_str()).collect();
        let bridged: BTreeSet<&str> = (present(change.after, change.after.ports.len()))
            .filter(|port| !is_member(port))
            .map(|port| port.name.as_str())
            .collect();
        for port in change.after.ports.iter().filter(|port| bridged.contains(port.name.as_str())) {
            if change.stage == Stage::Prepare || made.contains(port.name.as_str()) {
                add(out, port)?;
            }
        }
        for port in change.ports() {
            let name = port.name();
            let steps = change.stage == Stage::Step && bridged.contains(name) && !made.contains(name);
            if steps && port.leaves_lag().is_some() {
                add(out, port.after)?;
            } else if steps && PortChange::begins(&port) {
                writeln!(out, "/interface bridge port remove [ find interface={name} ]")?;
                add(out, port.after)?;
            } else if steps {
                if port.pvid().is_some() {
                    let settings = ingress(port.after.pvid);
                    writeln!(out, "/interface bridge port set [ find interface={name} ] {settings}")?;
                }
                for (kinds, state) in [(port.blocks(), "no"), (port.unblocks(), "yes")] {
                    if !kinds.is_empty() {
                        let flood = flood(kinds, state);
                        writeln!(out, "/interface bridge port set [ find interface={name} ]{flood}")?;
                    }
                }
                if port.learning().is_some() {
                    let learn = learn(port.after.learning);
                    writeln!(out, "/interface bridge port set [ find interface={name} ] {learn}")?;
                }
            }
            if port.after.lag_number().is_none() {
                self.flow_control(&port, out)?;
                self.storm_control(&port, out)?;
            }
        }
        Ok(())
    }

    /// One line for every VLAN whose members change, or which names a LAG that is removed: `named` is what VLANs name.
    fn vlans(&self, change: &Change<'_>, named: &SwitchConfig, out: &mut Output<'_>) -> io::Result<()> {
        let members = |config: &SwitchConfig, vlan: VlanId| {
            let names = |of: &dyn Fn(&switch_model::PortConfig) -> bool| {
                let names: Vec<&str> =
                    config.ports.iter().filter(|port| of(port)).map(|port| port.name.as_str()).collect();
                names.join(",")
            };
            (names(&|port| port.tagged.contains(vlan)), names(&|port| port.untagged.contains(vlan)))
        };
        let (before, after) = (&change.before.vlans, &change.after.vlans);
        for vlan in after.iter() {
            let (tagged, untagged) = members(change.after, vlan);
            if !before.contains(vlan) {
                writeln!(
                    out,
                    "/interface bridge vlan add bridge={BRIDGE} vlan-ids={vlan} tagged={tagged} untagged={untagged}"
                )?;
            } else if [named, change.before]
                .iter()
                .any(|before| members(before, vlan) != (tagged.clone(), untagged.clone()))
            {
                writeln!(
                    out,
                    "/interface bridge vlan set [ find bridge={BRIDGE} vlan-ids={vlan} ] tagged={tagged} untagged={untagged}"
                )?;
            }
        }
        for vlan in before.iter().filter(|vlan| !after.contains(*vlan)) {
            writeln!(out, "/interface bridge vlan remove [ find bridge={BRIDGE} vlan-ids={vlan} ]")?;
        }
        Ok(())
    }
}

/// What a port of the bridge remembers.
struct Port {
    pvid: VlanId,
    tagged_only: bool,
}

struct Reader<'a> {
    config: &'a mut SwitchConfig,
    menu: Vec<String>,
    bridge: bool,
    filtering: bool,
    /// LAGs that are there.
    bondings: BTreeSet<Slot>,
    /// `ports[port]`: none if it is not in the bridge.
    ports: Vec<Option<Port>>,
    /// `storms[port]`: the storm rate in percent, and whether each kind of flood is limited by it.
    storms: Vec<(u8, [bool; 3])>,
    /// Static members of each VLAN: tagged, untagged.
    members: BTreeMap<VlanId, (Vec<Slot>, Vec<Slot>)>,
    /// VLANs that name a bonding which was removed.
    dangling: BTreeSet<VlanId>,
}

/// A command's arguments.
struct Arguments<'w> {
    /// `[ find key=value … ]`.
    find: Vec<(&'w str, &'w str)>,
    set: Vec<(&'w str, &'w str)>,
}

impl<'w> Arguments<'w> {
    fn of(words: &[&'w str]) -> Result<Self, String> {
        let (mut find, mut set, mut finding) = (Vec::new(), Vec::new(), false);
        for word in words {
            match *word {
                "[" => finding = true,
                "find" if finding => {}
                "]" => finding = false,
                word => {
                    let pair = word.split_once('=').ok_or_else(|| format!("{word:?} is no key=value"))?;
                    if finding { find.push(pair) } else { set.push(pair) }
                }
            }
        }
        Ok(Self { find, set })
    }

    fn found(&self, key: &str) -> Result<&'w str, String> {
        let pair = self.find.iter().find(|(k, _)| *k == key);
        pair.map(|(_, value)| *value).ok_or_else(|| format!("[ find ] does not say {key}"))
    }

    fn get(&self, key: &str) -> Result<&'w str, String> {
        let pair = self.set.iter().find(|(k, _)| *k == key);
        pair.map(|(_, value)| *value).ok_or_else(|| format!("{key} is missing"))
    }
}

impl<'a> Reader<'a> {
    fn new(config: &'a mut SwitchConfig) -> Self {
        let bridge = config.spanning_tree == SpanningTree::Off;
        let bondings: BTreeSet<Slot> = lags(config).filter(|lag| stands(config, *lag)).collect();
        let port = |(at, port): (usize, &PortConfig)| {
            let is_there = port.lag_number().is_none() || bondings.contains(&Slot::new(at));
            let is_bridged = bridge && is_there && !is_member(port);
            is_bridged.then(|| Port { pvid: port.pvid.unwrap_or(VlanId::MIN), tagged_only: port.pvid.is_none() })
        };
        let ports = config.ports.iter().enumerate().map(port).collect();
        let slots = |of: &dyn Fn(&switch_model::PortConfig) -> bool| -> Vec<Slot> {
            config.ports.iter().enumerate().filter(|(_, port)| of(port)).map(|(index, _)| Slot::new(index)).collect()
        };
        let members = config.vlans.iter().map(|vlan| {
            (vlan, (slots(&|port| port.tagged.contains(vlan)), slots(&|port| port.untagged.contains(vlan))))
        });
        let members = members.collect();
        let storm = |port: &PortConfig| {
            let limits = port.storm_limits.unwrap_or_default();
            let rate = limits.iter().flatten().min().map_or(NO_LIMIT, |limit| limit.percent());
            // Broadcasts are limited from the factory, by a rate that limits nothing.
            (rate, if rate == NO_LIMIT { [false, false, true] } else { limits.map(|limit| limit.is_some()) })
        };
        let storms = config.ports.iter().map(storm).collect();
        Self {
            config,
            menu: Vec::new(),
            bridge,
            filtering: bridge,
            bondings,
            ports,
            storms,
            members,
            dangling: BTreeSet::new(),
        }
    }

    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        const VERBS: [&str; 3] = ["add", "set", "remove"];
        let mut words = words;
        if let Some(first) = words[0].strip_prefix('/') {
            let end = words.iter().position(|word| VERBS.contains(word)).unwrap_or(words.len());
            self.menu = std::iter::once(first).chain(words[1..end].iter().copied()).map(str::to_owned).collect();
            words = &words[end..];
        }
        let Some((&verb, rest)) = words.split_first() else { return Ok(()) };
        let arguments = Arguments::of(rest)?;
        let menu: Vec<&str> = self.menu.iter().map(String::as_str).collect();
        match (&menu[..], verb) {
            (["interface", "ethernet"], "set") => self.ethernet(&arguments),
            (["interface", "ethernet", "switch", "port"], "set") => self.storm(&arguments),
            (["interface", "bonding"], _) => self.bonding(verb, &arguments),
            (["interface", "bridge"], "add" | "set") => self.bridge(verb, &arguments),
            (["interface", "bridge"], "remove") => self.remove(&arguments),
            (["interface", "bridge", menu @ ("host" | "vlan" | "port")], "remove")
                if arguments.find == [("bridge", BRIDGE)] =>
            {
                match *menu {
                    "host" => self.config.entries.clear(),
                    "vlan" => {
                        self.members.clear();
                        self.dangling.clear();
                    }
                    _ => {
                        self.ports.iter_mut().for_each(|port| *port = None);
                        // Outside the bridge nobody learns.
                        let outside = |port: &mut PortConfig| {
                            (port.learning, port.blocked) = (PortLearning::Off, Some(FloodSet::NONE));
                        };
                        self.config.ports.iter_mut().for_each(outside);
                    }
                }
                Ok(())
            }
            (["interface", "bridge", "port"], _) => self.port(verb, &arguments),
            (["interface", "bridge", "vlan"], _) => self.vlan(verb, &arguments),
            (["interface", "bridge", "host"], "add" | "remove") => self.host(verb, &arguments),
            _ => Err(format!("/{} {verb} is no command that this reader knows", menu.join(" "))),
        }
    }

    fn slot(&self, name: &str) -> Result<Slot, String> {
        self.config.slot(name).ok_or_else(|| format!("the switch has no port {name}"))
    }

    /// A port that is no LAG.
    fn physical(&self, name: &str) -> Result<Slot, String> {
        let slot = self.slot(name)?;
        let is_lag = self.config.port(slot).lag_number().is_some();
        if is_lag { Err(format!("{name} is a bonding and no Ethernet port")) } else { Ok(slot) }
    }

    fn bonding(&mut self, verb: &str, arguments: &Arguments<'_>) -> Result<(), String> {
        let name = if verb == "add" { arguments.get("name")? } else { arguments.found("name")? };
        let slot = self.slot(name)?;
        if self.config.port(slot).lag_number().is_none() {
            return Err(format!("{name} is no LAG: they are lag1 and so on"));
        }
        match (verb, self.bondings.contains(&slot)) {
            ("add", true) => return Err(format!("there is an interface {name} already")),
            ("add", false) if arguments.get("mode") != Ok("802.3ad") => {
                return Err(format!("without mode=802.3ad {name} speaks no LACP"));
            }
            ("add", false) => {
                arguments.get("slaves")?;
                self.config.ports[slot.index()].admin = Admin::Up;
                self.bondings.insert(slot);
            }
            (_, false) => return Err(format!("there is no bonding {name}")),
            ("remove", true) => return self.remove_bonding(slot),
            (_, true) => {}
        }
        for (key, value) in &arguments.set {
            match (*key, *value) {
                ("name", own) if own == name => {}
                ("mode", "802.3ad") | ("lacp-rate", "1sec" | "30secs") | ("link-monitoring", "mii") => {}
                ("mii-interval", interval) if interval != "0" && interval.ends_with("ms") => {}
                ("transmit-hash-policy", policy) if HASH_POLICIES.contains(&policy) => {}
                ("slaves", names) => self.enslave(slot, names)?,
                ("disabled", "yes") => self.config.ports[slot.index()].admin = Admin::Down,
                ("disabled", "no") => self.config.ports[slot.index()].admin = Admin::Up,
                _ => return Err(format!("{key}={value} is not understood")),
            }
        }
        Ok(())
    }

    /// Has a LAG have these members and no others.
    fn enslave(&mut self, lag: Slot, names: &str) -> Result<(), String> {
        let members: Vec<Slot> = names.split(',').map(|name| self.slot(name)).collect::<Result<_, _>>()?;
        for member in self.config.members_of(lag).collect::<Vec<_>>() {
            self.config.ports[member.index()].lag = LagMembership::Alone;
        }
        for member in members {
            let port = self.config.port(member);
            let name = &port.name;
            if port.lag_number().is_some() {
                return Err(format!("{name} is a bonding itself"));
            }
            if is_member(port) {
                return Err(format!("port {name} is a slave already"));
            }
            if self.ports[member.index()].is_some() {
                return Err(format!("port {name} is still in the bridge"));
            }
            self.config.ports[member.index()].lag = LagMembership::Of(lag);
        }
        Ok(())
    }

    fn remove_bonding(&mut self, lag: Slot) -> Result<(), String> {
        let name = &self.config.port(lag).name;
        if self.ports[lag.index()].is_some() {
            return Err(format!("{name} is still in the bridge"));
        }
        if self.config.entries.values().any(|slot| *slot == lag) {
            return Err(format!("static hosts still lead to {name}"));
        }
        for member in self.config.members_of(lag).collect::<Vec<_>>() {
            self.config.ports[member.index()].lag = LagMembership::Alone;
        }
        // They do not mean a later one of its name.
        let names =
            self.members.iter().filter(|(_, (tagged, untagged))| tagged.iter().chain(untagged).any(|s| *s == lag));
        self.dangling.extend(names.map(|(vlan, _)| *vlan));
        self.bondings.remove(&lag);
        remove_lag(self.config, lag)
    }

    fn ethernet(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        let slot = self.physical(arguments.found("default-name")?)?;
        let port = &mut self.config.ports[slot.index()];
        let (mut rx, mut tx) = (None, None);
        for (key, value) in &arguments.set {
            match (*key, *value) {
                ("disabled", "yes") => port.admin = Admin::Down,
                ("disabled", "no") => port.admin = Admin::Up,
                ("rx-flow-control", state @ ("on" | "off")) => rx = Some(state == "on"),
                ("tx-flow-control", state @ ("on" | "off")) => tx = Some(state == "on"),
                _ => return Err(format!("{key}={value} is not understood")),
            }
        }
        match (rx, tx) {
            (None, None) => {}
            (Some(true), Some(true)) => port.flow_control = FlowControlMode::Pause,
            (Some(false), Some(false)) => port.flow_control = FlowControlMode::Off,
            _ => return Err("PAUSE is wanted in both directions or in none".to_owned()),
        }
        Ok(())
    }

    fn storm(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        let slot = self.physical(arguments.found("name")?)?;
        let (rate, flags) = &mut self.storms[slot.index()];
        for (key, value) in &arguments.set {
            match (STORM_FLAGS.iter().position(|flag| flag == key), *value) {
                (Some(kind), "yes") => flags[kind] = true,
                (Some(kind), "no") => flags[kind] = false,
                (None, percent) if *key == "storm-rate" => {
                    let number = percent.parse().ok().filter(|number| (1..=NO_LIMIT).contains(number));
                    *rate = number.ok_or_else(|| format!("storm-rate={percent} is not 1 to {NO_LIMIT} percent"))?;
                }
                _ => return Err(format!("{key}={value} is not understood")),
            }
        }
        let limit = StormLimit::new(*rate);
        self.config.ports[slot.index()].storm_limits = Some(flags.map(|limited| limit.filter(|_| limited)));
        Ok(())
    }

    fn bridge(&mut self, verb: &str, arguments: &Arguments<'_>) -> Result<(), String> {
        if verb == "add" {
            self.bridge = true;
            // Unless told otherwise, a bridge runs RSTP and filters no VLANs.
            (self.config.spanning_tree, self.filtering) = (SpanningTree::On, false);
        } else if !self.bridge || arguments.found("name")? != BRIDGE {
            return Err("there is no such bridge".to_owned());
        }
        for (key, value) in &arguments.set {
            match (*key, *value) {
                ("name", BRIDGE) => {}
                ("protocol-mode", mode) => {
                    self.config.spanning_tree = if mode == "none" { SpanningTree::Off } else { SpanningTree::On };
                }
                ("vlan-filtering", state) => self.filtering = state == "yes",
                // It is about MLD as well, and off unless told otherwise.
                ("igmp-snooping", "no") => {}
                ("igmp-snooping", _) => {
                    return Err("with igmp-snooping multicasts reach only ports that asked for them".to_owned());
                }
                _ => return Err(format!("{key}={value} is not understood")),
            }
        }
        Ok(())
    }

    fn remove(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        if arguments.found("name")? != BRIDGE || !self.bridge {
            return Err("there is no such bridge".to_owned());
        }
        if self.ports.iter().any(Option::is_some) {
            return Err("ports are still in the bridge".to_owned());
        }
        (self.bridge, self.filtering, self.config.spanning_tree) = (false, false, SpanningTree::On);
        Ok(())
    }

    fn port(&mut self, verb: &str, arguments: &Arguments<'_>) -> Result<(), String> {
        if verb == "remove" {
            let slot = self.slot(arguments.found("interface")?)?;
            self.ports[slot.index()] = None;
            let port = &mut self.config.ports[slot.index()];
            (port.learning, port.blocked) = (PortLearning::Off, Some(FloodSet::NONE));
            return Ok(());
        }
        let name = if verb == "add" { arguments.get("interface")? } else { arguments.found("interface")? };
        let slot = self.slot(name)?;
        if verb == "add" {
            if self.ports[slot.index()].is_some() {
                return Err(format!("port {name} is in the bridge already"));
            }
            let port = self.config.port(slot);
            if is_member(port) {
                return Err(format!("port {name} is a slave, and its bonding is a port of the bridge in its place"));
            }
            if port.lag_number().is_some() && !self.bondings.contains(&slot) {
                return Err(format!("there is no bonding {name}"));
            }
            self.ports[slot.index()] = Some(Port { pvid: VlanId::MIN, tagged_only: false });
            self.config.ports[slot.index()].ingress_filter = IngressFilter::On;
            // A port learns, and lets everything out, until it is told not to.
            self.config.ports[slot.index()].learning = PortLearning::On;
            self.config.ports[slot.index()].blocked = Some(FloodSet::NONE);
        }
        let Some(port) = &mut self.ports[slot.index()] else { return Err(format!("port {name} is not in the bridge")) };
        for (key, value) in &arguments.set {
            match (*key, *value) {
                ("interface", _) | ("bridge", BRIDGE) => {}
                ("learn", state @ ("yes" | "no" | "auto")) => {
                    let learns = if state == "no" { PortLearning::Off } else { PortLearning::On };
                    self.config.ports[slot.index()].learning = learns;
                }
                ("unknown-unicast-flood" | "unknown-multicast-flood" | "broadcast-flood", state @ ("yes" | "no")) => {
                    let kind = match *key {
                        "unknown-unicast-flood" => FloodKind::UnknownUnicast,
                        "unknown-multicast-flood" => FloodKind::Multicast,
                        _ => FloodKind::Broadcast,
                    };
                    let blocked = &mut self.config.ports[slot.index()].blocked;
                    let others = blocked.unwrap_or_default().without(FloodSet::NONE.with(kind));
                    *blocked = Some(if state == "no" { others.with(kind) } else { others });
                }
                ("pvid", number) => port.pvid = vlan(number)?,
                ("frame-types", "admit-all") => port.tagged_only = false,
                ("frame-types", "admit-only-vlan-tagged") => port.tagged_only = true,
                ("ingress-filtering", state) => {
                    self.config.ports[slot.index()].ingress_filter =
                        if state == "yes" { IngressFilter::On } else { IngressFilter::Off };
                }
                _ => return Err(format!("{key}={value} is not understood")),
            }
        }
        Ok(())
    }

    fn vlan(&mut self, verb: &str, arguments: &Arguments<'_>) -> Result<(), String> {
        let ids = if verb == "add" { arguments.get("vlan-ids")? } else { arguments.found("vlan-ids")? };
        let list = |key: &str| -> Result<Option<Vec<Slot>>, String> {
            let Ok(value) = arguments.get(key) else { return Ok(None) };
            value
                .split(',')
                .filter(|name| !name.is_empty())
                .map(|name| self.slot(name))
                .collect::<Result<_, _>>()
                .map(Some)
        };
        let (tagged, untagged) = (list("tagged")?, list("untagged")?);
        for vlan in vlans(ids)?.iter() {
            if verb == "remove" || (tagged.is_some() && untagged.is_some()) {
                self.dangling.remove(&vlan);
            }
            match verb {
                "add" if self.members.contains_key(&vlan) => return Err(format!("VLAN {vlan} is there already")),
                "add" => {
                    let lists = (tagged.clone().unwrap_or_default(), untagged.clone().unwrap_or_default());
                    self.members.insert(vlan, lists);
                }
                "set" => {
                    let members = self.members.get_mut(&vlan).ok_or_else(|| format!("there is no VLAN {vlan}"))?;
                    if let Some(tagged) = &tagged {
                        members.0.clone_from(tagged);
                    }
                    if let Some(untagged) = &untagged {
                        members.1.clone_from(untagged);
                    }
                }
                _ => {
                    self.members.remove(&vlan).ok_or_else(|| format!("there is no VLAN {vlan}"))?;
                }
            }
        }
        Ok(())
    }

    fn host(&mut self, verb: &str, arguments: &Arguments<'_>) -> Result<(), String> {
        let add = verb == "add";
        let value = |key| if add { arguments.get(key) } else { arguments.found(key) };
        let (number, address) = (vlan(value("vid")?)?, mac(value("mac-address")?)?);
        if add {
            let slot = self.slot(value("interface")?)?;
            self.config.entries.insert((number, address), slot);
            return Ok(());
        }
        match self.config.entries.remove(&(number, address)) {
            Some(_) => Ok(()),
            None => Err(format!("there is no static entry for {address} in VLAN {number} to remove")),
        }
    }

    /// Weighs what was told.
    fn finish(self) -> Result<(), String> {
        if self.bridge && !self.filtering {
            return Err("the bridge does not filter VLANs: vlan-filtering=yes is missing".to_owned());
        }
        if let Some(vlan) = self.dangling.first() {
            return Err(format!("VLAN {vlan} still names a bonding that was removed"));
        }
        take_flow_control(self.config);
        for (index, (port, settings)) in self.config.ports.iter_mut().zip(&self.ports).enumerate() {
            (port.tagged, port.untagged, port.pvid) = (VlanSet::new(), VlanSet::new(), None);
            let Some(settings) = settings else { continue };
            let slot = Slot::new(index);
            for (&vlan, (tagged, untagged)) in &self.members {
                if tagged.contains(&slot) {
                    port.tagged.insert(vlan);
                } else if untagged.contains(&slot) {
                    port.untagged.insert(vlan);
                }
            }
            if !settings.tagged_only {
                port.pvid = Some(settings.pvid);
                if !port.tagged.contains(settings.pvid) {
                    port.untagged.insert(settings.pvid);
                }
            }
        }
        self.config.vlans = self.members.keys().copied().filter(|vlan| *vlan != VlanId::MIN).collect();
        Ok(())
    }
}
