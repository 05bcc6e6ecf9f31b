//! Confirmation by link state: a cable without LLDP is taken down at one end after the other, and the far end must follow.

use std::{
    thread,
    time::{Duration, Instant},
};

use fabric::{Admin, LinkId, PortId, Topology};
use rollout::survey::{Probed, Trial, Unconfirmed, followed, judge_probe};
use switch_model::{driver::Fault, sight::PortState};

use super::{
    DeployEvent, Events, Route,
    survey::{Looked, carries_management},
};
use crate::{
    CancellationToken,
    parallel::at_once,
    reached::{Connected, Reached},
};

/// How long a link may take to go down, or to come up again.
const LINK_PATIENCE: Duration = Duration::from_secs(5);
/// Interval between readings of the link meanwhile.
const LOOK: Duration = Duration::from_millis(100);
/// Tries to bring a port up again on a switch that does not answer.
const OPENINGS_MAX: usize = 5;

/// The result of testing one cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTrial {
    /// Not tried, since it was asked to stop.
    Stopped,
    /// Not tried: it is down anyway.
    Dead,
    /// Not tried: management goes over it.
    CarriesManagement,
    /// Tried at one or both ends.
    Done(Probed),
    /// The switch of this port failed.
    Failed(PortId, Fault),
}

/// Tries the cables that would stay shut, one after the other, and tells of each what was found. Those that are confirmed, or
/// elsewhere, are so in the survey afterwards.
pub(super) fn confirm(
    looked: &mut Looked,
    route: &Route,
    devices: &mut [Connected],
    token: &CancellationToken,
    parallel: usize,
    events: &mut Events<'_>,
) {
    let topology = &route.topology;
    for link in looked.shut.clone() {
        if token.is_cancelled() {
            events(DeployEvent::Tried { topology, link, trial: &LinkTrial::Stopped });
            break;
        }
        let dead = matches!(looked.survey.unconfirmed.get(&link), Some(Unconfirmed::Down(_) | Unconfirmed::Shut(_)));
        let trial = if dead {
            LinkTrial::Dead
        } else if carries_management(route, &[link].into()).is_some() {
            LinkTrial::CarriesManagement
        } else {
            match probe(topology, link, devices, parallel, events) {
                Ok(probed) => LinkTrial::Done(probed),
                Err((port, fault)) => LinkTrial::Failed(port, fault),
            }
        };
        events(DeployEvent::Tried { topology, link, trial: &trial });
        match trial {
            LinkTrial::Done(Probed::Confirmed) => {
                looked.survey.unconfirmed.remove(&link);
                looked.survey.confirmed.insert(link);
            }
            LinkTrial::Done(Probed::Elsewhere(misfit)) => {
                looked.survey.unconfirmed.remove(&link);
                looked.survey.misfits.push(misfit);
            }
            _ => {}
        }
    }
}

/// Tries one cable at both ends. Whatever happens, the ends are opened again.
fn probe(
    topology: &Topology,
    link: LinkId,
    devices: &mut [Connected],
    parallel: usize,
    events: &mut Events<'_>,
) -> Result<Probed, (PortId, Fault)> {
    let (a, b) = (topology.link(link).a, topology.link(link).b);
    let mut trials = Vec::new();
    for (near, far) in [(a, b), (b, a)] {
        let before = states(devices, parallel);
        set(topology, devices, near, Admin::Down).map_err(|fault| (near, fault))?;
        let fell = await_state(topology, devices, far, PortState::Down);
        let during = states(devices, parallel);
        open_again(topology, devices, near, events).map_err(|fault| (near, fault))?;
        fell.map_err(|fault| (far, fault))?;
        for port in [near, far] {
            await_state(topology, devices, port, PortState::Up).map_err(|fault| (port, fault))?;
        }
        trials.push(Trial { shut: near, followed: followed(topology, near, &before, &during) });
        if trials.last().is_some_and(|trial| trial.followed != [far]) {
            break;
        }
    }
    Ok(judge_probe(topology, link, &trials))
}

/// Brings a port up that was taken down, with retries.
fn open_again(
    topology: &Topology,
    devices: &mut [Connected],
    port: PortId,
    events: &mut Events<'_>,
) -> Result<(), Fault> {
    let mut done = set(topology, devices, port, Admin::Up);
    for _ in 1..OPENINGS_MAX {
        if done.is_ok() {
            return Ok(());
        }
        done = set(topology, devices, port, Admin::Up);
    }
    if done.is_err() {
        events(DeployEvent::LeftShut { topology, port });
    }
    done
}

fn set(topology: &Topology, devices: &mut [Connected], port: PortId, admin: Admin) -> Result<(), Fault> {
    let (switch, slot) = place(topology, port);
    match &mut devices[switch] {
        Ok(Reached::Snmp(device)) => device.set_admin_status(switch_model::Slot::new(slot), admin),
        Ok(Reached::CommandLine(_)) => {
            Err(Fault::Refused("is managed over SSH, and ports are tried over SNMP alone".to_owned()))
        }
        Err(fault) => Err(fault.clone()),
    }
}

/// Waits until a port is in a state, as long as a link may take.
fn await_state(topology: &Topology, devices: &mut [Connected], port: PortId, wanted: PortState) -> Result<(), Fault> {
    let (switch, slot) = place(topology, port);
    let until = Instant::now() + LINK_PATIENCE;
    loop {
        let Ok(Reached::Snmp(device)) = &mut devices[switch] else { return Ok(()) };
        if device.port_states()?.get(slot) == Some(&wanted) || Instant::now() >= until {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
}

/// `states[switch]`: of the ports in the topology's order.
fn states(devices: &mut [Connected], parallel: usize) -> Vec<Option<Vec<PortState>>> {
    at_once(devices.iter_mut().collect(), parallel, |device: &mut Connected| match device {
        Ok(Reached::Snmp(device)) => device.port_states().ok(),
        Ok(Reached::CommandLine(_)) | Err(_) => None,
    })
}

fn place(topology: &Topology, port: PortId) -> (usize, usize) {
    let switch = topology.port(port).switch;
    (switch.index(), port.index() - topology.switch_ports(switch).start)
}
