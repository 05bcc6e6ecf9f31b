//! The objects that managers ask for and agents answer, one module a MIB, in the order in which they are walked.
//!
//! Constants are named as the objects are, without the MIB's prefix: `dot1qVlanStaticRowStatus` is
//! [`q_bridge::VLAN_STATIC_ROW_STATUS`].

use snmp::{Column, Oid, Scalar, Value};

/// Constants of a MIB's objects of which there is one, and the list of them.
macro_rules! scalars {
    ($($(#[$doc:meta])* $constant:ident: $name:literal, $oid:tt, $syntax:ident, $access:ident;)*) => {
        $($(#[$doc])*
        pub const $constant: ::snmp::Scalar =
            ::snmp::Scalar::new($name, &$oid, ::snmp::Syntax::$syntax, ::snmp::Access::$access);)*

        /// Every object of which there is one.
        pub const SCALARS: &[::snmp::Scalar] = &[$($constant),*];
    };
}

/// Constants of a MIB's objects of which a table's rows have one, and the list of them.
macro_rules! columns {
    ($($(#[$doc:meta])* $constant:ident: $name:literal, $oid:tt, $syntax:ident, $access:ident;)*) => {
        $($(#[$doc])*
        pub const $constant: ::snmp::Column = ::snmp::Column {
            name: $name,
            oid: &$oid,
            syntax: ::snmp::Syntax::$syntax,
            access: ::snmp::Access::$access,
        };)*

        /// Every object of which a row has one.
        pub const COLUMNS: &[::snmp::Column] = &[$($constant),*];
    };
}

/// SNMPv2-MIB: who the device is (RFC 3418).
pub mod system {
    scalars! {
        /// `sysDescr`: what it is.
        DESCR: "sysDescr", [1, 3, 6, 1, 2, 1, 1, 1], Octets, ReadOnly;
        /// `sysObjectID`: its make.
        OBJECT_ID: "sysObjectID", [1, 3, 6, 1, 2, 1, 1, 2], Oid, ReadOnly;
        /// `sysUpTime`: since its management started.
        UP_TIME: "sysUpTime", [1, 3, 6, 1, 2, 1, 1, 3], TimeTicks, ReadOnly;
        /// `sysContact`: who looks after it.
        CONTACT: "sysContact", [1, 3, 6, 1, 2, 1, 1, 4], Octets, ReadWrite;
        /// `sysName`: its name.
        NAME: "sysName", [1, 3, 6, 1, 2, 1, 1, 5], Octets, ReadWrite;
        /// `sysLocation`: where it is.
        LOCATION: "sysLocation", [1, 3, 6, 1, 2, 1, 1, 6], Octets, ReadWrite;
        /// `sysServices`: layers that it serves, as bits.
        SERVICES: "sysServices", [1, 3, 6, 1, 2, 1, 1, 7], Integer, ReadOnly;
        /// `snmpSetSerialNo`: a lock: a SET that bears its value succeeds once, and changes it.
        SET_SERIAL_NO: "snmpSetSerialNo", [1, 3, 6, 1, 6, 3, 1, 1, 6, 1], Integer, ReadWrite;
    }
}

/// IF-MIB: ports as interfaces, by ifIndex (RFC 2863).
pub mod if_mib {
    scalars! {
        /// `ifNumber`: how many there are.
        NUMBER: "ifNumber", [1, 3, 6, 1, 2, 1, 2, 1], Integer, ReadOnly;
    }

    columns! {
        /// `ifIndex`: the row's own index.
        INDEX: "ifIndex", [1, 3, 6, 1, 2, 1, 2, 2, 1, 1], Integer, ReadOnly;
        /// `ifDescr`: the port in words.
        DESCR: "ifDescr", [1, 3, 6, 1, 2, 1, 2, 2, 1, 2], Octets, ReadOnly;
        /// `ifType`: 6 is Ethernet, 161 a LAG.
        TYPE: "ifType", [1, 3, 6, 1, 2, 1, 2, 2, 1, 3], Integer, ReadOnly;
        /// `ifMtu`: largest packet, in bytes.
        MTU: "ifMtu", [1, 3, 6, 1, 2, 1, 2, 2, 1, 4], Integer, ReadOnly;
        /// `ifSpeed`: bit/s, or all ones.
        SPEED: "ifSpeed", [1, 3, 6, 1, 2, 1, 2, 2, 1, 5], Gauge32, ReadOnly;
        /// `ifPhysAddress`: its Ethernet address.
        PHYS_ADDRESS: "ifPhysAddress", [1, 3, 6, 1, 2, 1, 2, 2, 1, 6], Octets, ReadOnly;
        /// `ifAdminStatus`: what it should be.
        ADMIN_STATUS: "ifAdminStatus", [1, 3, 6, 1, 2, 1, 2, 2, 1, 7], Integer, ReadWrite;
        /// `ifOperStatus`: what it is.
        OPER_STATUS: "ifOperStatus", [1, 3, 6, 1, 2, 1, 2, 2, 1, 8], Integer, ReadOnly;
        /// `ifLastChange`: sysUpTime when that changed.
        LAST_CHANGE: "ifLastChange", [1, 3, 6, 1, 2, 1, 2, 2, 1, 9], TimeTicks, ReadOnly;
        /// `ifInOctets`: octets received.
        IN_OCTETS: "ifInOctets", [1, 3, 6, 1, 2, 1, 2, 2, 1, 10], Counter32, ReadOnly;
        /// `ifInUcastPkts`: unicast frames received.
        IN_UCAST_PKTS: "ifInUcastPkts", [1, 3, 6, 1, 2, 1, 2, 2, 1, 11], Counter32, ReadOnly;
        /// `ifInDiscards`: good frames received and dropped.
        IN_DISCARDS: "ifInDiscards", [1, 3, 6, 1, 2, 1, 2, 2, 1, 13], Counter32, ReadOnly;
        /// `ifInErrors`: bad frames received.
        IN_ERRORS: "ifInErrors", [1, 3, 6, 1, 2, 1, 2, 2, 1, 14], Counter32, ReadOnly;
        /// `ifOutOctets`: octets sent.
        OUT_OCTETS: "ifOutOctets", [1, 3, 6, 1, 2, 1, 2, 2, 1, 16], Counter32, ReadOnly;
        /// `ifOutUcastPkts`: unicast frames sent.
        OUT_UCAST_PKTS: "ifOutUcastPkts", [1, 3, 6, 1, 2, 1, 2, 2, 1, 17], Counter32, ReadOnly;
        /// `ifOutDiscards`: frames that found the queue full.
        OUT_DISCARDS: "ifOutDiscards", [1, 3, 6, 1, 2, 1, 2, 2, 1, 19], Counter32, ReadOnly;
        /// `ifOutErrors`: frames that could not be sent.
        OUT_ERRORS: "ifOutErrors", [1, 3, 6, 1, 2, 1, 2, 2, 1, 20], Counter32, ReadOnly;
        /// `ifStackStatus`: which interface lies over which; the index is the higher's and the lower's ifIndex, 0 for none.
        STACK_STATUS: "ifStackStatus", [1, 3, 6, 1, 2, 1, 31, 1, 2, 1, 3], Integer, ReadOnly;
        /// `ifName`: the port's name.
        NAME: "ifName", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1], Octets, ReadOnly;
        /// `ifHCInOctets`: octets received.
        HC_IN_OCTETS: "ifHCInOctets", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6], Counter64, ReadOnly;
        /// `ifInBroadcastPkts`: broadcast frames received.
        IN_BROADCAST_PKTS: "ifInBroadcastPkts", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 3], Counter32, ReadOnly;
        /// `ifHCInUcastPkts`: unicast frames received.
        HC_IN_UCAST_PKTS: "ifHCInUcastPkts", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7], Counter64, ReadOnly;
        /// `ifHCInMulticastPkts`: multicast frames received.
        HC_IN_MULTICAST_PKTS: "ifHCInMulticastPkts", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 8], Counter64, ReadOnly;
        /// `ifHCInBroadcastPkts`: broadcast frames received.
        HC_IN_BROADCAST_PKTS: "ifHCInBroadcastPkts", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 9], Counter64, ReadOnly;
        /// `ifHCOutOctets`: octets sent.
        HC_OUT_OCTETS: "ifHCOutOctets", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10], Counter64, ReadOnly;
        /// `ifHCOutUcastPkts`: unicast frames sent.
        HC_OUT_UCAST_PKTS: "ifHCOutUcastPkts", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11], Counter64, ReadOnly;
        /// `ifHCOutMulticastPkts`: multicast frames sent.
        HC_OUT_MULTICAST_PKTS: "ifHCOutMulticastPkts", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 12], Counter64, ReadOnly;
        /// `ifHCOutBroadcastPkts`: broadcast frames sent.
        HC_OUT_BROADCAST_PKTS: "ifHCOutBroadcastPkts", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 13], Counter64, ReadOnly;
        /// `ifHighSpeed`: mbit/s.
        HIGH_SPEED: "ifHighSpeed", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 15], Gauge32, ReadOnly;
        /// `ifPromiscuousMode`: whether it hears everything.
        PROMISCUOUS_MODE: "ifPromiscuousMode", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 16], Integer, ReadOnly;
        /// `ifConnectorPresent`: whether a cable fits.
        CONNECTOR_PRESENT: "ifConnectorPresent", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 17], Integer, ReadOnly;
        /// `ifAlias`: what people call it.
        ALIAS: "ifAlias", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 18], Octets, ReadWrite;
        /// `ifCounterDiscontinuityTime`: sysUpTime when counters last started afresh.
        COUNTER_DISCONTINUITY_TIME: "ifCounterDiscontinuityTime", [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 19], TimeTicks, ReadOnly;
    }
}

