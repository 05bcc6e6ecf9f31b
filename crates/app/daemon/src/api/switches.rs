//! Requests that the switches answer: the fabric polled anew, what a switch holds, whom switches hear.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, Query, State},
    http::StatusCode,
};
use controller::{Asked, CancellationToken, Discovery, Fabric, Observation, discover, observe_switch};
use fabric::Topology;
use serde::Deserialize;
use switch_model::format::{StationRecord, write_observed};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::IntoParams;

use super::{
    callers::{Caller, Role},
    shared::{Refusal, Reply, Shared, blocking},
};
use crate::{
    documents::{AskedSwitch, DiscoveredSwitch, DiscoveryRequest, ErrorDocument, FabricStatus, SwitchObservation},
    manager::{Manager, Polled, Refused},
};

/// How long a poll is waited for.
const POLL_MAX: Duration = Duration::from_secs(30);
/// Switches of one request.
const SWITCHES_MAX: usize = 4096;

/// Which poll.
#[derive(Deserialize, IntoParams)]
pub(super) struct Fresh {
    /// Whether the switches are polled now; otherwise the answer is of the last poll.
    #[serde(default)]
    fresh: bool,
}

/// What `espalier status` prints, of the last poll or of one that is made now.
#[utoipa::path(get, path = "/v1/fabric", params(Fresh),
    responses((status = 200, body = FabricStatus), (status = 409, body = ErrorDocument)))]
pub(super) async fn fabric_status(
    _: Caller,
    State(shared): State<Arc<Shared>>,
    Query(Fresh { fresh }): Query<Fresh>,
) -> Reply<FabricStatus> {
    let polled = if fresh { Polled::Now { at_most: POLL_MAX } } else { Polled::Last };
    let _turn = if fresh { Some(turn(&shared).await?) } else { None };
    let status = blocking(shared, move |manager| manager.fabric_status(polled)).await?;
    Ok(Json(FabricStatus::clone(&status)))
}

/// What a switch of the plan holds, read now.
#[utoipa::path(get, path = "/v1/switches/{switch}/observation", params(("switch" = String, Path, description = "Which switch")),
    responses((status = 200, body = SwitchObservation), (status = 404, body = ErrorDocument)))]
pub(super) async fn observation(
    _: Caller,
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
) -> Reply<SwitchObservation> {
    let _turn = turn(&shared).await?;
    let reach = (shared.reach)();
    let read = move |manager: &Manager| {
        let plan = manager.held_plan().ok_or_else(no_plan)?;
        let switch = plan.topology.find_switch(&name);
        let switch = switch.ok_or_else(|| Refused::NotFound(format!("the plan has no switch {name}")))?;
        let cancel = CancellationToken::default().for_requests();
        let fabric = Fabric::of(&plan, &reach.keyring, &reach.options, cancel);
        let fabric = fabric.map_err(|error| Refused::Conflict(error.words()))?;
        Ok(match observe_switch(&plan, &fabric, switch) {
            Observation::Held(observed) => SwitchObservation {
                switch: name,
                observation: serde_json::from_str(&write_observed(&observed)).ok(),
                fault: None,
            },
            Observation::Failed(fault) => SwitchObservation { switch: name, observation: None, fault: Some(fault) },
            Observation::NotAsked => unreachable!("nobody asks for an end"),
        })
    };
    Ok(Json(blocking(shared, read).await?))
}

/// Asks switches who they are and whom they hear. Those of the plan; approvers, who can propose a plan with any switch, may name any
/// address.
#[utoipa::path(post, path = "/v1/discovery", request_body = DiscoveryRequest,
    responses((status = 200, body = Vec<DiscoveredSwitch>), (status = 403, body = ErrorDocument)))]
pub(super) async fn discovery(
    caller: Caller,
    State(shared): State<Arc<Shared>>,
    Json(DiscoveryRequest { switches }): Json<DiscoveryRequest>,
) -> Reply<Vec<DiscoveredSwitch>> {
    if switches.len() > SWITCHES_MAX {
        let why = format!("a request names at most {SWITCHES_MAX} switches, not {}", switches.len());
        return Err(Refusal(StatusCode::BAD_REQUEST, why));
    }
    let plan = shared.manager.held_plan();
    if !switches.iter().all(|asked| plan.as_ref().is_some_and(|plan| is_of(&plan.topology, asked))) {
        caller.may(Role::Approver)?;
    }
    let _turn = turn(&shared).await?;
    let reach = (shared.reach)();
    let found = blocking(shared, move |_| {
        let asked = |AskedSwitch { address, name, ports }: AskedSwitch| Asked { address, name, ports };
        let asked: Vec<Asked> = switches.into_iter().map(asked).collect();
        let found = discover(&asked, (&reach.keyring, &reach.options), &CancellationToken::default());
        Ok(documents(found.expect("nobody asks for an end")))
    });
    Ok(Json(found.await?))
}

/// Whether this is a switch of the topology, by its address and, if it is given, its name. Credentials are looked up by the name, so that
/// no other switch's are sent there.
fn is_of(topology: &Topology, asked: &AskedSwitch) -> bool {
    topology
        .switches()
        .iter()
        .any(|switch| switch.mgmt == Some(asked.address) && asked.name.as_ref().is_none_or(|name| *name == switch.name))
}

fn documents(found: Discovery) -> Vec<DiscoveredSwitch> {
    let switches = found.switches.into_iter().map(|switch| DiscoveredSwitch {
        address: switch.address,
        station: serde_json::to_value(StationRecord::of(&switch.station, &switch.identity)).ok(),
        fault: None,
    });
    let failed = (found.failed.into_iter()).map(|(address, fault)| DiscoveredSwitch {
        address,
        station: None,
        fault: Some(fault),
    });
    switches.chain(failed).collect()
}

fn no_plan() -> Refused {
    Refused::Conflict("no plan has been deployed yet; espalierd propose PLAN".to_owned())
}

/// Waits for a turn to have switches asked.
async fn turn(shared: &Shared) -> Result<OwnedSemaphorePermit, Refusal> {
    let turn = Arc::clone(&shared.asking).acquire_owned().await;
    turn.map_err(|error| Refusal(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))
}
