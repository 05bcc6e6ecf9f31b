//! What can be wrong with a piece of cabling.

use std::net::IpAddr;

use thiserror::Error;

use crate::{BadIdentity, Guid, Mac, NAME_BYTES_MAX};

/// What is wrong with a piece of cabling.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// A name that is empty, too long, or holds a character that other tools would stumble over.
    #[error("{0:?} is not a usable name")]
    BadName(String),
    /// A port's name that is empty, too long, begins or ends with a space, or holds what cannot be printed on a line.
    #[error("{0:?} is not a usable name of a port")]
    BadPortName(String),
    /// Two switches of one name.
    #[error("switch {0} is named twice")]
    DuplicateSwitch(String),
    /// Two hosts of one name.
    #[error("host {0} is named twice")]
    DuplicateHost(String),
    /// A link or host on a switch that was never named.
    #[error("unknown switch {name}")]
    UnknownSwitch {
        /// The name as written.
        name: String,
        /// The known name that looks most like it.
        similar: Option<String>,
    },
    /// A port name that the switch's model does not have.
    #[error("switch {switch} ({model}) has no port {port}")]
    UnknownPort {
        /// The switch.
        switch: String,
        /// Its model.
        model: String,
        /// The port as written.
        port: String,
        /// The model's port names, abridged.
        known: String,
    },
    /// A model that Espalier does not know.
    #[error("unknown model {name}")]
    UnknownModel {
        /// The name as written.
        name: String,
        /// The known name that looks most like it.
        similar: Option<String>,
        /// Every known name.
        known: String,
    },
    /// A port with two cables.
    #[error("port {port} already carries {by}")]
    PortUsedTwice {
        /// The port, as `switch:port`.
        port: String,
        /// What is plugged in already.
        by: String,
    },
    /// A cable from a switch to itself.
    #[error("a cable from {switch} to itself is a loop that no tree can use")]
    SelfLoop {
        /// The switch.
        switch: String,
    },
    /// Two hosts of one address.
    #[error("address {mac} already belongs to host {host}")]
    DuplicateMac {
        /// The address.
        mac: Mac,
        /// Who has it.
        host: String,
    },
    /// A group address where a station's is needed.
    #[error("address {mac} is a group address and cannot belong to one host")]
    MulticastMac {
        /// The address.
        mac: Mac,
    },
    /// All zeros where a station's address is needed.
    #[error("address 00:00:00:00:00:00 belongs to nobody")]
    ZeroMac,
    /// Two hosts of one IP address.
    #[error("address {address} already belongs to host {host}")]
    DuplicateAddress {
        /// The address.
        address: IpAddr,
        /// Who has it.
        host: String,
    },
    /// A machine whose name another has, or whose ports other hosts stand between.
    #[error("machine {0} is named twice, or its ports are not listed one after another")]
    DuplicateMachine(String),
    /// A port of a machine whose name does not begin with the machine's.
    #[error("host {host} cannot be a port of machine {machine}")]
    NotOfMachine {
        /// The host.
        host: String,
        /// The machine.
        machine: String,
    },
    /// A machine that has a failover bond and other ports as well.
    #[error("machine {0} has a bond, so all its ports are ports of the bond; other ports are another machine's")]
    MixedBond(String),
    /// A second edge port that is not on standby.
    #[error("{host} is an edge port, and so is {other}: two uplinks to one network outside close a loop through it")]
    SecondEdge {
        /// The second.
        host: String,
        /// The first.
        other: String,
    },
    /// A standby edge at a LAG: members of a LAG stay up.
    #[error("edge port {edge} is on standby at {lag}, a LAG, whose members cannot be shut")]
    StandbyAtLag {
        /// The standby edge.
        edge: String,
        /// The LAG, as `switch:port`.
        lag: String,
    },
    /// A LAG without members.
    #[error("{lag} has no members")]
    EmptyLag {
        /// The LAG, as `switch:port`.
        lag: String,
    },
    /// A port that cannot be a member of a LAG: it is on another switch, or a LAG itself.
    #[error("{port} cannot be a member of {lag}")]
    NotOfLag {
        /// The port, as `switch:port`.
        port: String,
        /// The LAG, as `switch:port`.
        lag: String,
    },
    /// Two ends of a link that have not the same number of cables.
    #[error("{a} has {}, {b} has {}", cables(counts[0]), cables(counts[1]))]
    UnequalLags {
        /// One end, as `switch:port`.
        a: String,
        /// The other.
        b: String,
        /// Cables at each.
        counts: [usize; 2],
    },
    /// A LAG whose members are not of one rate.
    #[error("the rate of {lag} does not divide among its {members} members")]
    UnequalMembers {
        /// The LAG, as `switch:port`.
        lag: String,
        /// How many there are.
        members: usize,
    },
    /// A group whose name another group has.
    #[error("group {0} is named twice")]
    DuplicateGroup(String),
    /// A group and a switch of one name.
    #[error("{0} is the name of a switch and of a group")]
    GroupNamedAsSwitch(String),
    /// A group without members.
    #[error("group {0} has no members")]
    EmptyGroup(String),
    /// A member that a group has twice.
    #[error("{member} is twice in group {group}")]
    DuplicateMember {
        /// The group.
        group: String,
        /// The switch, or the link as `switch:port -- switch:port`.
        member: String,
    },
    /// Two devices of one GUID.
    #[error("GUID {guid} already belongs to {owner}")]
    DuplicateGuid {
        /// The GUID.
        guid: Guid,
        /// Who has it.
        owner: String,
    },
    /// Two switches of one management address.
    #[error("management address {address} already belongs to switch {switch}")]
    DuplicateMgmt {
        /// The address.
        address: IpAddr,
        /// Who has it.
        switch: String,
    },
    /// A text that no switch is known by.
    #[error(transparent)]
    BadIdentity(#[from] BadIdentity),
    /// Addresses are to be learned at a port of a failover bond, or at an edge port.
    #[error("addresses cannot be learned at {host}: it is an edge port, or a port of a failover bond")]
    LearnsElsewhere {
        /// The host.
        host: String,
    },
    /// More of something than Espalier will hold.
    #[error("more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// A switch that no path connects to the first one.
    #[error("switch {switch} cannot be reached from switch {from}")]
    Unreachable {
        /// The switch.
        switch: String,
        /// The first switch of the file.
        from: String,
    },
    /// A file that names no switch.
    #[error("there is no switch")]
    Empty,
}

