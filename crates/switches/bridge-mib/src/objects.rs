//! The objects that managers ask for and agents answer, one module a MIB, in the order in which they are walked.
//!
//! Constants are named as the objects are, without the MIB's prefix: `dot1qVlanStaticRowStatus` is
//! [`q_bridge::VLAN_STATIC_ROW_STATUS`].

use snmp::{Access, Column, Oid, Scalar, Syntax, Value};

const fn column(name: &'static str, oid: &'static [u32], syntax: Syntax, access: Access) -> Column {
    Column { name, oid, syntax, access }
}

/// SNMPv2-MIB: who the device is (RFC 3418).
pub mod system {
    use super::Scalar;
    use snmp::{Access, Syntax};

    /// `sysDescr`: what it is.
    pub const DESCR: Scalar = Scalar::new("sysDescr", &[1, 3, 6, 1, 2, 1, 1, 1], Syntax::Octets, Access::ReadOnly);
    /// `sysObjectID`: its make.
    pub const OBJECT_ID: Scalar = Scalar::new("sysObjectID", &[1, 3, 6, 1, 2, 1, 1, 2], Syntax::Oid, Access::ReadOnly);
    /// `sysUpTime`: since its management started.
    pub const UP_TIME: Scalar =
        Scalar::new("sysUpTime", &[1, 3, 6, 1, 2, 1, 1, 3], Syntax::TimeTicks, Access::ReadOnly);
    /// `sysContact`: who looks after it.
    pub const CONTACT: Scalar = Scalar::new("sysContact", &[1, 3, 6, 1, 2, 1, 1, 4], Syntax::Octets, Access::ReadWrite);
    /// `sysName`: its name.
    pub const NAME: Scalar = Scalar::new("sysName", &[1, 3, 6, 1, 2, 1, 1, 5], Syntax::Octets, Access::ReadWrite);
    /// `sysLocation`: where it is.
    pub const LOCATION: Scalar =
        Scalar::new("sysLocation", &[1, 3, 6, 1, 2, 1, 1, 6], Syntax::Octets, Access::ReadWrite);
    /// `sysServices`: layers that it serves, as bits.
    pub const SERVICES: Scalar =
        Scalar::new("sysServices", &[1, 3, 6, 1, 2, 1, 1, 7], Syntax::Integer, Access::ReadOnly);

    /// `snmpSetSerialNo`: a lock: a SET that bears its value succeeds once, and changes it.
    pub const SET_SERIAL_NO: Scalar =
        Scalar::new("snmpSetSerialNo", &[1, 3, 6, 1, 6, 3, 1, 1, 6, 1], Syntax::Integer, Access::ReadWrite);

    /// Every object of which there is one.
    pub const SCALARS: &[Scalar] = &[DESCR, OBJECT_ID, UP_TIME, CONTACT, NAME, LOCATION, SERVICES, SET_SERIAL_NO];
}

/// IF-MIB: ports as interfaces, by ifIndex (RFC 2863).
pub mod if_mib {
    use super::{Column, Scalar, column};
    use snmp::{Access, Syntax};