/// IEEE8023-LAG-MIB: members of LAGs, by ifIndex (IEEE 802.1AX).
pub mod lag {
    columns! {
        /// `dot3adAggPortAttachedAggID`: the LAG of a port, by ifIndex; 0 or the port itself for none.
        ATTACHED_AGG: "dot3adAggPortAttachedAggID", [1, 2, 840, 10006, 300, 43, 1, 2, 1, 1, 13], Integer, ReadOnly;
        /// `dot3adAggPortActorOperState`: what the port says of itself by LACP, as bits.
        ACTOR_OPER_STATE: "dot3adAggPortActorOperState", [1, 2, 840, 10006, 300, 43, 1, 2, 1, 1, 21], Octets, ReadOnly;
        /// `dot3adAggPortPartnerOperState`: what its partner last said.
        PARTNER_OPER_STATE: "dot3adAggPortPartnerOperState", [1, 2, 840, 10006, 300, 43, 1, 2, 1, 1, 23], Octets, ReadOnly;
    }
}

/// BRIDGE-MIB: the bridge, spanning tree, learned addresses (RFC 4188).
pub mod bridge {
    scalars! {
        /// `dot1dBaseBridgeAddress`: the bridge's Ethernet address.
        BRIDGE_ADDRESS: "dot1dBaseBridgeAddress", [1, 3, 6, 1, 2, 1, 17, 1, 1], Octets, ReadOnly;
        /// `dot1dBaseNumPorts`: how many ports it has.
        NUM_PORTS: "dot1dBaseNumPorts", [1, 3, 6, 1, 2, 1, 17, 1, 2], Integer, ReadOnly;
        /// `dot1dBaseType`: 2 is transparent.
        TYPE: "dot1dBaseType", [1, 3, 6, 1, 2, 1, 17, 1, 3], Integer, ReadOnly;
        /// `dot1dStpProtocolSpecification`: 3 is IEEE 802.1D.
        STP_PROTOCOL_SPECIFICATION: "dot1dStpProtocolSpecification", [1, 3, 6, 1, 2, 1, 17, 2, 1], Integer, ReadOnly;
        /// `dot1dStpPriority`: upper part of the bridge's identifier.
        STP_PRIORITY: "dot1dStpPriority", [1, 3, 6, 1, 2, 1, 17, 2, 2], Integer, ReadWrite;
        /// `dot1dStpTimeSinceTopologyChange`: since the tree last changed.
        STP_TIME_SINCE_TOPOLOGY_CHANGE: "dot1dStpTimeSinceTopologyChange", [1, 3, 6, 1, 2, 1, 17, 2, 3], TimeTicks, ReadOnly;
        /// `dot1dStpTopChanges`: how often it changed.
        STP_TOP_CHANGES: "dot1dStpTopChanges", [1, 3, 6, 1, 2, 1, 17, 2, 4], Counter32, ReadOnly;
        /// `dot1dStpDesignatedRoot`: the root's identifier.
        STP_DESIGNATED_ROOT: "dot1dStpDesignatedRoot", [1, 3, 6, 1, 2, 1, 17, 2, 5], Octets, ReadOnly;
        /// `dot1dStpRootCost`: cost of the way to the root.
        STP_ROOT_COST: "dot1dStpRootCost", [1, 3, 6, 1, 2, 1, 17, 2, 6], Integer, ReadOnly;
        /// `dot1dStpRootPort`: port toward the root, 0 at the root.
        STP_ROOT_PORT: "dot1dStpRootPort", [1, 3, 6, 1, 2, 1, 17, 2, 7], Integer, ReadOnly;
        /// `dot1dStpMaxAge`: in force, in hundredths of a second.
        STP_MAX_AGE: "dot1dStpMaxAge", [1, 3, 6, 1, 2, 1, 17, 2, 8], Integer, ReadOnly;
        /// `dot1dStpHelloTime`: in force, in hundredths of a second.
        STP_HELLO_TIME: "dot1dStpHelloTime", [1, 3, 6, 1, 2, 1, 17, 2, 9], Integer, ReadOnly;
        /// `dot1dStpHoldTime`: least time between two messages, in hundredths of a second.
        STP_HOLD_TIME: "dot1dStpHoldTime", [1, 3, 6, 1, 2, 1, 17, 2, 10], Integer, ReadOnly;
        /// `dot1dStpForwardDelay`: in force, in hundredths of a second.
        STP_FORWARD_DELAY: "dot1dStpForwardDelay", [1, 3, 6, 1, 2, 1, 17, 2, 11], Integer, ReadOnly;
        /// `dot1dTpLearnedEntryDiscards`: addresses not learned for want of room.
        TP_LEARNED_ENTRY_DISCARDS: "dot1dTpLearnedEntryDiscards", [1, 3, 6, 1, 2, 1, 17, 4, 1], Counter32, ReadOnly;
        /// `dot1dTpAgingTime`: seconds until a learned address is forgotten.
        TP_AGING_TIME: "dot1dTpAgingTime", [1, 3, 6, 1, 2, 1, 17, 4, 2], Integer, ReadWrite;
    }

