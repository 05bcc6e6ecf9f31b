//! `--confirm-by-link-state`: cables without LLDP are shut at one end after the other, and the far end must follow.

use std::{
    thread,
    time::{Duration, Instant},
};

use fabric::{Admin, LinkId, PortId, Topology};
use rollout::survey::{Probed, Trial, Unconfirmed, followed, judge_probe};
use switch_model::{driver::Fault, sight::PortState};

use super::{
    super::{
        controller::{self, Connected, Reached},
        interrupt::Interrupt,
    },
    route::Route,
    survey::{Looked, carries_management},
};

/// How long a link may take to go down, or to come up again.
const LINK_PATIENCE: Duration = Duration::from_secs(5);
/// How far apart it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(100);
/// How often a port is told to open again that does not answer.
const OPENINGS_MAX: usize = 5;

/// Tries the cables that would stay shut, one after the other, and says of each what was found. Those that are confirmed, or
/// elsewhere, are so in the survey afterwards.
pub(super) fn confirm(
    looked: &mut Looked,
    route: &Route,
    devices: &mut [Connected],
    interrupt: &Interrupt,
    parallel: usize,
) -> Vec<String> {
    let topology = &route.topology;
    let mut lines = Vec::new();
    for link in looked.shut.clone() {
        let label = topology.link_label(link);
        if interrupt.is_pressed() {
            lines.push(format!("{label}: not tried, since it was asked to stop"));
            break;
        }
        let dead = matches!(looked.survey.unconfirmed.get(&link), Some(Unconfirmed::Down(_) | Unconfirmed::Shut(_)));
        if dead || carries_management(route, &[link].into()).is_some() {
            lines.push(format!(
                "{label}: not tried, since {}",
                if dead { "it is down" } else { "management goes over it" }
            ));
            continue;
        }
        match probe(topology, link, devices, parallel) {
            Ok(probed) => {
                lines.push(format!("{label}: {}", probed.sentence(topology)));
                match probed {
                    Probed::Confirmed => {
                        looked.survey.unconfirmed.remove(&link);
                        looked.survey.confirmed.insert(link);
                    }
                    Probed::Elsewhere(misfit) => {
                        looked.survey.unconfirmed.remove(&link);
                        looked.survey.misfits.push(misfit);
                    }
                    Probed::NothingFollowed(_) | Probed::SeveralFollowed(..) => {}
                }
            }
            Err((port, fault)) => lines.push(format!("{label}: not confirmed: {} {fault}", topology.port_label(port))),
        }
    }
    lines
}

/// Tries one cable at both ends. Whatever happens, the ends are opened again.
fn probe(
    topology: &Topology,
    link: LinkId,
    devices: &mut [Connected],
    parallel: usize,
) -> Result<Probed, (PortId, Fault)> {
    let (a, b) = (topology.link(link).a, topology.link(link).b);
    let mut trials = Vec::new();
    for (near, far) in [(a, b), (b, a)] {
        let before = states(devices, parallel);
        set(topology, devices, near, Admin::Down).map_err(|fault| (near, fault))?;
        let fell = await_state(topology, devices, far, PortState::Down);
        let during = states(devices, parallel);
        open_again(topology, devices, near).map_err(|fault| (near, fault))?;
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

/// Opens a port that was shut, more than once if need be.
fn open_again(topology: &Topology, devices: &mut [Connected], port: PortId) -> Result<(), Fault> {
    let mut done = set(topology, devices, port, Admin::Up);
    for _ in 1..OPENINGS_MAX {
        if done.is_ok() {
            return Ok(());
        }
        done = set(topology, devices, port, Admin::Up);
    }
    if done.is_err() {
        eprintln!(
            "espalier: {} was shut to try its cable, and does not open again; open it by hand",
            topology.port_label(port)
        );
    }
    done
}

fn set(topology: &Topology, devices: &mut [Connected], port: PortId, admin: Admin) -> Result<(), Fault> {
    let (switch, slot) = place(topology, port);
    match &mut devices[switch] {
        Ok(Reached::Snmp(device)) => device.set_admin_status(switch_model::Slot::new(slot), admin),
        Ok(Reached::CommandLine(_)) => {
            Err(Fault::Refused("is reached by its command line, which shuts no single port".to_owned()))
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
    controller::at_once(devices.iter_mut().collect(), parallel, |device: &mut Connected| match device {
        Ok(Reached::Snmp(device)) => device.port_states().ok(),
        Ok(Reached::CommandLine(_)) | Err(_) => None,
    })
}

fn place(topology: &Topology, port: PortId) -> (usize, usize) {
    let switch = topology.port(port).switch;
    (switch.index(), port.index() - topology.switch_ports(switch).start)
}