    /// `ifNumber`: how many there are.
    pub const NUMBER: Scalar = Scalar::new("ifNumber", &[1, 3, 6, 1, 2, 1, 2, 1], Syntax::Integer, Access::ReadOnly);
    /// `ifIndex`: the row's own index.
    pub const INDEX: Column = column("ifIndex", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 1], Syntax::Integer, Access::ReadOnly);
    /// `ifDescr`: the port in words.
    pub const DESCR: Column = column("ifDescr", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2], Syntax::Octets, Access::ReadOnly);
    /// `ifType`: 6 is Ethernet.
    pub const TYPE: Column = column("ifType", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 3], Syntax::Integer, Access::ReadOnly);
    /// `ifMtu`: largest packet, in bytes.
    pub const MTU: Column = column("ifMtu", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 4], Syntax::Integer, Access::ReadOnly);
    /// `ifSpeed`: bit/s, or all ones.
    pub const SPEED: Column = column("ifSpeed", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 5], Syntax::Gauge32, Access::ReadOnly);
    /// `ifPhysAddress`: its Ethernet address.
    pub const PHYS_ADDRESS: Column =
        column("ifPhysAddress", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 6], Syntax::Octets, Access::ReadOnly);
    /// `ifAdminStatus`: what it should be.
    pub const ADMIN_STATUS: Column =
        column("ifAdminStatus", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 7], Syntax::Integer, Access::ReadWrite);
    /// `ifOperStatus`: what it is.
    pub const OPER_STATUS: Column =
        column("ifOperStatus", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 8], Syntax::Integer, Access::ReadOnly);
    /// `ifLastChange`: sysUpTime when that changed.
    pub const LAST_CHANGE: Column =
        column("ifLastChange", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 9], Syntax::TimeTicks, Access::ReadOnly);
    /// `ifInOctets`: octets received.
    pub const IN_OCTETS: Column =
        column("ifInOctets", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 10], Syntax::Counter32, Access::ReadOnly);
    /// `ifInUcastPkts`: unicast frames received.
    pub const IN_UCAST_PKTS: Column =
        column("ifInUcastPkts", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 11], Syntax::Counter32, Access::ReadOnly);
    /// `ifInDiscards`: good frames received and dropped.
    pub const IN_DISCARDS: Column =
        column("ifInDiscards", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 13], Syntax::Counter32, Access::ReadOnly);
    /// `ifInErrors`: bad frames received.
    pub const IN_ERRORS: Column =
        column("ifInErrors", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 14], Syntax::Counter32, Access::ReadOnly);
    /// `ifOutOctets`: octets sent.
    pub const OUT_OCTETS: Column =
        column("ifOutOctets", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 16], Syntax::Counter32, Access::ReadOnly);
    /// `ifOutUcastPkts`: unicast frames sent.
    pub const OUT_UCAST_PKTS: Column =
        column("ifOutUcastPkts", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 17], Syntax::Counter32, Access::ReadOnly);
    /// `ifOutDiscards`: frames that found the queue full.
    pub const OUT_DISCARDS: Column =
        column("ifOutDiscards", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 19], Syntax::Counter32, Access::ReadOnly);
    /// `ifOutErrors`: frames that could not be sent.
    pub const OUT_ERRORS: Column =
        column("ifOutErrors", &[1, 3, 6, 1, 2, 1, 2, 2, 1, 20], Syntax::Counter32, Access::ReadOnly);
    /// `ifName`: the port's name.
    pub const NAME: Column = column("ifName", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1], Syntax::Octets, Access::ReadOnly);
    /// `ifHCInOctets`: octets received.
    pub const HC_IN_OCTETS: Column =
        column("ifHCInOctets", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6], Syntax::Counter64, Access::ReadOnly);
    /// `ifHCInUcastPkts`: unicast frames received.
    pub const HC_IN_UCAST_PKTS: Column =
        column("ifHCInUcastPkts", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7], Syntax::Counter64, Access::ReadOnly);
    /// `ifHCInMulticastPkts`: multicast frames received.
    pub const HC_IN_MULTICAST_PKTS: Column =
        column("ifHCInMulticastPkts", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 8], Syntax::Counter64, Access::ReadOnly);
    /// `ifHCInBroadcastPkts`: broadcast frames received.
    pub const HC_IN_BROADCAST_PKTS: Column =
        column("ifHCInBroadcastPkts", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 9], Syntax::Counter64, Access::ReadOnly);
    /// `ifHCOutOctets`: octets sent.
    pub const HC_OUT_OCTETS: Column =
        column("ifHCOutOctets", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10], Syntax::Counter64, Access::ReadOnly);
    /// `ifHCOutUcastPkts`: unicast frames sent.
    pub const HC_OUT_UCAST_PKTS: Column =
        column("ifHCOutUcastPkts", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11], Syntax::Counter64, Access::ReadOnly);
    /// `ifHCOutMulticastPkts`: multicast frames sent.
    pub const HC_OUT_MULTICAST_PKTS: Column =
        column("ifHCOutMulticastPkts", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 12], Syntax::Counter64, Access::ReadOnly);
    /// `ifHCOutBroadcastPkts`: broadcast frames sent.
    pub const HC_OUT_BROADCAST_PKTS: Column =
        column("ifHCOutBroadcastPkts", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 13], Syntax::Counter64, Access::ReadOnly);
    /// `ifHighSpeed`: mbit/s.
    pub const HIGH_SPEED: Column =
        column("ifHighSpeed", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 15], Syntax::Gauge32, Access::ReadOnly);
    /// `ifPromiscuousMode`: whether it hears everything.
    pub const PROMISCUOUS_MODE: Column =
        column("ifPromiscuousMode", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 16], Syntax::Integer, Access::ReadOnly);
    /// `ifConnectorPresent`: whether a cable fits.
    pub const CONNECTOR_PRESENT: Column =
        column("ifConnectorPresent", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 17], Syntax::Integer, Access::ReadOnly);
    /// `ifAlias`: what people call it.
    pub const ALIAS: Column =
        column("ifAlias", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 18], Syntax::Octets, Access::ReadWrite);
    /// `ifCounterDiscontinuityTime`: sysUpTime when counters last started afresh.
    pub const COUNTER_DISCONTINUITY_TIME: Column =
        column("ifCounterDiscontinuityTime", &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 19], Syntax::TimeTicks, Access::ReadOnly);

    /// Every object of which there is one.
    pub const SCALARS: &[Scalar] = &[NUMBER];

    /// Every object of which a row has one.
    pub const COLUMNS: &[Column] = &[
        INDEX,
        DESCR,
        TYPE,
        MTU,
        SPEED,
        PHYS_ADDRESS,
        ADMIN_STATUS,
        OPER_STATUS,
        LAST_CHANGE,
        IN_OCTETS,
        IN_UCAST_PKTS,
        IN_DISCARDS,
        IN_ERRORS,
        OUT_OCTETS,
        OUT_UCAST_PKTS,
        OUT_DISCARDS,
        OUT_ERRORS,
        NAME,
        HC_IN_OCTETS,
        HC_IN_UCAST_PKTS,
        HC_IN_MULTICAST_PKTS,
        HC_IN_BROADCAST_PKTS,
        HC_OUT_OCTETS,
        HC_OUT_UCAST_PKTS,
        HC_OUT_MULTICAST_PKTS,
        HC_OUT_BROADCAST_PKTS,
        HIGH_SPEED,
        PROMISCUOUS_MODE,
        CONNECTOR_PRESENT,
        ALIAS,
        COUNTER_DISCONTINUITY_TIME,
    ];
}

/// BRIDGE-MIB: the bridge, spanning tree, learned addresses (RFC 4188).
pub mod bridge {
    use super::{Column, Scalar, column};
    use snmp::{Access, Syntax};