    columns! {
        /// `dot1dBasePort`: the row's own index.
        PORT: "dot1dBasePort", [1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 1], Integer, ReadOnly;
        /// `dot1dBasePortIfIndex`: the port's ifIndex.
        PORT_IF_INDEX: "dot1dBasePortIfIndex", [1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 2], Integer, ReadOnly;
        /// `dot1dBasePortCircuit`: distinguishes ports of one interface.
        PORT_CIRCUIT: "dot1dBasePortCircuit", [1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 3], Oid, ReadOnly;
        /// `dot1dBasePortDelayExceededDiscards`: frames that waited too long.
        PORT_DELAY_EXCEEDED_DISCARDS: "dot1dBasePortDelayExceededDiscards", [1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 4], Counter32, ReadOnly;
        /// `dot1dBasePortMtuExceededDiscards`: frames that were too long.
        PORT_MTU_EXCEEDED_DISCARDS: "dot1dBasePortMtuExceededDiscards", [1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 5], Counter32, ReadOnly;
        /// `dot1dStpPort`: the row's own index.
        STP_PORT: "dot1dStpPort", [1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 1], Integer, ReadOnly;
        /// `dot1dStpPortPriority`: upper part of the port's identifier.
        STP_PORT_PRIORITY: "dot1dStpPortPriority", [1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 2], Integer, ReadWrite;
        /// `dot1dStpPortState`: what the port does.
        STP_PORT_STATE: "dot1dStpPortState", [1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 3], Integer, ReadOnly;
        /// `dot1dStpPortEnable`: whether spanning tree governs the port.
        STP_PORT_ENABLE: "dot1dStpPortEnable", [1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 4], Integer, ReadWrite;
        /// `dot1dStpPortPathCost`: what the port adds to a way.
        STP_PORT_PATH_COST: "dot1dStpPortPathCost", [1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 5], Integer, ReadWrite;
        /// `dot1dStpPortDesignatedRoot`: the root as the segment knows it.
        STP_PORT_DESIGNATED_ROOT: "dot1dStpPortDesignatedRoot", [1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 6], Octets, ReadOnly;
        /// `dot1dStpPortDesignatedCost`: the segment's cost to the root.
        STP_PORT_DESIGNATED_COST: "dot1dStpPortDesignatedCost", [1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 7], Integer, ReadOnly;
        /// `dot1dStpPortDesignatedBridge`: the segment's designated bridge.
        STP_PORT_DESIGNATED_BRIDGE: "dot1dStpPortDesignatedBridge", [1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 8], Octets, ReadOnly;
        /// `dot1dStpPortDesignatedPort`: that bridge's port.
        STP_PORT_DESIGNATED_PORT: "dot1dStpPortDesignatedPort", [1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 9], Octets, ReadOnly;
        /// `dot1dStpPortForwardTransitions`: how often the port began to forward.
        STP_PORT_FORWARD_TRANSITIONS: "dot1dStpPortForwardTransitions", [1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 10], Counter32, ReadOnly;
        /// `dot1dTpFdbAddress`: the row's own index.
        TP_FDB_ADDRESS: "dot1dTpFdbAddress", [1, 3, 6, 1, 2, 1, 17, 4, 3, 1, 1], Octets, ReadOnly;
        /// `dot1dTpFdbPort`: where the address was last seen, in any VLAN.
        TP_FDB_PORT: "dot1dTpFdbPort", [1, 3, 6, 1, 2, 1, 17, 4, 3, 1, 2], Integer, ReadOnly;
        /// `dot1dTpFdbStatus`: where the entry is from.
        TP_FDB_STATUS: "dot1dTpFdbStatus", [1, 3, 6, 1, 2, 1, 17, 4, 3, 1, 3], Integer, ReadOnly;
        /// `dot1dTpPort`: the row's own index.
        TP_PORT: "dot1dTpPort", [1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 1], Integer, ReadOnly;
        /// `dot1dTpPortMaxInfo`: longest frame less its header, in bytes.
        TP_PORT_MAX_INFO: "dot1dTpPortMaxInfo", [1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 2], Integer, ReadOnly;
        /// `dot1dTpPortInFrames`: frames received.
        TP_PORT_IN_FRAMES: "dot1dTpPortInFrames", [1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 3], Counter32, ReadOnly;
        /// `dot1dTpPortOutFrames`: frames sent.
        TP_PORT_OUT_FRAMES: "dot1dTpPortOutFrames", [1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 4], Counter32, ReadOnly;
        /// `dot1dTpPortInDiscards`: good frames received and filtered.
        TP_PORT_IN_DISCARDS: "dot1dTpPortInDiscards", [1, 3, 6, 1, 2, 1, 17, 4, 4, 1, 5], Counter32, ReadOnly;
    }
}

