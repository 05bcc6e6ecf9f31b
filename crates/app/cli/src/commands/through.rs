//! Verbs that ask espalierd instead of the switches.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result};
use api_client::{
    Ask, Endpoint, RemoteOptions,
    documents::{
        AskedSwitch, DiscoveredSwitch, DiscoveryRequest, FabricStatus, SwitchObservation, Target, TargetState,
    },
    encoded,
};
use controller::{Asked, Discovery, FoundSwitch, Observation, at_once};
use fabric::{
    Plan,
    format::plan::{ReadMode, plan_digest, read_plan},
};
use serde::de::DeserializeOwned;
use switch_model::format::{StationRecord, parse_observed};

use crate::{cli, failure::bad_input, files::read_plan_file};

/// A controller that is asked instead of the switches.
pub(super) struct Through {
    pub(super) endpoint: Endpoint,
}

impl Through {
    /// The controller that a command line names.
    ///
    /// # Errors
    /// Bad input: no URL, or files that cannot be read.
    pub(super) fn of(controller: &cli::Controller) -> Result<Option<Self>> {
        let endpoint = controller.url.as_deref().map(|url| endpoint(url, controller).map_err(bad_input));
        Ok(endpoint.transpose()?.map(|endpoint| Self { endpoint }))
    }

    /// The plan that the controller's switches hold. A plan that is given must be that one.
    ///
    /// # Errors
    /// Bad input if it is another; what the controller refuses.
    pub(super) fn plan(&self, given: Option<&Path>) -> Result<Plan> {
        let targets: Vec<Target> = self.document(Ask::get("/v1/targets"))?;
        let held = targets.iter().rev().find(|target| target.state == TargetState::Deployed);
        let held = held.ok_or_else(|| bad_input("the controller has deployed no plan yet; espalierd propose PLAN"))?;
        if let Some(path) = given {
            let plan = read_plan_file(path, ReadMode::Strict)?;
            if plan_digest(&plan)? != held.plan {
                return Err(bad_input(format!(
                    "{}: the controller's switches hold another plan, that of target {}; leave PLAN out",
                    path.display(),
                    held.number
                )));
            }
            return Ok(plan);
        }
        let mut text = Vec::new();
        let path = format!("/v1/plans/{}", held.plan);
        self.endpoint.ask(Ask::get(&path), &mut |part| text.extend_from_slice(part)).map_err(Error::msg)?;
        read_plan(&text, ReadMode::Strict).with_context(|| format!("the plan of target {}", held.number))
    }

    /// What `status` prints, of a poll that the controller makes now.
    ///
    /// # Errors
    /// What the controller refuses.
    pub(super) fn fabric_status(&self) -> Result<FabricStatus> {
        self.document(Ask::get("/v1/fabric?fresh=true"))
    }

    /// What every switch of a plan holds, `[switch]`.
    ///
    /// # Errors
    /// What the controller refuses.
    pub(super) fn observe(&self, plan: &Plan, parallel: usize) -> Result<Vec<Observation>> {
        let one = |name: &str| -> Result<Observation> {
            let path = format!("/v1/switches/{}/observation", encoded(name));
            let SwitchObservation { observation, fault, .. } = self.document(Ask::get(&path))?;
            Ok(match observation {
                Some(said) => Observation::Held(parse_observed(&said.to_string())?),
                None => Observation::Failed(fault.unwrap_or_default()),
            })
        };
        let names = plan.topology.switches().iter().map(|switch| switch.name.as_str()).collect();
        at_once(names, parallel, one).into_iter().collect()
    }

    /// Has switches asked whom they hear.
    ///
    /// # Errors
    /// What the controller refuses.
    pub(super) fn discover(&self, asked: &[Asked]) -> Result<Discovery> {
        let switches = asked.iter().cloned().map(|Asked { address, name, ports }| AskedSwitch { address, name, ports });
        let body = serde_json::to_vec(&DiscoveryRequest { switches: switches.collect() })?;
        let answers: Vec<DiscoveredSwitch> = self.document(Ask::post("/v1/discovery", body))?;
        let (mut switches, mut failed) = (Vec::new(), Vec::new());
        for DiscoveredSwitch { address, station, fault } in answers {
            match station {
                Some(said) => {
                    let (station, identity) = serde_json::from_value::<StationRecord>(said)?.parse()?;
                    switches.push(FoundSwitch { address, station, identity });
                }
                None => failed.push((address, fault.unwrap_or_default())),
            }
        }
        Ok(Discovery::new(switches, failed))
    }

    /// Asks for a document.
    ///
    /// # Errors
    /// What the controller refuses, or why it is not reached.
    pub(super) fn document<T: DeserializeOwned>(&self, ask: Ask<'_>) -> Result<T> {
        self.endpoint.document(ask).map_err(Error::msg)
    }
}

/// The plan that a command line names, which it must without a controller.
///
/// # Errors
/// Bad input.
pub(super) fn named(plan: Option<&Path>) -> Result<&Path> {
    plan.ok_or_else(|| {
        bad_input("name the plan that the switches should hold, or a controller: espalier --controller URL")
    })
}

/// A URL, or the path of a socket on this machine.
fn endpoint(url: &str, controller: &cli::Controller) -> Result<Endpoint, String> {
    if Path::new(url).is_absolute() {
        return Ok(Endpoint::Socket(PathBuf::from(url)));
    }
    let remote = RemoteOptions {
        controller: Some(url.to_owned()),
        token_file: controller.token_file.clone(),
        ca: controller.ca.clone(),
    };
    Endpoint::new(Path::new(api_client::SOCKET), &remote.or_environment(&|name| std::env::var(name).ok())?)
}
