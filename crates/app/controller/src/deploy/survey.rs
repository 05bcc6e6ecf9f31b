//! Reads switches and cables before anything is written, and decides which cables stay down.
//!
//! ```text
//!   misfits ─────────────────────────────────▶ refuse, and say which plug to move
//!   unconfirmed cables ─ trusted ────────────▶ used
//!                      ├ down already ───────▶ used, and checked when they come up
//!                      └ others ─ judge, with them down ─ fit ─▶ they stay down
//!                                                       └ unfit ▶ refuse, and say how to go on
//! ```

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Admin, LinkId, PortId, Severity, SwitchId, Topology};
use rollout::{
    deploy::{Cables, Management, Way},
    survey::{Survey, Unconfirmed, survey},
};
use switch_model::{SwitchConfig, observe::SmallMtu, sight::SurveyReply, station::Station};

use super::{DeployRequest, Route};
use crate::{
    Error, Fabric,
    reached::{Connected, each_device},
};

/// The result of a survey, and what follows from it for each cable.
#[derive(Clone, Debug)]
pub struct Looked {
    /// What the survey found.
    pub survey: Survey,
    /// `stations[switch]`: what the switch said of itself; an empty one where it said nothing.
    stations: Vec<Station>,
    /// Cables that the request trusts.
    named: BTreeSet<LinkId>,
    /// Unconfirmed cables that the request trusts.
    pub trusted: BTreeSet<LinkId>,
    /// Unconfirmed cables that are administratively down already: they are checked when they come up.
    pub awaited: BTreeSet<LinkId>,
    /// Unconfirmed cables that stay administratively down.
    pub shut: BTreeSet<LinkId>,
    /// Unconfirmed cables that are in service, and stay so through a change under traffic.
    pub kept: BTreeSet<LinkId>,
    /// The judge's findings on the plan without the cables that stay down.
    pub unfit: Option<String>,
    /// Ports whose MTU is smaller than the plan needs.
    pub small_mtus: Vec<SmallMtu>,
    /// Whether a switch did not answer, so that nothing is known of its cables.
    pub partial: bool,
}

impl Looked {
    /// Surveys every switch that answers; one that cannot be surveyed is one that does not answer.
    ///
    /// # Errors
    /// [`Error::Request`], if the request names switches or cables that the plan does not have.
    pub(super) fn new(
        request: &DeployRequest<'_>,
        route: &Route,
        fabric: &Fabric<'_>,
        devices: &mut [Connected],
    ) -> Result<Self, Error> {
        let topology = &route.topology;
        let replaced = switches(topology, request.replaced)?;
        let replies: Vec<Option<SurveyReply>> =
            each_device(devices, fabric.parallel(), |at, device| fabric.survey(SwitchId::new(at), device));
        let survey = survey(topology, &replies, &replaced);
        let partial = devices.iter().any(Result::is_err);
        let stations = replies.into_iter().map(|reply| reply.map(|reply| reply.station).unwrap_or_default());
        let mut looked = Self {
            survey,
            stations: stations.collect(),
            named: links(topology, request.trusted)?,
            trusted: BTreeSet::new(),
            awaited: BTreeSet::new(),
            shut: BTreeSet::new(),
            kept: BTreeSet::new(),
            unfit: None,
            small_mtus: Vec::new(),
            partial,
        };
        looked.decide(route);
        Ok(looked)
    }

    /// Cables that must be seen as ports come up: those confirmed, and those that only their ports' being down hides.
    pub(super) fn cables(&self, topology: &Topology) -> Cables {
        let links = self.survey.confirmed.union(&self.awaited).copied();
        Cables::new(topology, self.stations.clone(), links)
    }

    /// Sorts unconfirmed cables by what becomes of them, once more after some have been confirmed.
    pub(super) fn decide(&mut self, route: &Route) {
        for set in [&mut self.trusted, &mut self.awaited, &mut self.shut, &mut self.kept] {
            set.clear();
        }
        for (link, why) in &self.survey.unconfirmed {
            let place = if !used(route, *link) {
                continue;
            } else if self.named.contains(link) {
                &mut self.trusted
            } else if matches!(why, Unconfirmed::Shut(_)) {
                &mut self.awaited
            } else if in_service(route, *link) {
                &mut self.kept
            } else {
                &mut self.shut
            };
            place.insert(*link);
        }
        self.unfit = None;
        if !self.shut.is_empty() {
            self.unfit = match &route.way {
                Way::Undo => None,
                Way::Live { .. } => Some("a change under traffic opens them without shutting anything".to_owned()),
                Way::Drained => carries_management(route, &self.shut).or_else(|| judge(route, &self.shut)),
            };
        }
    }