    /// `dot1dBaseBridgeAddress`: the bridge's Ethernet address.
    pub const BRIDGE_ADDRESS: Scalar =
        Scalar::new("dot1dBaseBridgeAddress", &[1, 3, 6, 1, 2, 1, 17, 1, 1], Syntax::Octets, Access::ReadOnly);
    /// `dot1dBaseNumPorts`: how many ports it has.
    pub const NUM_PORTS: Scalar =
        Scalar::new("dot1dBaseNumPorts", &[1, 3, 6, 1, 2, 1, 17, 1, 2], Syntax::Integer, Access::ReadOnly);
    /// `dot1dBaseType`: 2 is transparent.
    pub const TYPE: Scalar =
        Scalar::new("dot1dBaseType", &[1, 3, 6, 1, 2, 1, 17, 1, 3], Syntax::Integer, Access::ReadOnly);
    /// `dot1dBasePort`: the row's own index.
    pub const PORT: Column =
        column("dot1dBasePort", &[1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 1], Syntax::Integer, Access::ReadOnly);
    /// `dot1dBasePortIfIndex`: the port's ifIndex.
    pub const PORT_IF_INDEX: Column =
        column("dot1dBasePortIfIndex", &[1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 2], Syntax::Integer, Access::ReadOnly);
    /// `dot1dBasePortCircuit`: distinguishes ports of one interface.
    pub const PORT_CIRCUIT: Column =
        column("dot1dBasePortCircuit", &[1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 3], Syntax::Oid, Access::ReadOnly);
    /// `dot1dBasePortDelayExceededDiscards`: frames that waited too long.
    pub const PORT_DELAY_EXCEEDED_DISCARDS: Column = column(
        "dot1dBasePortDelayExceededDiscards",
        &[1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 4],
        Syntax::Counter32,
        Access::ReadOnly,
    );
    /// `dot1dBasePortMtuExceededDiscards`: frames that were too long.
    pub const PORT_MTU_EXCEEDED_DISCARDS: Column = column(
        "dot1dBasePortMtuExceededDiscards",
        &[1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 5],
        Syntax::Counter32,
        Access::ReadOnly,
    );
    /// `dot1dStpProtocolSpecification`: 3 is IEEE 802.1D.
    pub const STP_PROTOCOL_SPECIFICATION: Scalar =
        Scalar::new("dot1dStpProtocolSpecification", &[1, 3, 6, 1, 2, 1, 17, 2, 1], Syntax::Integer, Access::ReadOnly);
    /// `dot1dStpPriority`: upper part of the bridge's identifier.
    pub const STP_PRIORITY: Scalar =
        Scalar::new("dot1dStpPriority", &[1, 3, 6, 1, 2, 1, 17, 2, 2], Syntax::Integer, Access::ReadWrite);
    /// `dot1dStpTimeSinceTopologyChange`: since the tree last changed.
    pub const STP_TIME_SINCE_TOPOLOGY_CHANGE: Scalar = Scalar::new(
        "dot1dStpTimeSinceTopologyChange",
        &[1, 3, 6, 1, 2, 1, 17, 2, 3],
        Syntax::TimeTicks,
        Access::ReadOnly,
    );
    /// `dot1dStpTopChanges`: how often it changed.
    pub const STP_TOP_CHANGES: Scalar =
        Scalar::new("dot1dStpTopChanges", &[1, 3, 6, 1, 2, 1, 17, 2, 4], Syntax::Counter32, Access::ReadOnly);
    /// `dot1dStpDesignatedRoot`: the root's identifier.
    pub const STP_DESIGNATED_ROOT: Scalar =
        Scalar::new("dot1dStpDesignatedRoot", &[1, 3, 6, 1, 2, 1, 17, 2, 5], Syntax::Octets, Access::ReadOnly);
    /// `dot1dStpRootCost`: cost of the way to the root.
    pub const STP_ROOT_COST: Scalar =
        Scalar::new("dot1dStpRootCost", &[1, 3, 6, 1, 2, 1, 17, 2, 6], Syntax::Integer, Access::ReadOnly);
    /// `dot1dStpRootPort`: port toward the root, 0 at the root.
    pub const STP_ROOT_PORT: Scalar =
        Scalar::new("dot1dStpRootPort", &[1, 3, 6, 1, 2, 1, 17, 2, 7], Syntax::Integer, Access::ReadOnly);
    /// `dot1dStpMaxAge`: in force, in hundredths of a second.
    pub const STP_MAX_AGE: Scalar =
        Scalar::new("dot1dStpMaxAge", &[1, 3, 6, 1, 2, 1, 17, 2, 8], Syntax::Integer, Access::ReadOnly);
    /// `dot1dStpHelloTime`: in force, in hundredths of a second.
    pub const STP_HELLO_TIME: Scalar =
        Scalar::new("dot1dStpHelloTime", &[1, 3, 6, 1, 2, 1, 17, 2, 9], Syntax::Integer, Access::ReadOnly);
    /// `dot1dStpHoldTime`: least time between two messages, in hundredths of a second.
    pub const STP_HOLD_TIME: Scalar =
        Scalar::new("dot1dStpHoldTime", &[1, 3, 6, 1, 2, 1, 17, 2, 10], Syntax::Integer, Access::ReadOnly);
    /// `dot1dStpForwardDelay`: in force, in hundredths of a second.
    pub const STP_FORWARD_DELAY: Scalar =
        Scalar::new("dot1dStpForwardDelay", &[1, 3, 6, 1, 2, 1, 17, 2, 11], Syntax::Integer, Access::ReadOnly);
    /// `dot1dStpPort`: the row's own index.
    pub const STP_PORT: Column =
        column("dot1dStpPort", &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 1], Syntax::Integer, Access::ReadOnly);
    /// `dot1dStpPortPriority`: upper part of the port's identifier.
    pub const STP_PORT_PRIORITY: Column =
        column("dot1dStpPortPriority", &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 2], Syntax::Integer, Access::ReadWrite);
    /// `dot1dStpPortState`: what the port does.
    pub const STP_PORT_STATE: Column =
        column("dot1dStpPortState", &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 3], Syntax::Integer, Access::ReadOnly);
    /// `dot1dStpPortEnable`: whether spanning tree governs the port.
    pub const STP_PORT_ENABLE: Column =
        column("dot1dStpPortEnable", &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 4], Syntax::Integer, Access::ReadWrite);
    /// `dot1dStpPortPathCost`: what the port adds to a way.
    pub const STP_PORT_PATH_COST: Column =
        column("dot1dStpPortPathCost", &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 5], Syntax::Integer, Access::ReadWrite);
    /// `dot1dStpPortDesignatedRoot`: the root as the segment knows it.
    pub const STP_PORT_DESIGNATED_ROOT: Column =
        column("dot1dStpPortDesignatedRoot", &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 6], Syntax::Octets, Access::ReadOnly);
    /// `dot1dStpPortDesignatedCost`: the segment's cost to the root.
    pub const STP_PORT_DESIGNATED_COST: Column =
        column("dot1dStpPortDesignatedCost", &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 7], Syntax::Integer, Access::ReadOnly);
    /// `dot1dStpPortDesignatedBridge`: the segment's designated bridge.
    pub const STP_PORT_DESIGNATED_BRIDGE: Column =
        column("dot1dStpPortDesignatedBridge", &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 8], Syntax::Octets, Access::ReadOnly);
    /// `dot1dStpPortDesignatedPort`: that bridge's port.
    pub const STP_PORT_DESIGNATED_PORT: Column =
        column("dot1dStpPortDesignatedPort", &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 9], Syntax::Octets, Access::ReadOnly);
    /// `dot1dStpPortForwardTransitions`: how often the port began to forward.
    pub const STP_PORT_FORWARD_TRANSITIONS: Column = column(
        "dot1dStpPortForwardTransitions",
        &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 10],
        Syntax::Counter32,
        Access::ReadOnly,
    );
    /// `dot1dTpLearnedEntryDiscards`: addresses not learned for want of room.
    pub const TP_LEARNED_ENTRY_DISCARDS: Scalar =
        Scalar::new("dot1dTpLearnedEntryDiscards", &[1, 3, 6, 1, 2, 1, 17, 4, 1], Syntax::Counter32, Access::ReadOnly);
    /// `dot1dTpAgingTime`: seconds until a learned address is forgotten.
    pub const TP_AGING_TIME: Scalar =
        Scalar::new("dot1dTpAgingTime", &[1, 3, 6, 1, 2, 1, 17, 4, 2], Syntax::Integer, Access::ReadWrite);
    /// `dot1dTpFdbAddress`: the row's own index.
    pub const TP_FDB_ADDRESS: Column =
        column("dot1dTpFdbAddress", &[1, 3, 6, 1, 2, 1, 17, 4, 3, 1, 1], Syntax::Octets, Access::ReadOnly);
    /// `dot1dTpFdbPort`: where the address was last seen, in any VLAN.
    pub const TP_FDB_PORT: Column =
        column("dot1dTpFdbPort", &[1, 3, 6, 1, 2, 1, 17, 4, 3, 1, 2], Syntax::Integer, Access::ReadOnly);
    /// `dot1dTpFdbStatus`: where the entry is from.
    pub const TP_FDB_STATUS: Column =
        column("dot1dTpFdbStatus", &[1, 3, 6, 1, 2, 1, 17, 4, 3, 1, 3], Syntax::Integer, Access::ReadOnly);
    /// `dot1dTpPort`: the row's own index.
    pub const TP_PORT: Column =
        column("dot1dTpPort", &[1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 1], Syntax::Integer, Access::ReadOnly);
    /// `dot1dTpPortMaxInfo`: longest frame less its header, in bytes.
    pub const TP_PORT_MAX_INFO: Column =
        column("dot1dTpPortMaxInfo", &[1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 2], Syntax::Integer, Access::ReadOnly);
    /// `dot1dTpPortInFrames`: frames received.
    pub const TP_PORT_IN_FRAMES: Column =
        column("dot1dTpPortInFrames", &[1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 3], Syntax::Counter32, Access::ReadOnly);
    /// `dot1dTpPortOutFrames`: frames sent.
    pub const TP_PORT_OUT_FRAMES: Column =
        column("dot1dTpPortOutFrames", &[1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 4], Syntax::Counter32, Access::ReadOnly);
    /// `dot1dTpPortInDiscards`: good frames received and filtered.
    pub const TP_PORT_IN_DISCARDS: Column =
        column("dot1dTpPortInDiscards", &[1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 5], Syntax::Counter32, Access::ReadOnly);

    /// Every object of which there is one.
    pub const SCALARS: &[Scalar] = &[
        BRIDGE_ADDRESS,
        NUM_PORTS,
        TYPE,
        STP_PROTOCOL_SPECIFICATION,
        STP_PRIORITY,
        STP_TIME_SINCE_TOPOLOGY_CHANGE,
        STP_TOP_CHANGES,
        STP_DESIGNATED_ROOT,
        STP_ROOT_COST,
        STP_ROOT_PORT,
        STP_MAX_AGE,
        STP_HELLO_TIME,
        STP_HOLD_TIME,
        STP_FORWARD_DELAY,
        TP_LEARNED_ENTRY_DISCARDS,
        TP_AGING_TIME,
    ];

    /// Every object of which a row has one.
    pub const COLUMNS: &[Column] = &[
        PORT,
        PORT_IF_INDEX,
        PORT_CIRCUIT,
        PORT_DELAY_EXCEEDED_DISCARDS,
        PORT_MTU_EXCEEDED_DISCARDS,
        STP_PORT,
        STP_PORT_PRIORITY,
        STP_PORT_STATE,
        STP_PORT_ENABLE,
        STP_PORT_PATH_COST,
        STP_PORT_DESIGNATED_ROOT,
        STP_PORT_DESIGNATED_COST,
        STP_PORT_DESIGNATED_BRIDGE,
        STP_PORT_DESIGNATED_PORT,
        STP_PORT_FORWARD_TRANSITIONS,
        TP_FDB_ADDRESS,
        TP_FDB_PORT,
        TP_FDB_STATUS,
        TP_PORT,
        TP_PORT_MAX_INFO,
        TP_PORT_IN_FRAMES,
        TP_PORT_OUT_FRAMES,
        TP_PORT_IN_DISCARDS,
    ];
}

