//! A manager of the lab's switches, in messages of its own, and the agents on threads of the test.
#![allow(dead_code, unreachable_pub, reason = "each test binary is a crate and uses the part that it needs")]

use std::{
    net::{Ipv4Addr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bridge_mib::{BridgePort, objects::bridge};
use lab::{
    Lab, LabError,
    managed::{SNMP_PORT, WRITE_COMMUNITY, serve},
    netns,
};
use snmp::{
    Oid, Value,
    wire::{Binding, CommunityMessage, ErrorStatus, Message, Pdu, PduKind, Version},
};

use crate::common::setting;

/// The agents of a lab, on threads of this process.
pub struct Agents {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), LabError>>>,
}

impl Agents {
    pub fn start(lab: &Lab) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (name, flag) = (lab.layout().name.clone(), Arc::clone(&stop));
        let thread = Some(thread::spawn(move || serve(&name, &flag)));
        Self { stop, thread }
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let served = self.thread.take().expect("started once").join();
        match served {
            Ok(Ok(())) => {}
            // A panic inside a panic would hide both.
            wrong if thread::panicking() => println!("agents: {wrong:?}"),
            wrong => panic!("agents: {wrong:?}"),
        }
    }
}

/// A manager in the management namespace.
pub struct Manager {
    socket: UdpSocket,
    address: Ipv4Addr,
    next_id: i32,
}

impl Manager {
    pub fn of(lab: &Lab, switch: usize) -> Self {
        let management = lab.layout().management.as_ref().expect("managed");
        let socket = netns::within(&management.namespace, || UdpSocket::bind("0.0.0.0:0")).expect("a namespace");
        let socket = socket.expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a socket");
        Self { socket, address: management.switches[switch].address, next_id: 0 }
    }

    pub fn ask(&mut self, kind: PduKind, bindings: Vec<Binding>) -> Pdu {
        self.next_id += 1;
        let pdu = Pdu { kind, request_id: self.next_id, status: 0, index: 0, bindings };
        let community = WRITE_COMMUNITY.as_bytes().to_vec();
        let message = Message::Community(CommunityMessage { version: Version::V2c, community, pdu }).encode();
        for _ in 0..40 {
            self.socket.send_to(&message, (self.address, SNMP_PORT)).expect("a route");
            let mut buffer = [0; 65_536];
            if let Ok((len, _)) = self.socket.recv_from(&mut buffer) {
                match Message::decode(&buffer[..len]) {
                    Ok(Message::Community(answer)) if answer.pdu.request_id == self.next_id => return answer.pdu,
                    _ => {}
                }
            }
        }
        panic!("{} does not answer", self.address);
    }

    pub fn get(&mut self, oid: Oid) -> Value {
        self.ask(PduKind::Get, vec![(oid, Value::Null)]).bindings.remove(0).1
    }

    pub fn set(&mut self, bindings: Vec<Binding>) {
        let answer = self.ask(PduKind::Set, bindings.clone());
        assert_eq!(ErrorStatus::of(answer.status), ErrorStatus::NoError, "binding {} of {bindings:?}", answer.index);
    }

    /// The rows of a column or table: what follows its name, and the value.
    pub fn walk(&mut self, root: &Oid) -> Vec<(Vec<u32>, Value)> {
        let (mut rows, mut at) = (Vec::new(), root.clone());
        loop {
            let (oid, value) = self.ask(PduKind::GetNext, vec![(at, Value::Null)]).bindings.remove(0);
            let Some(row) = oid.strip_prefix(root.parts()) else { return rows };
            rows.push((row.to_vec(), value));
            at = oid;
        }
    }

    pub fn states(&mut self, ports: u32) -> Vec<Value> {
        (1..=ports).map(|port| self.get(bridge::STP_PORT_STATE.row(&BridgePort(port)))).collect()
    }
}

pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(20 * setting("LAB_SLOWNESS", 1)), "{what}");
        thread::sleep(Duration::from_millis(100));
    }
}
