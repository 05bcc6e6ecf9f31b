//! What vendors' agents do otherwise than the standards say, in one table: how it was learned, and what is done about it.
//!
//! Code elsewhere decides by what an agent *says* (lists that fit no other form, numbers that are no bridge port), not by who made
//! it; this table is for people, and `docs/quirks.md` is made from it. What can only be told by words of the trade, which ports are
//! management ports or LAGs by their names, stands here too.

/// A way in which some agents differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirk {
    /// A short name, which the quirk's test bears as well.
    pub name: &'static str,
    /// Makes that it was seen at.
    pub seen_at: &'static str,
    /// What they do.
    pub does: &'static str,
    /// How it is noticed, and what is done.
    pub answer: &'static str,
    /// How that was learned.
    pub learned: Learned,
}

/// Where knowledge of a quirk comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// Public recordings of devices: tests/snmpsim of LibreNMS, or snmpsim-data.
    Recordings,
    /// The vendor's guide or MIB.
    Guide,
}

/// Every quirk that is known.
pub const QUIRKS: &[Quirk] = &[
    Quirk {
        name: "no-vlan-table",
        seen_at: "Cisco Catalyst (IOS, IOS-XE), Nexus, Huawei S5720, MikroTik RouterOS, Zyxel XGS4600",
        does: "No row in dot1qVlanStaticTable, or no Q-BRIDGE-MIB at all.",
        answer: "Refused by observe, status, deploy and enrol: an empty table is no switch without VLANs. Use SSH, or the vendor's own MIB.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "ieee-vlan-table",
        seen_at: "Aruba AOS-CX, Extreme",
        does: "VLANs stand in IEEE8021-Q-BRIDGE-MIB instead of Q-BRIDGE-MIB.",
        answer: "Read where there is nothing else. It is never written: use SSH.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "vlan-without-name",
        seen_at: "Juniper Junos",
        does: "A VLAN has members, but no row in the column of names.",
        answer: "A VLAN is there if any column of dot1qVlanStaticTable has it.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "decimal-lists",
        seen_at: "Juniper Junos",
        does: "A PortList is text: decimal numbers with commas.",
        answer: "Read where all of a switch's lists are such. It is never written: use SSH.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "right-aligned-lists",
        seen_at: "D-Link DES-3000",
        does: "The last bit of a PortList is port 1.",
        answer: "Refused, as any list is that names ports which the switch does not have.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "word-lists",
        seen_at: "Brocade ICX",
        does: "A PortList is a row of port numbers of 16 bits.",
        answer: "Refused.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "hex-lists",
        seen_at: "ZTE ZXR10",
        does: "A PortList is text: hexadecimal digits of the bits.",
        answer: "Refused.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "foreign-bits",
        seen_at: "HP ProCurve 6120XG, H3C, Aruba controllers",
        does: "A PortList has bits for trunk groups, CPUs or other interfaces that are no bridge ports.",
        answer: "Refused: whether the numbers are bridge ports at all is not known.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "ports-from-zero",
        seen_at: "Dell SONiC, Juniper MX, MikroTik RouterOS",
        does: "dot1dBasePort begins at 0.",
        answer: "Port 0 is a port like others; lists of bits, which have none for it, are refused.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "per-vlan-bridge",
        seen_at: "Cisco IOS and IOS-XE",
        does: "BRIDGE-MIB speaks of VLAN 1 alone; of another VLAN in the context of community@VLAN, or vlan-VLAN in SNMPv3.",
        answer: "Discovery reads ports and learned addresses of every VLAN of vtpVlanState in its context.",
        learned: Learned::Guide,
    },
    Quirk {
        name: "lldp-by-ifindex",
        seen_at: "Cisco NX-OS, Dell OS9, SONiC",
        does: "lldpRemLocalPortNum is an ifIndex, beyond 65,535 even.",
        answer: "A number is looked for among LLDP's own ports, and then as bridge port and as ifIndex: as what most others of the switch are.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "lldp-without-local-ports",
        seen_at: "H3C Comware 5, MikroTik RouterOS",
        does: "No lldpLocPortTable.",
        answer: "A number that is a bridge port or an ifIndex, not both of different ports, tells the port; else both are named as a doubt.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "lldp-short-index",
        seen_at: "MikroTik RouterOS 6",
        does: "The index of lldpRemTable is lldpRemIndex alone, so no row says at which port.",
        answer: "The neighbours are named as a doubt.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "lldp-v2",
        seen_at: "Extreme, Nokia",
        does: "LLDP-V2-MIB instead of LLDP-MIB.",
        answer: "Read where LLDP-MIB has no neighbour.",
        learned: Learned::Guide,
    },
    Quirk {
        name: "lldp-on-lag-members",
        seen_at: "Arista EOS, Cisco, Dell OS9, Juniper",
        does: "Neighbours are heard on members of a LAG, of which the LAG alone is a bridge port.",
        answer: "Taken for a cable of the LAG where the switch says which LAG that is (IEEE8023-LAG-MIB, `ifStackTable`); else named as a doubt, with the interface.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "mac-in-letters",
        seen_at: "Cisco NX-OS, Dell SONiC",
        does: "An identifier of subtype macAddress is text: 74:86:e2:0a:0c:04.",
        answer: "Read as the address.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "short-names",
        seen_at: "Cisco NX-OS, IOS",
        does: "A neighbour's port is called Eth1/19, while ifName is Ethernet1/19.",
        answer: "The same port, where the spellings mean one on every switch.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "cdp-among-lldp",
        seen_at: "HP ProCurve",
        does: "Neighbours heard by CDP stand in LLDP's table, named NAME(SERIAL).",
        answer: "NAME is looked for among the switches' sysNames.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "one-neighbour-many-ports",
        seen_at: "all that have uplinks to switches which were not asked",
        does: "One chassis is heard on several ports.",
        answer: "A neighbour with the bridge or router capability, or heard on several ports by one address, is a switch that was not asked, and named as a doubt; never a host.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "names-with-spaces",
        seen_at: "Dell OS9, TP-Link, Ubiquiti EdgeSwitch, Ruijie",
        does: "ifName has spaces, colons or brackets: TenGigabitEthernet 1/30, 1/1/11:3.",
        answer: "Names in topologies as they are, in quotes where a format needs them.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "names-twice",
        seen_at: "Huawei stacks, Dell OS9, Ciena",
        does: "Two bridge ports have one ifName.",
        answer: "Discovery calls them by ifDescr, or as \"bridge port N\"; the name alone is refused, with those to use.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "names-of-models",
        seen_at: "Edge-Core (Port1), Zyxel (swp00), TP-Link (gigabitEthernet 1/0/1)",
        does: "The command line calls a port 1/1, 1 or 1/0/1, SNMP otherwise.",
        answer: "Numbers find their port where exactly one port for data has them; of ports numbered from 0, the first is 1.",
        learned: Learned::Recordings,
    },
    Quirk {
        name: "lags-like-ports",
        seen_at: "Cisco Small Business, Arista, Aruba AOS-CX, TP-Link",
        does: "LAGs and management ports are bridge ports, down like free ones; some have ifType 6.",
        answer: "enrol probes at ports for data alone: Ethernet by ifType, with a connector, neither named like a LAG, a management port or another interface, nor a member of a LAG.",
        learned: Learned::Recordings,
    },
];

/// What names of LAGs begin with, without case, spaces and hyphens, before a number.
pub const AGGREGATES: &[&str] = &[
    "portchannel",
    "po",
    "lag",
    "trk",
    "trunk",
    "ethtrunk",
    "bridgeaggregation",
    "bagg",
    "routeaggregation",
    "ae",
    "bond",
    "aggregateport",
    "ag",
    "lacp",
    "smartgroup",
    "linkaggregation",
    "linkgroup",
    "sa",
];

/// What names of management ports begin with, without case, spaces and hyphens.
pub const MANAGEMENT: &[&str] = &["mgmt", "management", "mgt", "meth", "oob", "fxp", "me", "ma", "mg"];

/// What names of interfaces begin with that no cable fits: VLANs, tunnels, loopbacks, the switch itself.
pub const VIRTUAL: &[&str] = &[
    "vlan", "vl", "loopback", "lo", "tunnel", "null", "cpu", "irb", "vme", "wlan", "bridge", "br", "stack", "vx",
    "virtual",
];