/// P-BRIDGE-MIB: what the bridge can do (RFC 4363).
pub mod p_bridge {
    use super::{Column, Scalar, column};
    use snmp::{Access, Syntax};

    /// `dot1dDeviceCapabilities`: bits: 1 priorities, 2 static entries, 3 IVL, 4 SVL, 5 hybrid, 6 configurable PVID.
    pub const DEVICE_CAPABILITIES: Scalar =
        Scalar::new("dot1dDeviceCapabilities", &[1, 3, 6, 1, 2, 1, 17, 6, 1, 1, 1], Syntax::Octets, Access::ReadOnly);
    /// `dot1dTrafficClassesEnabled`: whether priorities have queues of their own.
    pub const TRAFFIC_CLASSES_ENABLED: Scalar = Scalar::new(
        "dot1dTrafficClassesEnabled",
        &[1, 3, 6, 1, 2, 1, 17, 6, 1, 1, 2],
        Syntax::Integer,
        Access::ReadOnly,
    );
    /// `dot1dGmrpStatus`: whether group registration runs.
    pub const GMRP_STATUS: Scalar =
        Scalar::new("dot1dGmrpStatus", &[1, 3, 6, 1, 2, 1, 17, 6, 1, 1, 3], Syntax::Integer, Access::ReadOnly);
    /// `dot1dPortCapabilities`: bits: 0 tagging, 1 acceptable frame types, 2 ingress filtering.
    pub const PORT_CAPABILITIES: Column =
        column("dot1dPortCapabilities", &[1, 3, 6, 1, 2, 1, 17, 6, 1, 1, 4, 1, 1], Syntax::Octets, Access::ReadOnly);

    /// Every object of which there is one.
    pub const SCALARS: &[Scalar] = &[DEVICE_CAPABILITIES, TRAFFIC_CLASSES_ENABLED, GMRP_STATUS];

    /// Every object of which a row has one.
    pub const COLUMNS: &[Column] = &[PORT_CAPABILITIES];
}

/// Q-BRIDGE-MIB: VLANs (RFC 4363).
pub mod q_bridge {
    use super::{Column, Scalar, column};
    use snmp::{Access, Syntax};