/// P-BRIDGE-MIB: what the bridge can do (RFC 4363).
pub mod p_bridge {
    scalars! {
        /// `dot1dDeviceCapabilities`: bits: 1 priorities, 2 static entries, 3 IVL, 4 SVL, 5 hybrid, 6 configurable PVID.
        DEVICE_CAPABILITIES: "dot1dDeviceCapabilities", [1, 3, 6, 1, 2, 1, 17, 6, 1, 1, 1], Octets, ReadOnly;
        /// `dot1dTrafficClassesEnabled`: whether priorities have queues of their own.
        TRAFFIC_CLASSES_ENABLED: "dot1dTrafficClassesEnabled", [1, 3, 6, 1, 2, 1, 17, 6, 1, 1, 2], Integer, ReadOnly;
        /// `dot1dGmrpStatus`: whether group registration runs.
        GMRP_STATUS: "dot1dGmrpStatus", [1, 3, 6, 1, 2, 1, 17, 6, 1, 1, 3], Integer, ReadOnly;
    }

    columns! {
        /// `dot1dPortCapabilities`: bits: 0 tagging, 1 acceptable frame types, 2 ingress filtering.
        PORT_CAPABILITIES: "dot1dPortCapabilities", [1, 3, 6, 1, 2, 1, 17, 6, 1, 1, 4, 1, 1], Octets, ReadOnly;
    }
}

