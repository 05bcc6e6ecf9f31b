//! Heartbeats of hosts.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use fabric::{Mac, VlanId};

use super::{
    callers::{Caller, Role},
    shared::{Refusal, Shared, blocking},
};
use crate::{
    core::heartbeats::{Beat, Loss, Source},
    documents::{ErrorDocument, FailingPath, Heartbeat, HeartbeatSource, PathLoss, SentBytes, TestedPath},
};

/// Most bytes of a heartbeat.
pub(super) const LEN_MAX: usize = 4 << 20;
/// Most paths that fail, and destinations.
const PATHS_MAX: usize = 1 << 16;
const DESTINATIONS_MAX: usize = 4096;
/// The longest time to the next heartbeat, in seconds.
const EVERY_MAX_S: u64 = 3600;

/// Takes what a host says of its paths and traffic. Hosts and admins.
#[utoipa::path(post, path = "/v1/heartbeats", request_body = Heartbeat,
    responses((status = 204), (status = 400, body = ErrorDocument), (status = 404, body = ErrorDocument)))]
pub(super) async fn heartbeat(
    caller: Caller,
    State(shared): State<Arc<Shared>>,
    Json(heartbeat): Json<Heartbeat>,
) -> Result<StatusCode, Refusal> {
    if !matches!(caller.role, Role::Host | Role::Admin) {
        let why = format!("{} may not do this: it needs a host, or an admin", caller.name);
        return Err(Refusal(StatusCode::FORBIDDEN, why));
    }
    let beat = parsed(&heartbeat).map_err(|why| Refusal(StatusCode::BAD_REQUEST, why))?;
    blocking(shared, move |manager| manager.heartbeat(beat)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn parsed(heartbeat: &Heartbeat) -> Result<Beat, String> {
    let Heartbeat { host, source, every_s, vlans, failing, tested, sent } = heartbeat;
    if !(1..=EVERY_MAX_S).contains(every_s) {
        return Err(format!("every_s: {every_s} is not between 1 and {EVERY_MAX_S}"));
    }
    let lists = [
        ("failing", failing.len(), PATHS_MAX),
        ("tested", tested.len(), PATHS_MAX),
        ("sent", sent.len(), DESTINATIONS_MAX),
    ];
    for (what, count, most) in lists {
        if count > most {
            return Err(format!("{what}: {count} entries are more than {most}"));
        }
    }
    let mac = |what: &str, text: &str| text.parse::<Mac>().map_err(|_| format!("{what}: {text:?} is no MAC address"));
    let lost = |loss: PathLoss| match loss {
        PathLoss::Lossy => Loss::Some,
        PathLoss::Silent => Loss::All,
    };
    let path = |FailingPath { vlan, toward, loss }: &FailingPath| {
        let vlan = VlanId::new(*vlan).map_err(|_| format!("failing: {vlan} is no VLAN"))?;
        Ok::<_, String>(((vlan, mac("toward", toward)?), lost(*loss)))
    };
    let tests = |TestedPath { toward, loss }: &TestedPath| Ok::<_, String>((mac("toward", toward)?, loss.map(lost)));
    let sent_to = |SentBytes { to, bytes }: &SentBytes| Ok::<_, String>((mac("to", to)?, *bytes));
    Ok(Beat {
        host: mac("host", host)?,
        source: match source {
            HeartbeatSource::Tagger => Source::Tagger,
            HeartbeatSource::Ri2n => Source::Ri2n,
        },
        every_s: *every_s,
        vlans: vlans.parse().map_err(|_| format!("vlans: {vlans:?} is no set of VLANs such as 2-9"))?,
        failing: failing.iter().map(path).collect::<Result<_, _>>()?,
        tested: tested.iter().map(tests).collect::<Result<_, _>>()?,
        sent: sent.iter().map(sent_to).collect::<Result<_, _>>()?,
    })
}
