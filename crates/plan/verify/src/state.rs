//! What switches and hosts are told, in the form in which frames meet it.
//!
//! A switch treats a frame in three moves (IEEE 802.1Q-2022, clause 8.6):
//! ```text
//!            enter                 lookup                        leave
//!   tag or PVID ─▶ VLAN   (VLAN, MAC) ─▶ port, or all     member? tagged or not
//!   member of it?         other ports of the VLAN         far end up?
//!   else lost             if there is no entry            else lost
//! ```
//! Cabling decides where a port leads, whatever role its state gives it.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use fabric::{
    Admin, Assignment, Attachment, DeviceIntent, FdbEntry, FdbRun, FloodKind, FlowControl, FlowControlMode, HostId,
    HostTagging, Mac, Plan, PortId, PortIntent, SwitchId, Topology, Traffic, VlanId, VlanSet,
};

use crate::receiver::Receiver;

/// Why a frame goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// The port is shut, or its state is missing.
    Shut,
    /// The port that the entry names is no member of the VLAN.
    NotMember,
    /// Nothing is plugged in.
    NoCable,
    /// The port at the other end of the cable is shut.
    FarEndShut,
    /// The frame comes in without a tag, and the port has no PVID.
    NoPvid,
    /// The frame comes in on a port that is no member of its VLAN.
    IngressFilter,
    /// The entry points back to where the frame came from.
    BackToIngress,
    /// The frame reaches, with a tag, a host that knows nothing of VLANs.
    TaggedAtPlainHost,
    /// The host has no VLAN for this receiver.
    NotAssigned,
    /// The switch has no entry for the frame, and no port lets such frames out.
    Blocked,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Shut => "the port is shut",
            Self::NotMember => "the port is no member of the VLAN",
            Self::NoCable => "nothing is plugged in",
            Self::FarEndShut => "the port at the other end of the cable is shut",
            Self::NoPvid => "the port has no PVID for frames without a tag",
            Self::IngressFilter => "the ingress filter drops it, since the port is no member of the VLAN",
            Self::BackToIngress => "its entry points back to where it came from",
            Self::TaggedAtPlainHost => "it has a tag, and the host knows nothing of VLANs",
            Self::NotAssigned => "the assignment names no VLAN for it",
            Self::Blocked => "the switch has no entry for it, and drops such frames",
        })
    }
}

/// What becomes of a frame of some VLAN that is sent out of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// It is lost at this port, here or at the other end of the cable.
    Lost(PortId, Loss),
    /// It reaches a host that can read it.
    Host(HostId),
    /// It enters the next switch, in the VLAN that it has there.
    Switch { ingress: PortId, vlan: VlanId },
}

/// The state of the whole fabric.
pub(crate) struct FabricState<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) topology: &'a Topology,
    pub(crate) tagging: HostTagging,
    /// What hosts send to each other; all-to-all if the plan's traffic is for other hosts.
    pub(crate) traffic: Cow<'a, Traffic>,
    /// Station addresses of the hosts before each.
    pub(crate) macs_before: Vec<usize>,
    /// By switch: its state, if there is any.
    pub(crate) devices: Vec<Option<&'a DeviceIntent>>,
    /// By switch: usable runs, ascending by VLAN and host, disjoint; with what it has learned where it learns.
    pub(crate) fdb: Vec<Cow<'a, [FdbRun]>>,
    /// Every VLAN that some port is a member of.
    pub(crate) vlans: VlanSet,
    /// By VLAN: the lane of its tree, as the plan states it.
    pub(crate) lanes: BTreeMap<VlanId, u8>,
    /// By VLAN: its priority class, as the switches are told it.
    pub(crate) classes: BTreeMap<VlanId, u8>,
    /// The hosts' addresses, for entries listed as foreign that are not.
    pub(crate) host_by_mac: BTreeMap<Mac, HostId>,
    /// By port.
    pub(crate) ports: Vec<Option<&'a PortIntent>>,
    /// The hosts' tagging table, if it is whole.
    pub(crate) assignment: Option<&'a Assignment<VlanId>>,
}