/// Q-BRIDGE-MIB: VLANs (RFC 4363).
pub mod q_bridge {
    scalars! {
        /// `dot1qVlanVersionNumber`: 1.
        VLAN_VERSION_NUMBER: "dot1qVlanVersionNumber", [1, 3, 6, 1, 2, 1, 17, 7, 1, 1, 1], Integer, ReadOnly;
        /// `dot1qMaxVlanId`: the greatest VLAN id.
        MAX_VLAN_ID: "dot1qMaxVlanId", [1, 3, 6, 1, 2, 1, 17, 7, 1, 1, 2], Integer, ReadOnly;
        /// `dot1qMaxSupportedVlans`: how many VLANs fit.
        MAX_SUPPORTED_VLANS: "dot1qMaxSupportedVlans", [1, 3, 6, 1, 2, 1, 17, 7, 1, 1, 3], Gauge32, ReadOnly;
        /// `dot1qNumVlans`: how many there are.
        NUM_VLANS: "dot1qNumVlans", [1, 3, 6, 1, 2, 1, 17, 7, 1, 1, 4], Gauge32, ReadOnly;
        /// `dot1qGvrpStatus`: whether VLAN registration runs.
        GVRP_STATUS: "dot1qGvrpStatus", [1, 3, 6, 1, 2, 1, 17, 7, 1, 1, 5], Integer, ReadOnly;
        /// `dot1qVlanNumDeletes`: how many VLANs have been removed.
        VLAN_NUM_DELETES: "dot1qVlanNumDeletes", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 1], Counter32, ReadOnly;
        /// `dot1qNextFreeLocalVlanIndex`: 0: only VLANs of 802.1Q can be made.
        NEXT_FREE_LOCAL_VLAN_INDEX: "dot1qNextFreeLocalVlanIndex", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 4], Integer, ReadOnly;
        /// `dot1qConstraintTypeDefault`: 1: each VLAN has a filtering database; 2: they share one.
        CONSTRAINT_TYPE_DEFAULT: "dot1qConstraintTypeDefault", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 10], Integer, ReadOnly;
    }

    columns! {
        /// `dot1qFdbDynamicCount`: learned addresses of a filtering database.
        FDB_DYNAMIC_COUNT: "dot1qFdbDynamicCount", [1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 1, 1, 2], Counter32, ReadOnly;
        /// `dot1qTpFdbPort`: where an address was last seen; 0 if never.
        TP_FDB_PORT: "dot1qTpFdbPort", [1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 2, 1, 2], Integer, ReadOnly;
        /// `dot1qTpFdbStatus`: where the entry is from.
        TP_FDB_STATUS: "dot1qTpFdbStatus", [1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 2, 1, 3], Integer, ReadOnly;
        /// `dot1qStaticUnicastAllowedToGoTo`: ports that frames for the address may leave by.
        STATIC_UNICAST_ALLOWED_TO_GO_TO: "dot1qStaticUnicastAllowedToGoTo", [1, 3, 6, 1, 2, 1, 17, 7, 1, 3, 1, 1, 3], Octets, ReadCreate;
        /// `dot1qStaticUnicastStatus`: how long the entry lasts; invalid removes it.
        STATIC_UNICAST_STATUS: "dot1qStaticUnicastStatus", [1, 3, 6, 1, 2, 1, 17, 7, 1, 3, 1, 1, 4], Integer, ReadCreate;
        /// `dot1qVlanFdbId`: the VLAN's filtering database.
        VLAN_FDB_ID: "dot1qVlanFdbId", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 3], Gauge32, ReadOnly;
        /// `dot1qVlanCurrentEgressPorts`: members.
        VLAN_CURRENT_EGRESS_PORTS: "dot1qVlanCurrentEgressPorts", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 4], Octets, ReadOnly;
        /// `dot1qVlanCurrentUntaggedPorts`: members that send without a tag.
        VLAN_CURRENT_UNTAGGED_PORTS: "dot1qVlanCurrentUntaggedPorts", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 5], Octets, ReadOnly;
        /// `dot1qVlanStatus`: why the VLAN is there.
        VLAN_STATUS: "dot1qVlanStatus", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 6], Integer, ReadOnly;
        /// `dot1qVlanCreationTime`: sysUpTime when it came.
        VLAN_CREATION_TIME: "dot1qVlanCreationTime", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 7], TimeTicks, ReadOnly;
        /// `dot1qVlanStaticName`: its name.
        VLAN_STATIC_NAME: "dot1qVlanStaticName", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 1], Octets, ReadCreate;
        /// `dot1qVlanStaticEgressPorts`: members.
        VLAN_STATIC_EGRESS_PORTS: "dot1qVlanStaticEgressPorts", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 2], Octets, ReadCreate;
        /// `dot1qVlanForbiddenEgressPorts`: ports that may not become members.
        VLAN_FORBIDDEN_EGRESS_PORTS: "dot1qVlanForbiddenEgressPorts", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 3], Octets, ReadCreate;
        /// `dot1qVlanStaticUntaggedPorts`: members that send without a tag.
        VLAN_STATIC_UNTAGGED_PORTS: "dot1qVlanStaticUntaggedPorts", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 4], Octets, ReadCreate;
        /// `dot1qVlanStaticRowStatus`: how the VLAN comes and goes.
        VLAN_STATIC_ROW_STATUS: "dot1qVlanStaticRowStatus", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 5], Integer, ReadCreate;
        /// `dot1qPvid`: the VLAN of untagged frames that enter.
        PVID: "dot1qPvid", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 1], Gauge32, ReadWrite;
        /// `dot1qPortAcceptableFrameTypes`: which frames may enter.
        PORT_ACCEPTABLE_FRAME_TYPES: "dot1qPortAcceptableFrameTypes", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 2], Integer, ReadWrite;
        /// `dot1qPortIngressFiltering`: whether frames of foreign VLANs are dropped.
        PORT_INGRESS_FILTERING: "dot1qPortIngressFiltering", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 3], Integer, ReadWrite;
        /// `dot1qPortGvrpStatus`: whether VLAN registration runs on the port.
        PORT_GVRP_STATUS: "dot1qPortGvrpStatus", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 4], Integer, ReadOnly;
        /// `dot1qTpVlanPortInFrames`: frames of a VLAN received by a port.
        TP_VLAN_PORT_IN_FRAMES: "dot1qTpVlanPortInFrames", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 6, 1, 1], Counter32, ReadOnly;
        /// `dot1qTpVlanPortOutFrames`: frames of a VLAN sent by a port.
        TP_VLAN_PORT_OUT_FRAMES: "dot1qTpVlanPortOutFrames", [1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 6, 1, 2], Counter32, ReadOnly;
    }
}

