//! The languages in which switches are told what to be.
//!
//! A dialect writes the commands that take a switch from one state to another, and reads commands as the switch would.
//! The full configuration is the way from the state in which the switch comes out of its box; a difference is the way from
//! any other. Writer and reader of a dialect share words, and no code: the reader follows the language's grammar and the
//! switch's defaults, so that what a writer forgets is missed.

mod bond;
mod commands;
mod comware;
mod edge_core;
mod fastpath;
pub mod foreign;
mod huawei;
mod ifupdown2;
mod junos;
mod kept;
mod kernel_bridge;
mod linux_bridge;
mod networkd;
mod open_vswitch;
mod ros;
mod routeros;
pub(crate) mod sieve;
pub(crate) mod snooping;
mod sonic;
mod storm;
mod tp_link;
mod trunk;
mod zyxel;

use std::{fmt, io, str::FromStr};

use fabric::{Basis, FloodSet, FlowControlMode, VlanId};

pub(crate) use snooping::SnoopingWords;
pub(crate) use sonic::SWSSCONFIG;

use crate::{RenderError, text::LineError};
use switch_model::{LagMembership, PortConfig, PortLearning, Slot, StormLimits, SwitchConfig, change::Change};

/// Where a dialect's text goes, file by file: what is written belongs to the file that was begun last.
pub trait Folder: io::Write {
    /// Begins a file; its name may have folders in it.
    ///
    /// # Errors
    /// If it cannot be made.
    fn begin(&mut self, name: &str) -> io::Result<()>;
}

/// One file of a switch.
#[derive(Clone, Copy, Debug)]
pub struct TextFile<'a> {
    /// Its name, as errors say it.
    pub name: &'a str,
    /// Its content.
    pub text: &'a str,
}

/// Errors of one file, by its position among those that were read.
pub(crate) type FileErrors = Vec<(usize, LineError)>;

/// A language in which a switch is configured.
pub(crate) trait Dialect: Sync {
    /// What it is able to say.
    fn traits(&self) -> Traits;

    /// The state of ports that nobody has configured: as they come out of the box, or, where LAGs are made, as they are made.
    fn factory(&self, ports: Vec<String>) -> SwitchConfig;

    /// Whether ports are in VLAN 1 until they are told otherwise.
    fn begins_in_vlan_1(&self) -> bool {
        self.factory(vec![String::new()]).memberships().contains(VlanId::MIN)
    }

    /// Writes what takes a switch from one state to another.
    fn write(&self, change: &Change<'_>, to: &mut Output<'_>) -> io::Result<()>;

    /// Does what the files say to a switch in this state.
    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors>;
}

/// What a language is able to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    /// How comments begin; none if there are none.
    pub(crate) comment: Option<&'static str>,
    /// What files end in.
    pub(crate) extension: &'static str,
    /// Untagged membership.
    pub(crate) untagged: Untagged,
    /// PAUSE.
    pub(crate) pause: Ability,
    /// Priority flow control.
    pub(crate) priority_flow_control: Ability,
    /// How a full configuration is said.
    pub(crate) full: Full,
    /// Whether ports can be told to learn, or not to.
    pub(crate) learning: Learns,
    /// Floods that ports can be told not to let out.
    pub(crate) blocks: FloodSet,
    /// Storm control.
    pub(crate) storm_control: StormControl,
    /// LAGs that speak LACP.
    pub(crate) lags: Lags,
    /// The commands that turn LLDP on and off, both global; none where LLDP is another program's.
    pub(crate) lldp: Option<[&'static str; 2]>,
    /// IGMP and MLD snooping.
    pub(crate) snooping: SnoopingWords,
    /// Which port names it takes, and an example.
    pub(crate) port_name: (fn(&str) -> bool, &'static str),
    /// What the driver rests on.
    pub(crate) basis: Basis,
}

/// Which ports can be told the most floods that they admit, in percent of their rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StormControl {
    /// None.
    Lacks,
    /// All but LAGs.
    OfPorts,
    /// All.
    OfPortsAndLags,
}

/// How a language says a full configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// As commands: with ports shut first, and then opened.
    InSteps,
    /// As files that say what is, each begun by the dialect.
    AsState,
}

/// In how many VLANs a port may be untagged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untagged {
    /// Many, with any PVID.
    Many,
    /// At most one, which is the PVID.
    Native,
}

/// What ports do about senders' addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learns {
    /// As they are told.
    AsTold,
    /// They always learn.
    Always,
    /// They cannot: what the language makes goes by static entries alone.
    Never,
}

/// Whether a language has LAGs that speak LACP, and whether they are there by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lags {
    /// It has none.
    Lacks,
    /// They are there, without members, as ports are.
    Standing,
    /// They are made and removed.
    Made,
    /// They are made with their members, and removed with the last one.
    MadeOfMembers,
}