impl<'a> FabricState<'a> {
    /// A port's state.
    pub(crate) fn port(&self, port: PortId) -> Option<&'a PortIntent> {
        self.ports[port.index()]
    }

    /// A port's state, if it is in service.
    pub(crate) fn port_up(&self, port: PortId) -> Option<&'a PortIntent> {
        self.ports[port.index()].filter(|intent| intent.admin == Admin::Up)
    }

    /// The port at the other end of a link's cable.
    pub(crate) fn peer(&self, port: PortId) -> Option<PortId> {
        match self.topology.port(port).attachment {
            Attachment::Link(link) => {
                let link = self.topology.link(link);
                Some(if link.a == port { link.b } else { link.a })
            }
            Attachment::Nothing | Attachment::Host(_) | Attachment::Member(_) => None,
        }
    }

    /// The VLAN of a frame that comes in on `port` with this tag.
    pub(crate) fn enter(&self, port: PortId, tag: Option<VlanId>) -> Result<VlanId, Loss> {
        let intent = self.port_up(port).ok_or(Loss::Shut)?;
        let vlan = tag.or(intent.pvid).ok_or(Loss::NoPvid)?;
        if intent.is_member(vlan) { Ok(vlan) } else { Err(Loss::IngressFilter) }
    }

    /// Sends a frame of `vlan` out of `port`. A port that is a tagged and an untagged member sends no tag.
    pub(crate) fn leave(&self, port: PortId, vlan: VlanId) -> Hop {
        let Some(intent) = self.port_up(port) else { return Hop::Lost(port, Loss::Shut) };
        if !intent.is_member(vlan) {
            return Hop::Lost(port, Loss::NotMember);
        }
        let tag = (!intent.untagged.contains(vlan)).then_some(vlan);
        match self.topology.port(port).attachment {
            Attachment::Nothing | Attachment::Member(_) => Hop::Lost(port, Loss::NoCable),
            Attachment::Host(_) if tag.is_some() && self.tagging == HostTagging::BySwitch => {
                Hop::Lost(port, Loss::TaggedAtPlainHost)
            }
            Attachment::Host(host) => Hop::Host(host),
            Attachment::Link(_) => {
                let far = self.peer(port).expect("a link has two ends");
                match self.enter(far, tag) {
                    Ok(vlan) => Hop::Switch { ingress: far, vlan },
                    Err(Loss::Shut) => Hop::Lost(port, Loss::FarEndShut),
                    Err(loss) => Hop::Lost(far, loss),
                }
            }
        }
    }

    /// Whether frames of this kind for which the switch has no entry leave by a port, in whatever VLANs it is.
    pub(crate) fn lets_out(&self, port: PortId, kind: FloodKind) -> bool {
        self.port_up(port).is_some_and(|intent| !intent.blocked.contains(kind))
    }

    /// Whether the switch drops frames of this kind in a VLAN: no port that is up and a member lets them out.
    pub(crate) fn drops(&self, switch: SwitchId, vlan: VlanId, kind: FloodKind) -> bool {
        let members = self.topology.port_ids(switch).filter(|port| self.port(*port).is_some_and(|p| p.is_member(vlan)));
        let mut up = members.filter(|port| self.port_up(*port).is_some()).peekable();
        up.peek().is_some() && !up.any(|port| self.lets_out(port, kind))
    }

    /// Whether no switch sends frames of this kind on: to another switch, or in a fabric without links to a host.
    pub(crate) fn is_dropped(&self, kind: FloodKind) -> bool {
        let up =
            |ports: Vec<PortId>| ports.into_iter().filter(|port| self.port_up(*port).is_some()).collect::<Vec<_>>();
        let mut ports = up(self.topology.links().iter().flat_map(|link| [link.a, link.b]).collect());
        if self.topology.links().is_empty() {
            ports = up(self.topology.hosts().iter().map(|host| host.port).collect());
        }
        !ports.is_empty() && !ports.into_iter().any(|port| self.lets_out(port, kind))
    }

    /// The VLAN in which a host's frame for `receiver` enters its switch.
    pub(crate) fn send(&self, source: HostId, receiver: Receiver) -> Result<VlanId, Loss> {
        let tag = match self.tagging {
            HostTagging::BySwitch => None,
            HostTagging::ByHost => {
                let assignment = self.assignment.ok_or(Loss::NotAssigned)?;
                Some(match receiver {
                    Receiver::Host(destination) => assignment.unicast(source, destination),
                    Receiver::Everybody | Receiver::Nobody => assignment.broadcast(source),
                })
            }
        };
        self.enter(self.topology.host(source).port, tag)
    }

    /// The entry that a frame of `vlan` for `receiver` meets on `switch`. Cost: O(log entries).
    pub(crate) fn lookup(&self, switch: SwitchId, vlan: VlanId, receiver: Receiver) -> Option<PortId> {
        match receiver {
            Receiver::Host(host) => {
                let runs = &self.fdb[switch.index()];
                let at = runs.partition_point(|run| (run.vlan, run.last) < (vlan, host));
                runs.get(at).filter(|run| run.vlan == vlan && run.first <= host).map(|run| run.port)
            }
            Receiver::Everybody => self
                .foreign(switch)
                .iter()
                .find(|entry| entry.vlan == vlan && entry.mac == Mac::BROADCAST)
                .map(|entry| entry.port)
                .filter(|port| self.is_port_of(switch, *port)),
            Receiver::Nobody => None,
        }
    }

    /// Static entries of a switch for addresses that no host has.
    pub(crate) fn foreign(&self, switch: SwitchId) -> &'a [FdbEntry] {
        self.devices[switch.index()].map_or(&[], |device| &device.foreign)
    }

    /// Whether a port exists and is on this switch.
    pub(crate) fn is_port_of(&self, switch: SwitchId, port: PortId) -> bool {
        self.topology.switch_ports(switch).contains(&port.index())
    }

    /// The lane that frames of a VLAN travel in, by the switches' state: one for all unless priority flow control keeps
    /// classes apart.
    pub(crate) fn lane(&self, vlan: VlanId) -> u8 {
        match self.plan.policy.flow_control {
            FlowControl::None | FlowControl::Pause => 0,
            FlowControl::Pfc(classes) => {
                self.classes.get(&vlan).map_or(0, |class| (*class).min(classes.saturating_sub(1)))
            }
        }
    }

    /// The flow control of every port that carries data, by the plan's policy.
    pub(crate) fn flow_control_mode(&self) -> FlowControlMode {
        match self.plan.policy.flow_control {
            FlowControl::None => FlowControlMode::Off,
            FlowControl::Pause => FlowControlMode::Pause,
            FlowControl::Pfc(lanes) => FlowControlMode::Pfc { lanes },
        }
    }

    /// The number of addresses of a run's hosts: none if its ends are swapped, and no more than there are.
    pub(crate) fn run_len(&self, run: &FdbRun) -> usize {
        let before = |host: usize| self.macs_before[host.min(self.topology.hosts().len())];
        before(run.last.index() + 1).saturating_sub(before(run.first.index()))
    }

    /// The number of static entries of a device.
    pub(crate) fn entry_count(&self, device: &DeviceIntent) -> usize {
        self.entry_count_of(device, |_| true)
    }

    /// The most static entries that a device may come to hold: those that it has, and those of addresses that may yet be learned.
    pub(crate) fn entry_room(&self, device: &DeviceIntent) -> usize {
        let hosts = self.topology.hosts();
        let learning: Vec<(usize, usize)> =
            hosts.iter().enumerate().filter_map(|(at, host)| Some((at, host.learned_max?))).collect();
        let toward = |run: &FdbRun| -> usize {
            let within = |at: usize| run.first.index() <= at && at <= run.last.index();
            learning.iter().filter(|(at, _)| within(*at)).map(|(_, most)| most).sum()
        };
        self.entry_count(device) + device.fdb.iter().map(toward).sum::<usize>()
    }

    /// The number of static entries of a device in some VLANs.
    pub(crate) fn entry_count_of(&self, device: &DeviceIntent, counts: impl Fn(VlanId) -> bool) -> usize {
        let own: usize = device.fdb.iter().filter(|run| counts(run.vlan)).map(|run| self.run_len(run)).sum();
        own + device.foreign.iter().filter(|entry| counts(entry.vlan)).count()
    }

    /// A host's name.
    pub(crate) fn host_name(&self, host: HostId) -> &'a str {
        &self.topology.host(host).name
    }

    /// A switch's name.
    pub(crate) fn switch_name(&self, switch: SwitchId) -> &'a str {
        &self.topology.switch(switch).name
    }
}