/// EtherLike-MIB: PAUSE, by ifIndex (RFC 3635).
pub mod ether_like {
    columns! {
        /// `dot3PauseAdminMode`: what it should be.
        PAUSE_ADMIN_MODE: "dot3PauseAdminMode", [1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 1], Integer, ReadWrite;
        /// `dot3PauseOperMode`: what it is.
        PAUSE_OPER_MODE: "dot3PauseOperMode", [1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 2], Integer, ReadOnly;
        /// `dot3InPauseFrames`: PAUSE frames received.
        IN_PAUSE_FRAMES: "dot3InPauseFrames", [1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 3], Counter32, ReadOnly;
        /// `dot3OutPauseFrames`: PAUSE frames sent.
        OUT_PAUSE_FRAMES: "dot3OutPauseFrames", [1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 4], Counter32, ReadOnly;
        /// `dot3HCInPauseFrames`: PAUSE frames received.
        HC_IN_PAUSE_FRAMES: "dot3HCInPauseFrames", [1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 5], Counter64, ReadOnly;
        /// `dot3HCOutPauseFrames`: PAUSE frames sent.
        HC_OUT_PAUSE_FRAMES: "dot3HCOutPauseFrames", [1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 6], Counter64, ReadOnly;
    }
}

/// LLDP-MIB: this device and its neighbours (IEEE 802.1AB-2005, clause 12).
pub mod lldp {
    scalars! {
        /// `lldpMessageTxInterval`: seconds between two announcements.
        MESSAGE_TX_INTERVAL: "lldpMessageTxInterval", [1, 0, 8802, 1, 1, 2, 1, 1, 1], Integer, ReadOnly;
        /// `lldpMessageTxHoldMultiplier`: intervals that an announcement holds for.
        MESSAGE_TX_HOLD_MULTIPLIER: "lldpMessageTxHoldMultiplier", [1, 0, 8802, 1, 1, 2, 1, 1, 2], Integer, ReadOnly;
        /// `lldpStatsRemTablesLastChangeTime`: sysUpTime when a neighbour came, changed or went.
        STATS_REM_TABLES_LAST_CHANGE_TIME: "lldpStatsRemTablesLastChangeTime", [1, 0, 8802, 1, 1, 2, 1, 2, 1], TimeTicks, ReadOnly;
        /// `lldpStatsRemTablesInserts`: how many came.
        STATS_REM_TABLES_INSERTS: "lldpStatsRemTablesInserts", [1, 0, 8802, 1, 1, 2, 1, 2, 2], Gauge32, ReadOnly;
        /// `lldpStatsRemTablesDeletes`: how many went.
        STATS_REM_TABLES_DELETES: "lldpStatsRemTablesDeletes", [1, 0, 8802, 1, 1, 2, 1, 2, 3], Gauge32, ReadOnly;
        /// `lldpStatsRemTablesDrops`: how many found no room.
        STATS_REM_TABLES_DROPS: "lldpStatsRemTablesDrops", [1, 0, 8802, 1, 1, 2, 1, 2, 4], Gauge32, ReadOnly;
        /// `lldpStatsRemTablesAgeouts`: how many fell silent.
        STATS_REM_TABLES_AGEOUTS: "lldpStatsRemTablesAgeouts", [1, 0, 8802, 1, 1, 2, 1, 2, 5], Gauge32, ReadOnly;
        /// `lldpLocChassisIdSubtype`: how this device is named.
        LOC_CHASSIS_ID_SUBTYPE: "lldpLocChassisIdSubtype", [1, 0, 8802, 1, 1, 2, 1, 3, 1], Integer, ReadOnly;
        /// `lldpLocChassisId`: its name.
        LOC_CHASSIS_ID: "lldpLocChassisId", [1, 0, 8802, 1, 1, 2, 1, 3, 2], Octets, ReadOnly;
        /// `lldpLocSysName`: its sysName.
        LOC_SYS_NAME: "lldpLocSysName", [1, 0, 8802, 1, 1, 2, 1, 3, 3], Octets, ReadOnly;
        /// `lldpLocSysDesc`: its sysDescr.
        LOC_SYS_DESC: "lldpLocSysDesc", [1, 0, 8802, 1, 1, 2, 1, 3, 4], Octets, ReadOnly;
        /// `lldpLocSysCapSupported`: what it can be, as bits; 2 is bridge.
        LOC_SYS_CAP_SUPPORTED: "lldpLocSysCapSupported", [1, 0, 8802, 1, 1, 2, 1, 3, 5], Octets, ReadOnly;
        /// `lldpLocSysCapEnabled`: what it is, as bits.
        LOC_SYS_CAP_ENABLED: "lldpLocSysCapEnabled", [1, 0, 8802, 1, 1, 2, 1, 3, 6], Octets, ReadOnly;
    }