fn cables(count: usize) -> String {
    if count == 1 { "1 cable".to_owned() } else { format!("{count} cables") }
}

impl Fault {
    /// What would be right, where that can be said.
    pub fn help(&self) -> Option<String> {
        let similar = |similar: &Option<String>| similar.as_ref().map(|name| format!("did you mean {name}?"));
        match self {
            Self::BadPortName(_) => Some(format!(
                "ports are named by 1 to {NAME_BYTES_MAX} bytes of letters, digits, punctuation and spaces between them"
            )),
            Self::BadName(_) => {
                Some(format!("names are 1 to {NAME_BYTES_MAX} bytes of letters, digits and any of - _ . / + @ #"))
            }
            Self::UnknownSwitch { similar: name, .. } => {
                similar(name).or_else(|| Some("name it under switches: first".to_owned()))
            }
            Self::UnknownModel { similar: name, known, .. } => similar(name).or_else(|| {
                Some(format!("known models: {known}; describe others in a folder models/ beside the topology"))
            }),
            Self::UnknownPort { known, .. } => Some(format!("its ports are {known}")),
            Self::PortUsedTwice { .. } => Some("a port takes one cable; check the number at both ends".to_owned()),
            Self::MulticastMac { .. } => Some("the first octet of a station's address is even".to_owned()),
            Self::NotOfMachine { machine, .. } => {
                Some(format!("the ports of a machine are named after it: {machine}/eth0, {machine}/eth1"))
            }
            Self::LearnsElsewhere { .. } => {
                Some("list the addresses behind it, addresses: [\"52:54:00:00:00:01\"]".to_owned())
            }
            Self::SecondEdge { .. } => {
                Some("keep one of them on standby, with standby: true: its port is shut".to_owned())
            }
            Self::StandbyAtLag { .. } => Some("plug it into one port: port: \"sw1:g24\"".to_owned()),
            Self::EmptyLag { lag } => {
                let name = lag.rsplit_once(':').map_or(lag.as_str(), |(_, name)| name);
                Some(format!("say which ports of the switch are its members: lags: {{{name}: [g1, g2]}}"))
            }
            Self::NotOfLag { .. } => Some("members are ports of the same switch, and no LAGs".to_owned()),
            Self::UnequalLags { .. } => {
                Some("every member of a LAG has a cable, and both ends of a link are LAGs, or neither is".to_owned())
            }
            Self::DuplicateGroup(_) => Some("merge the two, or give one of them another name".to_owned()),
            Self::GroupNamedAsSwitch(name) => {
                Some(format!("give the group a name that no switch has, such as group-{name}"))
            }
            Self::EmptyGroup(name) => {
                Some(format!("name switches or cables: {name}: [sw1, \"sw2:g1 -- sw3:g1\"], or leave the group out"))
            }
            Self::DuplicateMember { .. } => Some("name it once".to_owned()),
            Self::DuplicateMgmt { .. } => Some("every switch has a management address of its own".to_owned()),
            Self::Unreachable { .. } => Some("add the missing cable, or take the switch out".to_owned()),
            _ => None,
        }
    }
}
