//! What models have in common: the cabling, and the state of all of it.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use fabric::{Attachment, ChannelId, LinkId, PortId, SwitchId, Topology};

/// The room that the rack stands in.
pub(crate) struct Room {
    topology: Topology,
    state: Mutex<State>,
    writes: AtomicUsize,
}

struct State {
    /// Links without carrier.
    cut: BTreeSet<LinkId>,
    /// Switches that are off.
    off: BTreeSet<SwitchId>,
    /// `shut[port]`: administratively down.
    shut: Vec<bool>,
    /// `rates_bps[channel]`.
    rates_bps: Vec<f64>,
    /// `octets[channel]`: what has been carried until `counted_at`.
    octets: Vec<f64>,
    /// `host_rates_bps[host]`: sent, received.
    host_rates_bps: Vec<[f64; 2]>,
    /// `host_octets[host]`: sent, received.
    host_octets: Vec<[f64; 2]>,
    counted_at: Instant,
}

/// The state of a port that a cable is in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Plug {
    /// Whether the cable carries.
    pub(crate) carries: bool,
    /// The port at the other end of a cable between switches.
    pub(crate) far: Option<PortId>,
    /// Octets received and sent.
    pub(crate) octets: [u64; 2],
}

impl Room {
    pub(crate) fn new(topology: Topology) -> Self {
        let (ports, channels, hosts) = (topology.ports().len(), topology.channel_count(), topology.hosts().len());
        let state = State {
            cut: BTreeSet::new(),
            off: BTreeSet::new(),
            shut: vec![false; ports],
            rates_bps: vec![0.0; channels],
            octets: vec![0.0; channels],
            host_rates_bps: vec![[0.0; 2]; hosts],
            host_octets: vec![[0.0; 2]; hosts],
            counted_at: Instant::now(),
        };
        Self { topology, state: Mutex::new(state), writes: AtomicUsize::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(crate) fn set_cut(&self, link: LinkId, cut: bool) {
        let mut state = self.state();
        if cut {
            state.cut.insert(link)
        } else {
            state.cut.remove(&link)
        };
    }

    pub(crate) fn set_power(&self, switch: SwitchId, on: bool) {
        let mut state = self.state();
        if on {
            state.off.remove(&switch)
        } else {
            state.off.insert(switch)
        };
    }

    pub(crate) fn is_on(&self, switch: SwitchId) -> bool {
        !self.state().off.contains(&switch)
    }

    pub(crate) fn set_shut(&self, ports: impl Iterator<Item = (PortId, bool)>) {
        let mut state = self.state();
        for (port, shut) in ports {
            state.shut[port.index()] = shut;
        }
    }

    pub(crate) fn count_write(&self) {
        self.writes.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    pub(crate) fn carry(&self, channels: &[f64], hosts: &[[f64; 2]]) {
        let mut state = self.state();
        assert_eq!(channels.len(), state.rates_bps.len(), "a rate for every channel");
        assert_eq!(hosts.len(), state.host_rates_bps.len(), "rates for every host");
        state.count();
        state.rates_bps.copy_from_slice(channels);
        state.host_rates_bps.copy_from_slice(hosts);
    }

    /// The state of consecutive ports.
    pub(crate) fn plugs(&self, ports: impl Iterator<Item = PortId>) -> Vec<Plug> {
        let mut state = self.state();
        state.count();
        let plug = |port: PortId| match self.topology.port(port).attachment {
            Attachment::Link(link) => {
                let (forward, backward) = (ChannelId::forward(link), ChannelId::backward(link));
                let out = if self.topology.tail_port(forward) == port { forward } else { backward };
                let into = if out == forward { backward } else { forward };
                let far = self.topology.head_port(out);
                let is_alive =
                    |end: PortId| !state.shut[end.index()] && !state.off.contains(&self.topology.port(end).switch);
                let octets = [into, out].map(|channel| state.octets[channel.index()] as u64);
                let carries = !state.cut.contains(&link) && is_alive(port) && is_alive(far);
                Plug { carries, far: Some(far), octets }
            }
            Attachment::Host(host) => {
                let octets = state.host_octets[host.index()].map(|octets| octets as u64);
                Plug { carries: !state.shut[port.index()], far: None, octets }
            }
            Attachment::Nothing | Attachment::Member(_) => Plug::default(),
        };
        ports.map(plug).collect()
    }
}

impl State {
    /// Adds what has been carried since it was last counted.
    fn count(&mut self) {
        let now = Instant::now();
        let seconds = now.duration_since(self.counted_at).as_secs_f64();
        for (octets, rate_bps) in self.octets.iter_mut().zip(&self.rates_bps) {
            *octets += rate_bps * seconds / 8.0;
        }
        let hosts = self.host_octets.iter_mut().flatten().zip(self.host_rates_bps.iter().flatten());
        for (octets, rate_bps) in hosts {
            *octets += rate_bps * seconds / 8.0;
        }
        self.counted_at = now;
    }
}