    columns! {
        /// `lldpPortConfigAdminStatus`: whether a port announces itself and listens.
        PORT_CONFIG_ADMIN_STATUS: "lldpPortConfigAdminStatus", [1, 0, 8802, 1, 1, 2, 1, 1, 6, 1, 2], Integer, ReadWrite;
        /// `lldpLocPortIdSubtype`: how a port is named.
        LOC_PORT_ID_SUBTYPE: "lldpLocPortIdSubtype", [1, 0, 8802, 1, 1, 2, 1, 3, 7, 1, 2], Integer, ReadOnly;
        /// `lldpLocPortId`: its name.
        LOC_PORT_ID: "lldpLocPortId", [1, 0, 8802, 1, 1, 2, 1, 3, 7, 1, 3], Octets, ReadOnly;
        /// `lldpLocPortDesc`: the port in words.
        LOC_PORT_DESC: "lldpLocPortDesc", [1, 0, 8802, 1, 1, 2, 1, 3, 7, 1, 4], Octets, ReadOnly;
        /// `lldpRemChassisIdSubtype`: how a neighbour is named.
        REM_CHASSIS_ID_SUBTYPE: "lldpRemChassisIdSubtype", [1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 4], Integer, ReadOnly;
        /// `lldpRemChassisId`: its name.
        REM_CHASSIS_ID: "lldpRemChassisId", [1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 5], Octets, ReadOnly;
        /// `lldpRemPortIdSubtype`: how its port is named.
        REM_PORT_ID_SUBTYPE: "lldpRemPortIdSubtype", [1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 6], Integer, ReadOnly;
        /// `lldpRemPortId`: its port's name.
        REM_PORT_ID: "lldpRemPortId", [1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 7], Octets, ReadOnly;
        /// `lldpRemPortDesc`: its port in words.
        REM_PORT_DESC: "lldpRemPortDesc", [1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 8], Octets, ReadOnly;
        /// `lldpRemSysName`: its sysName.
        REM_SYS_NAME: "lldpRemSysName", [1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 9], Octets, ReadOnly;
        /// `lldpRemSysDesc`: its sysDescr.
        REM_SYS_DESC: "lldpRemSysDesc", [1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 10], Octets, ReadOnly;
        /// `lldpRemSysCapSupported`: what it can be, as bits.
        REM_SYS_CAP_SUPPORTED: "lldpRemSysCapSupported", [1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 11], Octets, ReadOnly;
        /// `lldpRemSysCapEnabled`: what it is, as bits.
        REM_SYS_CAP_ENABLED: "lldpRemSysCapEnabled", [1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 12], Octets, ReadOnly;
    }
}