    /// `dot1qVlanVersionNumber`: 1.
    pub const VLAN_VERSION_NUMBER: Scalar =
        Scalar::new("dot1qVlanVersionNumber", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 1, 1], Syntax::Integer, Access::ReadOnly);
    /// `dot1qMaxVlanId`: the greatest VLAN id.
    pub const MAX_VLAN_ID: Scalar =
        Scalar::new("dot1qMaxVlanId", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 1, 2], Syntax::Integer, Access::ReadOnly);
    /// `dot1qMaxSupportedVlans`: how many VLANs fit.
    pub const MAX_SUPPORTED_VLANS: Scalar =
        Scalar::new("dot1qMaxSupportedVlans", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 1, 3], Syntax::Gauge32, Access::ReadOnly);
    /// `dot1qNumVlans`: how many there are.
    pub const NUM_VLANS: Scalar =
        Scalar::new("dot1qNumVlans", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 1, 4], Syntax::Gauge32, Access::ReadOnly);
    /// `dot1qGvrpStatus`: whether VLAN registration runs.
    pub const GVRP_STATUS: Scalar =
        Scalar::new("dot1qGvrpStatus", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 1, 5], Syntax::Integer, Access::ReadOnly);
    /// `dot1qFdbDynamicCount`: learned addresses of a filtering database.
    pub const FDB_DYNAMIC_COUNT: Column =
        column("dot1qFdbDynamicCount", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 1, 1, 2], Syntax::Counter32, Access::ReadOnly);
    /// `dot1qTpFdbPort`: where an address was last seen; 0 if never.
    pub const TP_FDB_PORT: Column =
        column("dot1qTpFdbPort", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 2, 1, 2], Syntax::Integer, Access::ReadOnly);
    /// `dot1qTpFdbStatus`: where the entry is from.
    pub const TP_FDB_STATUS: Column =
        column("dot1qTpFdbStatus", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 2, 1, 3], Syntax::Integer, Access::ReadOnly);
    /// `dot1qStaticUnicastAllowedToGoTo`: ports that frames for the address may leave by.
    pub const STATIC_UNICAST_ALLOWED_TO_GO_TO: Column = column(
        "dot1qStaticUnicastAllowedToGoTo",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 3, 1, 1, 3],
        Syntax::Octets,
        Access::ReadCreate,
    );
    /// `dot1qStaticUnicastStatus`: how long the entry lasts; invalid removes it.
    pub const STATIC_UNICAST_STATUS: Column = column(
        "dot1qStaticUnicastStatus",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 3, 1, 1, 4],
        Syntax::Integer,
        Access::ReadCreate,
    );
    /// `dot1qVlanNumDeletes`: how many VLANs have been removed.
    pub const VLAN_NUM_DELETES: Scalar =
        Scalar::new("dot1qVlanNumDeletes", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 1], Syntax::Counter32, Access::ReadOnly);
    /// `dot1qVlanFdbId`: the VLAN's filtering database.
    pub const VLAN_FDB_ID: Column =
        column("dot1qVlanFdbId", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 3], Syntax::Gauge32, Access::ReadOnly);
    /// `dot1qVlanCurrentEgressPorts`: members.
    pub const VLAN_CURRENT_EGRESS_PORTS: Column = column(
        "dot1qVlanCurrentEgressPorts",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 4],
        Syntax::Octets,
        Access::ReadOnly,
    );
    /// `dot1qVlanCurrentUntaggedPorts`: members that send without a tag.
    pub const VLAN_CURRENT_UNTAGGED_PORTS: Column = column(
        "dot1qVlanCurrentUntaggedPorts",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 5],
        Syntax::Octets,
        Access::ReadOnly,
    );
    /// `dot1qVlanStatus`: why the VLAN is there.
    pub const VLAN_STATUS: Column =
        column("dot1qVlanStatus", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 6], Syntax::Integer, Access::ReadOnly);
    /// `dot1qVlanCreationTime`: sysUpTime when it came.
    pub const VLAN_CREATION_TIME: Column =
        column("dot1qVlanCreationTime", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 7], Syntax::TimeTicks, Access::ReadOnly);
    /// `dot1qVlanStaticName`: its name.
    pub const VLAN_STATIC_NAME: Column =
        column("dot1qVlanStaticName", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 1], Syntax::Octets, Access::ReadCreate);
    /// `dot1qVlanStaticEgressPorts`: members.
    pub const VLAN_STATIC_EGRESS_PORTS: Column = column(
        "dot1qVlanStaticEgressPorts",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 2],
        Syntax::Octets,
        Access::ReadCreate,
    );
    /// `dot1qVlanForbiddenEgressPorts`: ports that may not become members.
    pub const VLAN_FORBIDDEN_EGRESS_PORTS: Column = column(
        "dot1qVlanForbiddenEgressPorts",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 3],
        Syntax::Octets,
        Access::ReadCreate,
    );
    /// `dot1qVlanStaticUntaggedPorts`: members that send without a tag.
    pub const VLAN_STATIC_UNTAGGED_PORTS: Column = column(
        "dot1qVlanStaticUntaggedPorts",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 4],
        Syntax::Octets,
        Access::ReadCreate,
    );
    /// `dot1qVlanStaticRowStatus`: how the VLAN comes and goes.
    pub const VLAN_STATIC_ROW_STATUS: Column = column(
        "dot1qVlanStaticRowStatus",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 5],
        Syntax::Integer,
        Access::ReadCreate,
    );
    /// `dot1qNextFreeLocalVlanIndex`: 0: only VLANs of 802.1Q can be made.
    pub const NEXT_FREE_LOCAL_VLAN_INDEX: Scalar = Scalar::new(
        "dot1qNextFreeLocalVlanIndex",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 4],
        Syntax::Integer,
        Access::ReadOnly,
    );
    /// `dot1qPvid`: the VLAN of untagged frames that enter.
    pub const PVID: Column =
        column("dot1qPvid", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 1], Syntax::Gauge32, Access::ReadWrite);
    /// `dot1qPortAcceptableFrameTypes`: which frames may enter.
    pub const PORT_ACCEPTABLE_FRAME_TYPES: Column = column(
        "dot1qPortAcceptableFrameTypes",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 2],
        Syntax::Integer,
        Access::ReadWrite,
    );
    /// `dot1qPortIngressFiltering`: whether frames of foreign VLANs are dropped.
    pub const PORT_INGRESS_FILTERING: Column = column(
        "dot1qPortIngressFiltering",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 3],
        Syntax::Integer,
        Access::ReadWrite,
    );
    /// `dot1qPortGvrpStatus`: whether VLAN registration runs on the port.
    pub const PORT_GVRP_STATUS: Column =
        column("dot1qPortGvrpStatus", &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 4], Syntax::Integer, Access::ReadOnly);
    /// `dot1qTpVlanPortInFrames`: frames of a VLAN received by a port.
    pub const TP_VLAN_PORT_IN_FRAMES: Column = column(
        "dot1qTpVlanPortInFrames",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 6, 1, 1],
        Syntax::Counter32,
        Access::ReadOnly,
    );
    /// `dot1qTpVlanPortOutFrames`: frames of a VLAN sent by a port.
    pub const TP_VLAN_PORT_OUT_FRAMES: Column = column(
        "dot1qTpVlanPortOutFrames",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 6, 1, 2],
        Syntax::Counter32,
        Access::ReadOnly,
    );
    /// `dot1qConstraintTypeDefault`: 1: each VLAN has a filtering database; 2: they share one.
    pub const CONSTRAINT_TYPE_DEFAULT: Scalar = Scalar::new(
        "dot1qConstraintTypeDefault",
        &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 10],
        Syntax::Integer,
        Access::ReadOnly,
    );

    /// Every object of which there is one.
    pub const SCALARS: &[Scalar] = &[
        VLAN_VERSION_NUMBER,
        MAX_VLAN_ID,
        MAX_SUPPORTED_VLANS,
        NUM_VLANS,
        GVRP_STATUS,
        VLAN_NUM_DELETES,
        NEXT_FREE_LOCAL_VLAN_INDEX,
        CONSTRAINT_TYPE_DEFAULT,
    ];

    /// Every object of which a row has one.
    pub const COLUMNS: &[Column] = &[
        FDB_DYNAMIC_COUNT,
        TP_FDB_PORT,
        TP_FDB_STATUS,
        STATIC_UNICAST_ALLOWED_TO_GO_TO,
        STATIC_UNICAST_STATUS,
        VLAN_FDB_ID,
        VLAN_CURRENT_EGRESS_PORTS,
        VLAN_CURRENT_UNTAGGED_PORTS,
        VLAN_STATUS,
        VLAN_CREATION_TIME,
        VLAN_STATIC_NAME,
        VLAN_STATIC_EGRESS_PORTS,
        VLAN_FORBIDDEN_EGRESS_PORTS,
        VLAN_STATIC_UNTAGGED_PORTS,
        VLAN_STATIC_ROW_STATUS,
        PVID,
        PORT_ACCEPTABLE_FRAME_TYPES,
        PORT_INGRESS_FILTERING,
        PORT_GVRP_STATUS,
        TP_VLAN_PORT_IN_FRAMES,
        TP_VLAN_PORT_OUT_FRAMES,
    ];
}