impl Lags {
    /// Whether LAGs have to be made.
    pub(crate) fn are_made(self) -> bool {
        matches!(self, Self::Made | Self::MadeOfMembers)
    }
}

/// Whether a language has words for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ability {
    Has,
    Lacks,
}

/// Where a dialect writes: the head of the text is written with every file.
pub(crate) struct Output<'a> {
    pub(crate) folder: &'a mut dyn Folder,
    /// The switch's name, fit for a file.
    pub(crate) stem: &'a str,
    /// What every file begins with, as lines without comment signs.
    pub(crate) head: &'a [String],
}

impl Output<'_> {
    /// Begins a file and writes its head.
    pub(crate) fn begin(&mut self, name: &str, comment: &str) -> io::Result<()> {
        self.folder.begin(name)?;
        for line in self.head {
            writeln!(self.folder, "{comment} {line}")?;
        }
        Ok(())
    }
}

impl io::Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.folder.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.folder.flush()
    }
}

macro_rules! targets {
    ($($(#[$doc:meta])* $variant:ident = $name:literal => $dialect:expr,)+) => {
        /// A language, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Target {
            $($(#[$doc])* $variant,)+
        }

        impl Target {
            /// Every target, in the order in which help texts list them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            pub(crate) fn dialect(self) -> &'static dyn Dialect {
                match self { $(Self::$variant => &$dialect,)+ }
            }
        }
    };
}

targets! {
    /// A VLAN-aware Linux bridge, as a script of iproute2 batches.
    LinuxBridge = "linux-bridge" => linux_bridge::LinuxBridge,
    /// A VLAN-aware Linux bridge, as files of systemd-networkd.
    Networkd = "networkd" => networkd::Networkd,
    /// A VLAN-aware Linux bridge, as files of ifupdown2: Cumulus Linux.
    Ifupdown2 = "ifupdown2" => ifupdown2::Ifupdown2,
    /// Open vSwitch, as OpenFlow rules.
    OpenVswitch = "open-vswitch" => open_vswitch::OpenVswitch,
    /// Dell PowerConnect 53xx and 54xx.
    PowerConnect = "powerconnect" => ros::Ros::PowerConnect,
    /// Cisco SG200 to SG500, PowerConnect 55xx.
    CiscoSb = "cisco-sb" => ros::Ros::CiscoSb,
    /// Edge-Core, SMC 8648T, PowerConnect 5224.
    EdgeCore = "edge-core" => edge_core::EdgeCore,
    /// HPE and H3C, Comware 7.
    Comware7 = "comware7" => comware::Comware::V7,
    /// HPE and H3C, Comware 5.
    Comware5 = "comware5" => comware::Comware::V5,
    /// Huawei VRP.
    Huawei = "huawei" => huawei::Huawei,
    /// ZyXEL GS-40xx.
    Zyxel = "zyxel" => zyxel::Zyxel,
    /// TP-Link JetStream.
    TpLink = "tp-link" => tp_link::TpLink,
    /// Netgear and EdgeSwitch.
    Fastpath = "fastpath" => fastpath::Fastpath,
    /// MikroTik RouterOS.
    RouterOs = "routeros" => routeros::RouterOs,
    /// SONiC, as a part of `config_db.json`.
    Sonic = "sonic" => sonic::Sonic,
    /// Arista EOS.
    Eos = "eos" => trunk::Trunk::Eos,
    /// Cisco IOS.
    Ios = "ios" => trunk::Trunk::Ios,
    /// Juniper Junos with ELS.
    Junos = "junos" => junos::Junos,
}

impl Target {
    /// What its driver rests on.
    pub fn basis(self) -> Basis {
        self.dialect().traits().basis
    }

    /// Whether a port can be untagged in many VLANs, as switch-tagged plans need.
    pub fn has_hybrid_ports(self) -> bool {
        self.dialect().traits().untagged == Untagged::Many
    }

    /// Floods that its ports can be told not to let out, as plans with `--flood` need.
    pub fn blocks_floods(self) -> FloodSet {
        self.dialect().traits().blocks
    }

    /// Whether its ports can be told the most floods that they admit, as plans with `--storm-control` need.
    pub fn has_storm_control(self) -> bool {
        self.dialect().traits().storm_control != StormControl::Lacks
    }

    /// Whether it has LAGs, which speak LACP.
    pub fn has_lags(self) -> bool {
        self.dialect().traits().lags != Lags::Lacks
    }

    /// Whether its configuration turns LLDP on, which deployment and `status` confirm cables by.
    pub fn has_lldp(self) -> bool {
        self.dialect().traits().lldp.is_some()
    }

    /// The state that the full configuration starts from. A LAG that has to be made is not there: a port without members that is
    /// down and in no VLAN.
    pub fn factory(self, ports: Vec<String>) -> SwitchConfig {
        let mut config = self.dialect().factory(ports);
        config.snooping = self.dialect().traits().snooping.factory.iter().copied().collect();
        if self.dialect().traits().lags.are_made() {
            let lags = config.ports.iter_mut().filter(|port| port.lag_number().is_some());
            lags.for_each(|port| *port = absent(port));
        }
        config
    }

    /// Refuses what the language cannot say of a switch.
    pub(crate) fn refuse(self, switch: &str, config: &SwitchConfig) -> Result<(), RenderError> {
        let default_is_taken = self.dialect().begins_in_vlan_1();
        if let Some(port) = config.ports.iter().find(|port| default_is_taken && port.is_member(VlanId::MIN)) {
            return Err(RenderError::Inexpressible {
                switch: switch.to_owned(),
                port: port.name.clone(),
                target: self.name(),
                what: "VLAN 1 as one of the plan's: every port is in it until told otherwise".to_owned(),
                way_out: "plan with VLANs from 2 on, as --vlans does by default",
            });
        }
        self.refuse_ports(switch, config)
    }

    /// Refuses what the language cannot say of ports, whatever VLANs they are in.
    pub(crate) fn refuse_ports(self, switch: &str, config: &SwitchConfig) -> Result<(), RenderError> {
        let traits = self.dialect().traits();
        let (takes, like) = traits.port_name;
        if traits.lags == Lags::MadeOfMembers {
            let is_empty = |lag: &Slot| stands(config, *lag) && config.members_of(*lag).next().is_none();
            if let Some(lag) = lags(config).find(is_empty) {
                return Err(RenderError::Inexpressible {
                    switch: switch.to_owned(),
                    port: config.port(lag).name.clone(),
                    target: self.name(),
                    what: "a LAG without members".to_owned(),
                    way_out: "name its members under lags: in the topology",
                });
            }
        }
        for port in &config.ports {
            // A LAG is called in the switch's language by its number.
            if port.lag_number().is_none() && !takes(&port.name) {
                let (switch, port) = (switch.to_owned(), port.name.clone());
                return Err(RenderError::PortName { switch, port, target: self.name(), like });
            }
            if let Some((what, way_out)) = refuse_port(&traits, port) {
                let (switch, port) = (switch.to_owned(), port.name.clone());
                return Err(RenderError::Inexpressible { switch, port, target: self.name(), what, way_out });
            }
        }
        for ((vlan, mac), slot) in &config.entries {
            let port = config.port(*slot);
            if !port.is_member(*vlan) {
                return Err(RenderError::Inexpressible {
                    switch: switch.to_owned(),
                    port: port.name.clone(),
                    target: self.name(),
                    what: format!("an entry for {mac} in VLAN {vlan}, of which the port is no member"),
                    way_out: "such a plan is broken: check it",
                });
            }
        }
        Ok(())
    }
}

/// The state of a LAG that is not there.
pub(crate) fn absent(lag: &PortConfig) -> PortConfig {
    let learning = match lag.learning {
        PortLearning::Always => PortLearning::Always,
        PortLearning::On | PortLearning::Off => PortLearning::Off,
    };
    PortConfig { learning, ..PortConfig::blank(lag.name.clone()) }
}

/// Takes a LAG away, with the entries that lead to it.
///
/// # Errors
/// A message naming a port that is still a member.
pub(crate) fn remove_lag(config: &mut SwitchConfig, lag: Slot) -> Result<(), String> {
    if let Some(member) = config.members_of(lag).next() {
        return Err(format!("port {} is still a member of {}", config.port(member).name, config.port(lag).name));
    }
    config.entries.retain(|_, leads| *leads != lag);
    config.ports[lag.index()] = absent(config.port(lag));
    Ok(())
}

/// Whether a LAG that has to be made is there.
pub(crate) fn stands(config: &SwitchConfig, lag: Slot) -> bool {
    let port = config.port(lag);
    config.members_of(lag).next().is_some() || *port != absent(port)
}

/// LAGs of a switch.
pub(crate) fn lags(config: &SwitchConfig) -> impl Iterator<Item = Slot> + '_ {
    let ports = config.ports.iter().enumerate();
    ports.filter(|(_, port)| port.lag_number().is_some()).map(|(index, _)| Slot::new(index))
}

/// Whether a port is a member of a LAG, and so none with VLANs of its own.
fn is_member(port: &PortConfig) -> bool {
    matches!(port.lag, LagMembership::Of(_))
}

/// Of the first so many ports those that are there: all but LAGs that nobody uses.
fn present(config: &SwitchConfig, count: usize) -> impl Iterator<Item = &PortConfig> {
    let ports = config.ports.iter().enumerate().take(count);
    ports.filter(|(at, port)| port.lag_number().is_none() || stands(config, Slot::new(*at))).map(|(_, port)| port)
}

/// LAGs that a change makes.
fn lags_made<'a>(change: &Change<'a>) -> impl Iterator<Item = Slot> + use<'a> {
    let (before, after) = (change.before, change.after);
    lags(after).filter(move |lag| !stands(before, *lag) && stands(after, *lag))
}

