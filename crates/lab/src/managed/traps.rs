//! Notifications that a switch sends when a link goes down or comes up: `linkDown` and `linkUp` of SNMPv2-MIB, by version 2c.

use std::net::{SocketAddr, UdpSocket};

use bridge_mib::objects::{if_mib, system};
use snmp::{
    Oid, Value,
    wire::{CommunityMessage, Message, Pdu, PduKind, Version},
};
use switchd::agent::Facts;

use super::READ_COMMUNITY;
use crate::management::CONTROLLER;

/// Where notifications go.
const TRAP_PORT: u16 = 162;
/// `snmpTrapOID.0`.
const TRAP_OID: [u32; 11] = [1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];
/// `linkDown` and `linkUp`.
const LINK_DOWN: [u32; 10] = [1, 3, 6, 1, 6, 3, 1, 1, 5, 3];
const LINK_UP: [u32; 10] = [1, 3, 6, 1, 6, 3, 1, 1, 5, 4];

/// What a switch has told its manager of its links.
pub(super) struct Traps {
    told: Option<Vec<bool>>,
    next_id: i32,
}

impl Traps {
    pub(super) fn new() -> Self {
        Self { told: None, next_id: 1 }
    }

    /// Tells the manager of each link that has changed since this was asked last; of none the first time. Whether a notification
    /// arrives nobody knows: a manager polls as well.
    pub(super) fn tell(&mut self, socket: &UdpSocket, facts: &Facts, up_cs: u32, running: &[bool]) {
        let told = self.told.replace(running.to_vec());
        let changed = told.iter().flatten().zip(running).zip(&facts.ports).filter(|((told, now), _)| told != now);
        for ((_, is_up), port) in changed {
            let notification = if *is_up { LINK_UP } else { LINK_DOWN };
            let index = port.if_index;
            let bindings = vec![
                (system::UP_TIME.instance(), Value::TimeTicks(up_cs)),
                (Oid::new(&TRAP_OID), Value::Oid(Oid::new(&notification))),
                (if_mib::INDEX.row(&bridge_mib::index::IfIndex(index)), Value::Integer(index as i32)),
            ];
            let pdu = Pdu { kind: PduKind::Trap, request_id: self.next_id, status: 0, index: 0, bindings };
            self.next_id = self.next_id.wrapping_add(1);
            let community = READ_COMMUNITY.as_bytes().to_vec();
            let message = Message::Community(CommunityMessage { version: Version::V2c, community, pdu }).encode();
            // Nobody need listen there.
            let _ = socket.send_to(&message, SocketAddr::from((CONTROLLER, TRAP_PORT)));
        }
    }
}