/// EtherLike-MIB: PAUSE, by ifIndex (RFC 3635).
pub mod ether_like {
    use super::{Column, column};
    use snmp::{Access, Syntax};

    /// `dot3PauseAdminMode`: what it should be.
    pub const PAUSE_ADMIN_MODE: Column =
        column("dot3PauseAdminMode", &[1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 1], Syntax::Integer, Access::ReadWrite);
    /// `dot3PauseOperMode`: what it is.
    pub const PAUSE_OPER_MODE: Column =
        column("dot3PauseOperMode", &[1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 2], Syntax::Integer, Access::ReadOnly);
    /// `dot3InPauseFrames`: PAUSE frames received.
    pub const IN_PAUSE_FRAMES: Column =
        column("dot3InPauseFrames", &[1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 3], Syntax::Counter32, Access::ReadOnly);
    /// `dot3OutPauseFrames`: PAUSE frames sent.
    pub const OUT_PAUSE_FRAMES: Column =
        column("dot3OutPauseFrames", &[1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 4], Syntax::Counter32, Access::ReadOnly);
    /// `dot3HCInPauseFrames`: PAUSE frames received.
    pub const HC_IN_PAUSE_FRAMES: Column =
        column("dot3HCInPauseFrames", &[1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 5], Syntax::Counter64, Access::ReadOnly);
    /// `dot3HCOutPauseFrames`: PAUSE frames sent.
    pub const HC_OUT_PAUSE_FRAMES: Column =
        column("dot3HCOutPauseFrames", &[1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 6], Syntax::Counter64, Access::ReadOnly);

    /// Every object of which a row has one.
    pub const COLUMNS: &[Column] = &[
        PAUSE_ADMIN_MODE,
        PAUSE_OPER_MODE,
        IN_PAUSE_FRAMES,
        OUT_PAUSE_FRAMES,
        HC_IN_PAUSE_FRAMES,
        HC_OUT_PAUSE_FRAMES,
    ];
}

/// LLDP-MIB: this device and its neighbours (IEEE 802.1AB-2005, clause 12).
pub mod lldp {
    use super::{Column, Scalar, column};
    use snmp::{Access, Syntax};