/// LLDP-EXT-DOT1-DCBX-MIB: what ports say of priority flow control, by ifIndex (IEEE 802.1Q, D.5).
pub mod dcbx {
    columns! {
        /// `lldpXdot1dcbxLocPFCCap`: classes that may have priority flow control at the same time, 1 to 8.
        LOC_PFC_CAP: "lldpXdot1dcbxLocPFCCap", [1, 3, 111, 2, 802, 1, 1, 13, 1, 5, 32962, 5, 1, 2, 3, 1, 1, 3], Gauge32, ReadOnly;
    }
}

/// ENTITY-MIB: what a device is made of (RFC 6933).
pub mod entity {
    columns! {
        /// `entPhysicalDescr`: the part in words.
        DESCR: "entPhysicalDescr", [1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 2], Octets, ReadOnly;
        /// `entPhysicalClass`: what kind of part it is; 3 is a chassis.
        CLASS: "entPhysicalClass", [1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 5], Integer, ReadOnly;
        /// `entPhysicalName`: what the device calls it.
        NAME: "entPhysicalName", [1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 7], Octets, ReadOnly;
        /// `entPhysicalSerialNum`: its maker's serial number.
        SERIAL_NUM: "entPhysicalSerialNum", [1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 11], Octets, ReadOnly;
    }
}

/// ESPALIER-MIB: what the standards leave to vendors, below net-snmp's place for experiments.
pub mod own {
    scalars! {
        /// `espalierProduct`: identifies the agent: sysObjectID is this object.
        PRODUCT: "espalierProduct", [1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 1217, 1], Integer, ReadOnly;
        /// `espalierAction`: written: 1 saves the configuration, 2 restarts from the saved one, 3 restarts from factory settings. Reads 0.
        ACTION: "espalierAction", [1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 1217, 2], Integer, ReadWrite;
        /// `espalierSaved`: 1 if the running configuration is the saved one, else 2.
        SAVED: "espalierSaved", [1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 1217, 3], Integer, ReadOnly;
        /// `espalierGuard`: written: unless 0 follows within so many seconds, the switch goes back to what it holds now. Reads the
        /// seconds that are left, 0 if it does not wait.
        GUARD: "espalierGuard", [1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 1217, 4], Integer, ReadWrite;
    }
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
        lag::COLUMNS,
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