/// LAGs that a change removes.
fn lags_removed<'a>(change: &Change<'a>) -> impl Iterator<Item = Slot> + use<'a> {
    let (before, after) = (change.before, change.after);
    lags(before).filter(move |lag| stands(before, *lag) && !stands(after, *lag))
}

fn refuse_port(traits: &Traits, port: &PortConfig) -> Option<(String, &'static str)> {
    if let Some(pvid) = port.pvid.filter(|pvid| !port.is_member(*pvid)) {
        return Some((
            format!("PVID {pvid} on a port that is no member of that VLAN"),
            "such a plan is broken: check it",
        ));
    }
    if traits.untagged == Untagged::Native {
        let native: Vec<_> = port.untagged.iter().collect();
        if native.len() > 1 {
            return Some((
                format!("a port that is untagged in VLANs {}", port.untagged),
                "let hosts tag: plan with --tagging source",
            ));
        }
        if native.first().copied() != port.pvid {
            let pvid = port.pvid.map_or_else(|| "none".to_owned(), |pvid| pvid.to_string());
            return Some((
                format!("PVID {pvid} beside the untagged VLAN {{{}}}: its native VLAN is both", port.untagged),
                "let hosts tag: plan with --tagging source",
            ));
        }
    }
    if traits.learning == Learns::Never && port.learning == PortLearning::On {
        return Some(("that ports learn".to_owned(), "plan with static entries: --fdb minimal"));
    }
    let unable = port.blocked.unwrap_or_default().without(traits.blocks);
    if !unable.is_empty() {
        return Some((format!("blocked floods ({unable})"), "plan with --flood forward"));
    }
    let unlimited = match traits.storm_control {
        StormControl::Lacks => Some("storm control in percent"),
        StormControl::OfPorts if port.lag_number().is_some() => Some("storm control of a LAG"),
        StormControl::OfPorts | StormControl::OfPortsAndLags => None,
    };
    if let Some(what) = unlimited.filter(|_| port.storm_limits.unwrap_or_default() != StormLimits::default()) {
        return Some((what.to_owned(), "plan without --storm-control"));
    }
    if traits.lags == Lags::Lacks && (is_member(port) || port.lag_number().is_some()) {
        return Some(("LAGs".to_owned(), "describe each cable as a link of its own, without lags: in the topology"));
    }
    match port.flow_control {
        FlowControlMode::Pause if traits.pause == Ability::Lacks => {
            Some(("802.3x PAUSE in both directions".to_owned(), "plan without it: --flow-control none"))
        }
        FlowControlMode::Pfc { .. } if traits.priority_flow_control == Ability::Lacks => Some((
            "priority flow control".to_owned(),
            "plan with --flow-control pause, or use switches with priority flow control (SONiC, EOS)",
        )),
        FlowControlMode::Off | FlowControlMode::Pause | FlowControlMode::Pfc { .. } => None,
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Target {
    type Err = RenderError;

    fn from_str(name: &str) -> Result<Self, RenderError> {
        Self::ALL.iter().copied().find(|target| target.name() == name).ok_or_else(|| RenderError::UnknownTarget {
            name: name.to_owned(),
            known: Self::ALL.iter().map(|target| target.name()).collect::<Vec<_>>().join(", "),
        })
    }
}

/// How many priorities a tag tells apart, and how many classes there are at most.
const PRIORITIES: usize = 8;

/// Whether each of the first `lanes` classes holds the frames of its own priority and no others: `class_of[priority]`.
fn are_apart(class_of: [u8; PRIORITIES], lanes: u8) -> bool {
    (0..).zip(class_of).all(|(priority, class)| priority == class || lanes <= priority.min(class))
}

/// Reads the only file of a dialect that has one.
fn read_only(files: &[TextFile<'_>], read: impl FnOnce(&str) -> Result<(), Vec<LineError>>) -> Result<(), FileErrors> {
    let at = |errors: Vec<LineError>, file| errors.into_iter().map(|error| (file, error)).collect();
    match files {
        [file] => read(file.text).map_err(|errors| at(errors, 0)),
        _ => {
            let message = format!("one file is expected, and there are {}", files.len());
            Err(at(vec![LineError { line: 1, message }], 0))
        }
    }
}

/// A name that a command line takes as one word: letters, digits and `-`, `_`, `.`, `/`, beginning with a letter.
fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}

/// A name such as `1/0/1`: numbers, so many of them, with slashes between.
fn is_numbers(name: &str, count: std::ops::RangeInclusive<usize>) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    count.contains(&parts.len())
        && parts.iter().all(|part| !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit()))
}