    /// `lldpMessageTxInterval`: seconds between two announcements.
    pub const MESSAGE_TX_INTERVAL: Scalar =
        Scalar::new("lldpMessageTxInterval", &[1, 0, 8802, 1, 1, 2, 1, 1, 1], Syntax::Integer, Access::ReadOnly);
    /// `lldpMessageTxHoldMultiplier`: intervals that an announcement holds for.
    pub const MESSAGE_TX_HOLD_MULTIPLIER: Scalar =
        Scalar::new("lldpMessageTxHoldMultiplier", &[1, 0, 8802, 1, 1, 2, 1, 1, 2], Syntax::Integer, Access::ReadOnly);
    /// `lldpPortConfigAdminStatus`: whether a port announces itself and listens.
    pub const PORT_CONFIG_ADMIN_STATUS: Column =
        column("lldpPortConfigAdminStatus", &[1, 0, 8802, 1, 1, 2, 1, 1, 6, 1, 2], Syntax::Integer, Access::ReadWrite);
    /// `lldpStatsRemTablesLastChangeTime`: sysUpTime when a neighbour came, changed or went.
    pub const STATS_REM_TABLES_LAST_CHANGE_TIME: Scalar = Scalar::new(
        "lldpStatsRemTablesLastChangeTime",
        &[1, 0, 8802, 1, 1, 2, 1, 2, 1],
        Syntax::TimeTicks,
        Access::ReadOnly,
    );
    /// `lldpStatsRemTablesInserts`: how many came.
    pub const STATS_REM_TABLES_INSERTS: Scalar =
        Scalar::new("lldpStatsRemTablesInserts", &[1, 0, 8802, 1, 1, 2, 1, 2, 2], Syntax::Gauge32, Access::ReadOnly);
    /// `lldpStatsRemTablesDeletes`: how many went.
    pub const STATS_REM_TABLES_DELETES: Scalar =
        Scalar::new("lldpStatsRemTablesDeletes", &[1, 0, 8802, 1, 1, 2, 1, 2, 3], Syntax::Gauge32, Access::ReadOnly);
    /// `lldpStatsRemTablesDrops`: how many found no room.
    pub const STATS_REM_TABLES_DROPS: Scalar =
        Scalar::new("lldpStatsRemTablesDrops", &[1, 0, 8802, 1, 1, 2, 1, 2, 4], Syntax::Gauge32, Access::ReadOnly);
    /// `lldpStatsRemTablesAgeouts`: how many fell silent.
    pub const STATS_REM_TABLES_AGEOUTS: Scalar =
        Scalar::new("lldpStatsRemTablesAgeouts", &[1, 0, 8802, 1, 1, 2, 1, 2, 5], Syntax::Gauge32, Access::ReadOnly);
    /// `lldpLocChassisIdSubtype`: how this device is named.
    pub const LOC_CHASSIS_ID_SUBTYPE: Scalar =
        Scalar::new("lldpLocChassisIdSubtype", &[1, 0, 8802, 1, 1, 2, 1, 3, 1], Syntax::Integer, Access::ReadOnly);
    /// `lldpLocChassisId`: its name.
    pub const LOC_CHASSIS_ID: Scalar =
        Scalar::new("lldpLocChassisId", &[1, 0, 8802, 1, 1, 2, 1, 3, 2], Syntax::Octets, Access::ReadOnly);
    /// `lldpLocSysName`: its sysName.
    pub const LOC_SYS_NAME: Scalar =
        Scalar::new("lldpLocSysName", &[1, 0, 8802, 1, 1, 2, 1, 3, 3], Syntax::Octets, Access::ReadOnly);
    /// `lldpLocSysDesc`: its sysDescr.
    pub const LOC_SYS_DESC: Scalar =
        Scalar::new("lldpLocSysDesc", &[1, 0, 8802, 1, 1, 2, 1, 3, 4], Syntax::Octets, Access::ReadOnly);
    /// `lldpLocSysCapSupported`: what it can be, as bits; 2 is bridge.
    pub const LOC_SYS_CAP_SUPPORTED: Scalar =
        Scalar::new("lldpLocSysCapSupported", &[1, 0, 8802, 1, 1, 2, 1, 3, 5], Syntax::Octets, Access::ReadOnly);
    /// `lldpLocSysCapEnabled`: what it is, as bits.
    pub const LOC_SYS_CAP_ENABLED: Scalar =
        Scalar::new("lldpLocSysCapEnabled", &[1, 0, 8802, 1, 1, 2, 1, 3, 6], Syntax::Octets, Access::ReadOnly);
    /// `lldpLocPortIdSubtype`: how a port is named.
    pub const LOC_PORT_ID_SUBTYPE: Column =
        column("lldpLocPortIdSubtype", &[1, 0, 8802, 1, 1, 2, 1, 3, 7, 1, 2], Syntax::Integer, Access::ReadOnly);
    /// `lldpLocPortId`: its name.
    pub const LOC_PORT_ID: Column =
        column("lldpLocPortId", &[1, 0, 8802, 1, 1, 2, 1, 3, 7, 1, 3], Syntax::Octets, Access::ReadOnly);
    /// `lldpLocPortDesc`: the port in words.
    pub const LOC_PORT_DESC: Column =
        column("lldpLocPortDesc", &[1, 0, 8802, 1, 1, 2, 1, 3, 7, 1, 4], Syntax::Octets, Access::ReadOnly);
    /// `lldpRemChassisIdSubtype`: how a neighbour is named.
    pub const REM_CHASSIS_ID_SUBTYPE: Column =
        column("lldpRemChassisIdSubtype", &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 4], Syntax::Integer, Access::ReadOnly);
    /// `lldpRemChassisId`: its name.
    pub const REM_CHASSIS_ID: Column =
        column("lldpRemChassisId", &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 5], Syntax::Octets, Access::ReadOnly);
    /// `lldpRemPortIdSubtype`: how its port is named.
    pub const REM_PORT_ID_SUBTYPE: Column =
        column("lldpRemPortIdSubtype", &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 6], Syntax::Integer, Access::ReadOnly);
    /// `lldpRemPortId`: its port's name.
    pub const REM_PORT_ID: Column =
        column("lldpRemPortId", &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 7], Syntax::Octets, Access::ReadOnly);
    /// `lldpRemPortDesc`: its port in words.
    pub const REM_PORT_DESC: Column =
        column("lldpRemPortDesc", &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 8], Syntax::Octets, Access::ReadOnly);
    /// `lldpRemSysName`: its sysName.
    pub const REM_SYS_NAME: Column =
        column("lldpRemSysName", &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 9], Syntax::Octets, Access::ReadOnly);
    /// `lldpRemSysDesc`: its sysDescr.
    pub const REM_SYS_DESC: Column =
        column("lldpRemSysDesc", &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 10], Syntax::Octets, Access::ReadOnly);
    /// `lldpRemSysCapSupported`: what it can be, as bits.
    pub const REM_SYS_CAP_SUPPORTED: Column =
        column("lldpRemSysCapSupported", &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 11], Syntax::Octets, Access::ReadOnly);
    /// `lldpRemSysCapEnabled`: what it is, as bits.
    pub const REM_SYS_CAP_ENABLED: Column =
        column("lldpRemSysCapEnabled", &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 12], Syntax::Octets, Access::ReadOnly);

    /// Every object of which there is one.
    pub const SCALARS: &[Scalar] = &[
        MESSAGE_TX_INTERVAL,
        MESSAGE_TX_HOLD_MULTIPLIER,
        STATS_REM_TABLES_LAST_CHANGE_TIME,
        STATS_REM_TABLES_INSERTS,
        STATS_REM_TABLES_DELETES,
        STATS_REM_TABLES_DROPS,
        STATS_REM_TABLES_AGEOUTS,
        LOC_CHASSIS_ID_SUBTYPE,
        LOC_CHASSIS_ID,
        LOC_SYS_NAME,
        LOC_SYS_DESC,
        LOC_SYS_CAP_SUPPORTED,
        LOC_SYS_CAP_ENABLED,
    ];

    /// Every object of which a row has one.
    pub const COLUMNS: &[Column] = &[
        PORT_CONFIG_ADMIN_STATUS,
        LOC_PORT_ID_SUBTYPE,
        LOC_PORT_ID,
        LOC_PORT_DESC,
        REM_CHASSIS_ID_SUBTYPE,
        REM_CHASSIS_ID,
        REM_PORT_ID_SUBTYPE,
        REM_PORT_ID,
        REM_PORT_DESC,
        REM_SYS_NAME,
        REM_SYS_DESC,
        REM_SYS_CAP_SUPPORTED,
        REM_SYS_CAP_ENABLED,
    ];
}

