//! Objects that only a manager speaks of: what some vendors' agents have beside, or instead of, those of [`super::objects`].
//!
//! Sources: IEEE 802.1Q-2014 clause 17 (IEEE8021-BRIDGE-MIB, IEEE8021-Q-BRIDGE-MIB), IEEE 802.1AB-2009 clause 11
//! (LLDP-V2-MIB), CISCO-VTP-MIB.

use snmp::{Access, Column, Syntax};

const fn column(name: &'static str, oid: &'static [u32], syntax: Syntax) -> Column {
    Column { name, oid, syntax, access: Access::ReadOnly }
}

/// `vtpVlanState`: VLANs of a Cisco switch, by management domain and number; 1 is in operation.
pub const VTP_VLAN_STATE: Column =
    column("vtpVlanState", &[1, 3, 6, 1, 4, 1, 9, 9, 46, 1, 3, 1, 1, 2], Syntax::Integer);

/// IEEE8021-BRIDGE-MIB and IEEE8021-Q-BRIDGE-MIB: VLANs of switches that have IEEE's tables instead of RFC 4363's.
pub mod ieee {
    use super::column;
    use snmp::{Column, Syntax};

    /// `ieee8021BridgeBasePortIfIndex`: the port's ifIndex.
    pub const PORT_IF_INDEX: Column =
        column("ieee8021BridgeBasePortIfIndex", &[1, 3, 111, 2, 802, 1, 1, 2, 1, 1, 4, 1, 3], Syntax::Integer);
    /// `ieee8021QBridgeVlanStaticName`: a VLAN's name.
    pub const VLAN_STATIC_NAME: Column =
        column("ieee8021QBridgeVlanStaticName", &[1, 3, 111, 2, 802, 1, 1, 4, 1, 4, 3, 1, 3], Syntax::Octets);
    /// `ieee8021QBridgeVlanStaticEgressPorts`: its members.
    pub const VLAN_STATIC_EGRESS_PORTS: Column =
        column("ieee8021QBridgeVlanStaticEgressPorts", &[1, 3, 111, 2, 802, 1, 1, 4, 1, 4, 3, 1, 4], Syntax::Octets);
    /// `ieee8021QBridgeVlanStaticUntaggedPorts`: members whose frames leave without a tag.
    pub const VLAN_STATIC_UNTAGGED_PORTS: Column =
        column("ieee8021QBridgeVlanStaticUntaggedPorts", &[1, 3, 111, 2, 802, 1, 1, 4, 1, 4, 3, 1, 6], Syntax::Octets);
    /// `ieee8021QBridgePvid`: the VLAN of untagged frames that enter a port.
    pub const PVID: Column =
        column("ieee8021QBridgePvid", &[1, 3, 111, 2, 802, 1, 1, 4, 1, 4, 5, 1, 1], Syntax::Gauge32);
    /// `ieee8021QBridgePortAcceptableFrameTypes`: 1 is all, 3 only tagged ones.
    pub const PORT_ACCEPTABLE_FRAME_TYPES: Column = column(
        "ieee8021QBridgePortAcceptableFrameTypes",
        &[1, 3, 111, 2, 802, 1, 1, 4, 1, 4, 5, 1, 2],
        Syntax::Integer,
    );
    /// `ieee8021QBridgePortIngressFiltering`: whether frames of VLANs that the port is not in are dropped.
    pub const PORT_INGRESS_FILTERING: Column =
        column("ieee8021QBridgePortIngressFiltering", &[1, 3, 111, 2, 802, 1, 1, 4, 1, 4, 5, 1, 3], Syntax::Integer);
}

/// LLDP-V2-MIB: neighbours by ifIndex and destination address.
pub mod lldp_v2 {
    use super::column;
    use snmp::{Access, Column, Scalar, Syntax};

    /// `lldpV2LocChassisIdSubtype`: how this device is named.
    pub const LOC_CHASSIS_ID_SUBTYPE: Scalar = Scalar {
        name: "lldpV2LocChassisIdSubtype",
        oid: &[1, 3, 111, 2, 802, 1, 1, 13, 1, 3, 1],
        syntax: Syntax::Integer,
        access: Access::ReadOnly,
    };
    /// `lldpV2LocChassisId`: its name.
    pub const LOC_CHASSIS_ID: Scalar = Scalar {
        name: "lldpV2LocChassisId",
        oid: &[1, 3, 111, 2, 802, 1, 1, 13, 1, 3, 2],
        syntax: Syntax::Octets,
        access: Access::ReadOnly,
    };
    /// `lldpV2LocPortIdSubtype`: how a port is named.
    pub const LOC_PORT_ID_SUBTYPE: Column =
        column("lldpV2LocPortIdSubtype", &[1, 3, 111, 2, 802, 1, 1, 13, 1, 3, 7, 1, 2], Syntax::Integer);
    /// `lldpV2LocPortId`: its name.
    pub const LOC_PORT_ID: Column =
        column("lldpV2LocPortId", &[1, 3, 111, 2, 802, 1, 1, 13, 1, 3, 7, 1, 3], Syntax::Octets);
    /// `lldpV2RemChassisIdSubtype`: how a neighbour is named.
    pub const REM_CHASSIS_ID_SUBTYPE: Column =
        column("lldpV2RemChassisIdSubtype", &[1, 3, 111, 2, 802, 1, 1, 13, 1, 4, 1, 1, 5], Syntax::Integer);
    /// `lldpV2RemChassisId`: its name.
    pub const REM_CHASSIS_ID: Column =
        column("lldpV2RemChassisId", &[1, 3, 111, 2, 802, 1, 1, 13, 1, 4, 1, 1, 6], Syntax::Octets);
    /// `lldpV2RemPortIdSubtype`: how its port is named.
    pub const REM_PORT_ID_SUBTYPE: Column =
        column("lldpV2RemPortIdSubtype", &[1, 3, 111, 2, 802, 1, 1, 13, 1, 4, 1, 1, 7], Syntax::Integer);
    /// `lldpV2RemPortId`: its port's name.
    pub const REM_PORT_ID: Column =
        column("lldpV2RemPortId", &[1, 3, 111, 2, 802, 1, 1, 13, 1, 4, 1, 1, 8], Syntax::Octets);
    /// `lldpV2RemPortDesc`: its port in words.
    pub const REM_PORT_DESC: Column =
        column("lldpV2RemPortDesc", &[1, 3, 111, 2, 802, 1, 1, 13, 1, 4, 1, 1, 9], Syntax::Octets);
    /// `lldpV2RemSysName`: its sysName.
    pub const REM_SYS_NAME: Column =
        column("lldpV2RemSysName", &[1, 3, 111, 2, 802, 1, 1, 13, 1, 4, 1, 1, 10], Syntax::Octets);
    /// `lldpV2RemSysCapEnabled`: what it is, as bits.
    pub const REM_SYS_CAP_ENABLED: Column =
        column("lldpV2RemSysCapEnabled", &[1, 3, 111, 2, 802, 1, 1, 13, 1, 4, 1, 1, 13], Syntax::Octets);
}