    /// Whether nothing must be written: the way back goes on where only cables are elsewhere, since it opens nothing that was
    /// shut.
    pub fn refuses(&self, way: &Way) -> bool {
        match way {
            Way::Undo => self.survey.identity_misfits().next().is_some(),
            Way::Drained | Way::Live { .. } => {
                !self.survey.misfits.is_empty() || (self.unfit.is_some() && !self.partial)
            }
        }
    }

    /// Sets the ports of cables that stay down to administratively down in every state of the deployment.
    pub(super) fn shut_in(&self, route: &mut Route) {
        if self.partial || !matches!(route.way, Way::Drained) {
            return;
        }
        for (switch, slot) in ends(&route.topology, &self.shut) {
            route.goals[switch.index()].ports[slot].admin = Admin::Down;
        }
    }
}

/// The switches of these names.
fn switches(topology: &Topology, names: &[String]) -> Result<BTreeSet<SwitchId>, Error> {
    let find = |name: &String| {
        let known = || topology.switches().iter().map(|switch| switch.name.as_str()).take(20).collect::<Vec<_>>();
        topology.find_switch(name).ok_or_else(|| {
            Error::Request(format!("--replaced {name}: the plan has no such switch; it has {}", known().join(", ")))
        })
    };
    names.iter().map(find).collect()
}

/// The cables that these words name: `sw1:p1--sw2:p2`, one end, or `all`.
fn links(topology: &Topology, names: &[String]) -> Result<BTreeSet<LinkId>, Error> {
    if names.iter().any(|name| name == "all") {
        return Ok(topology.link_ids().collect());
    }
    let mut known: BTreeMap<String, LinkId> = BTreeMap::new();
    for id in topology.link_ids() {
        let link = topology.link(id);
        let (a, b) = (topology.port_label(link.a), topology.port_label(link.b));
        known.extend([(format!("{a}--{b}"), id), (format!("{b}--{a}"), id), (a, id), (b, id)]);
    }
    let find = |name: &String| {
        known.get(&name.replace(" -- ", "--")).copied().ok_or_else(|| {
            Error::Request(format!(
                "--trust-cabling {name}: the plan has no such cable; write sw1:p1--sw2:p2, one end of it, or all"
            ))
        })
    };
    names.iter().map(find).collect()
}

/// Whether the deployment would bring a cable up.
fn used(route: &Route, link: LinkId) -> bool {
    ends(&route.topology, &BTreeSet::from([link]))
        .iter()
        .all(|(switch, slot)| route.goals[switch.index()].ports[*slot].admin == Admin::Up)
}

/// Whether a cable is up at the start of a change under traffic.
fn in_service(route: &Route, link: LinkId) -> bool {
    let Way::Live { start, .. } = &route.way else { return false };
    ends(&route.topology, &BTreeSet::from([link]))
        .iter()
        .all(|(switch, slot)| start[switch.index()].as_ref().is_some_and(|start| start.ports[*slot].admin == Admin::Up))
}

/// The ends of cables, as switches and positions of their ports.
fn ends(topology: &Topology, links: &BTreeSet<LinkId>) -> Vec<(SwitchId, usize)> {
    let place = |port: PortId| {
        let switch = topology.port(port).switch;
        (switch, port.index() - topology.switch_ports(switch).start)
    };
    links.iter().flat_map(|link| [topology.link(*link).a, topology.link(*link).b]).map(place).collect()
}

/// One of these cables that carries management frames, so that it cannot stay down.
pub(super) fn carries_management(route: &Route, links: &BTreeSet<LinkId>) -> Option<String> {
    let Management::InBand { ports, .. } = &route.management else { return None };
    let carries = |link: &&LinkId| {
        let ends = ends(&route.topology, &BTreeSet::from([**link]));
        ends.iter().all(|(switch, slot)| ports[switch.index()].contains_key(&switch_model::Slot::new(*slot)))
    };
    let link = links.iter().find(carries)?;
    Some(format!("management goes over {}", route.topology.link_label(*link)))
}

/// The judge's report on the plan with switches that hold their goals, and these cables down.
fn judge(route: &Route, shut: &BTreeSet<LinkId>) -> Option<String> {
    let mut goals: Vec<SwitchConfig> = route.goals.clone();
    for (switch, slot) in ends(&route.topology, shut) {
        goals[switch.index()].ports[slot].admin = Admin::Down;
    }
    let report = verify::check(&route.plan.as_held(&goals));
    let fatal = report.findings().iter().find(|finding| finding.severity == Severity::Fatal);
    fatal.map(|finding| format!("{}: {}", finding.subject, finding.message))
}