/// LLDP-EXT-DOT1-DCBX-MIB: what ports say of priority flow control, by ifIndex (IEEE 802.1Q, D.5).
pub mod dcbx {
    use super::{Column, column};
    use snmp::{Access, Syntax};

    /// `lldpXdot1dcbxLocPFCCap`: classes that may have priority flow control at the same time, 1 to 8.
    pub const LOC_PFC_CAP: Column = column(
        "lldpXdot1dcbxLocPFCCap",
        &[1, 3, 111, 2, 802, 1, 1, 13, 1, 5, 32962, 5, 1, 2, 3, 1, 1, 3],
        Syntax::Gauge32,
        Access::ReadOnly,
    );

    /// Every object of which a row has one.
    pub const COLUMNS: &[Column] = &[LOC_PFC_CAP];
}

/// ENTITY-MIB: what a device is made of (RFC 6933).
pub mod entity {
    use super::{Column, column};
    use snmp::{Access, Syntax};

    /// `entPhysicalDescr`: the part in words.
    pub const DESCR: Column =
        column("entPhysicalDescr", &[1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 2], Syntax::Octets, Access::ReadOnly);
    /// `entPhysicalClass`: what kind of part it is; 3 is a chassis.
    pub const CLASS: Column =
        column("entPhysicalClass", &[1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 5], Syntax::Integer, Access::ReadOnly);
    /// `entPhysicalName`: what the device calls it.
    pub const NAME: Column =
        column("entPhysicalName", &[1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 7], Syntax::Octets, Access::ReadOnly);
    /// `entPhysicalSerialNum`: its maker's serial number.
    pub const SERIAL_NUM: Column =
        column("entPhysicalSerialNum", &[1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 11], Syntax::Octets, Access::ReadOnly);

    /// Every object of which a row has one.
    pub const COLUMNS: &[Column] = &[DESCR, CLASS, NAME, SERIAL_NUM];
}

/// ESPALIER-MIB: what the standards leave to vendors, below net-snmp's place for experiments.
pub mod own {
    use super::Scalar;
    use snmp::{Access, Syntax};

    /// `espalierProduct`: identifies the agent: sysObjectID is this object.
    pub const PRODUCT: Scalar = Scalar::new(
        "espalierProduct",
        &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 1217, 1],
        Syntax::Integer,
        Access::ReadOnly,
    );
    /// `espalierAction`: written: 1 saves the configuration, 2 restarts from the saved one, 3 restarts from factory settings. Reads 0.
    pub const ACTION: Scalar = Scalar::new(
        "espalierAction",
        &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 1217, 2],
        Syntax::Integer,
        Access::ReadWrite,
    );
    /// `espalierSaved`: 1 if the running configuration is the saved one, else 2.
    pub const SAVED: Scalar =
        Scalar::new("espalierSaved", &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 1217, 3], Syntax::Integer, Access::ReadOnly);

    /// `espalierGuard`: written: unless 0 follows within so many seconds, the switch goes back to what it holds now. Reads the
    /// seconds that are left, 0 if it does not wait.
    pub const GUARD: Scalar = Scalar::new(
        "espalierGuard",
        &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 1217, 4],
        Syntax::Integer,
        Access::ReadWrite,
    );

    /// Every object of which there is one.
    pub const SCALARS: &[Scalar] = &[PRODUCT, ACTION, SAVED, GUARD];
}

/// Every object of which there is one, in no particular order.
pub fn scalars() -> impl Iterator<Item = &'static Scalar> {
    [
        system::SCALARS,
        if_mib::SCALARS,
        bridge::SCALARS,
        p_bridge::SCALARS,
        q_bridge::SCALARS,
        lldp::SCALARS,
        snmp::engine::SCALARS,
        own::SCALARS,
    ]
    .into_iter()
    .flatten()
}

/// Every object of which a table's rows have one, in no particular order.
pub fn columns() -> impl Iterator<Item = &'static Column> {
    [
        if_mib::COLUMNS,
        bridge::COLUMNS,
        p_bridge::COLUMNS,
        q_bridge::COLUMNS,
        ether_like::COLUMNS,
        lldp::COLUMNS,
        dcbx::COLUMNS,
        entity::COLUMNS,
    ]
    .into_iter()
    .flatten()
}

/// A binding in words: the object's name if it is known, the index, and the value.
pub fn binding_text((oid, value): &(Oid, Value)) -> String {
    let known = (scalars().map(|scalar| (scalar.name, scalar.oid)))
        .chain(columns().map(|column| (column.name, column.oid)))
        .find_map(|(name, root)| Some((name, oid.strip_prefix(root)?)));
    let object = match known {
        Some((name, index)) => index.iter().fold(name.to_owned(), |text, part| format!("{text}.{part}")),
        None => oid.to_string(),
    };
    let value = match value {
        Value::Integer(number) => number.to_string(),
        Value::Gauge32(number) => number.to_string(),
        Value::Octets(octets) if object.starts_with(q_bridge::VLAN_STATIC_NAME.name) => {
            format!("{:?}", String::from_utf8_lossy(octets))
        }
        Value::Octets(octets) => octets.iter().fold("0x".to_owned(), |text, octet| format!("{text}{octet:02x}")),
        other => format!("{other:?}"),
    };
    format!("{object} = {value}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_object_stands_below_another() {
        let all: Vec<(&str, &[u32])> = scalars()
            .map(|object| (object.name, object.oid))
            .chain(columns().map(|object| (object.name, object.oid)))
            .collect();
        for (name, oid) in &all {
            let below: Vec<&str> =
                all.iter().filter(|(_, other)| other.starts_with(oid)).map(|(name, _)| *name).collect();
            assert_eq!(below, [*name]);
        }
        let names: BTreeSet<&str> = all.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), all.len());
    }
}
