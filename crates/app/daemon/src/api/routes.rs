//! Routes and their handlers.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest as _, Path, Query, Request, State},
    http::{StatusCode, header},
    response::{
        Html, IntoResponse as _, Response,
        sse::{Event as SentEvent, KeepAlive, Sse},
    },
    routing::{delete, get, post},
};
use fabric::format::plan::{ReadMode, read_plan};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use utoipa::{IntoParams, OpenApi as _};

use super::{
    callers::{Caller, Role},
    heartbeats, metrics, page,
    shared::{HEARTBEATS, Refusal, Reply, Shared, blocking},
    switches,
};
use crate::{
    documents::{
        AuditEntry, Delivery, Deployment, DeploymentOutcome, ErrorDocument, Event, LinkHistory, LinkSummary,
        Maintenance, MaintenanceRequest, Proposal, Status, Target,
    },
    history::{History, HistoryError},
    manager::{Manager, Refused},
    progress::Step,
};

/// Most bytes of a plan that is proposed.
const PLAN_LEN_MAX: usize = 512 << 20;
/// Longest text of a reason.
const REASON_LEN_MAX: usize = 1000;

/// All routes.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(show_page))
        .route("/healthz", get(health))
        .route("/metrics", get(show_metrics))
        .route("/v1/openapi.json", get(show_openapi))
        .route("/v1/status", get(status))
        .route("/v1/fabric", get(switches::fabric_status))
        .route("/v1/switches/{switch}/observation", get(switches::observation))
        .route("/v1/discovery", post(switches::discovery))
        .route(HEARTBEATS, post(heartbeats::heartbeat).layer(DefaultBodyLimit::max(heartbeats::LEN_MAX)))
        .route("/v1/events", get(events))
        .route("/v1/events/stream", get(event_stream))
        .route("/v1/targets", get(targets))
        .route("/v1/target/retry", post(retry))
        .route("/v1/deployment", get(deployment))
        .route("/v1/deployment/stream", get(deployment_stream))
        .route("/v1/rollback/{number}", post(roll_back))
        .route("/v1/plans/{digest}", get(plan))
        .route("/v1/proposals", get(proposals).post(propose))
        .route("/v1/proposals/{id}/approve", post(approve))
        .route("/v1/proposals/{id}/withdraw", post(withdraw))
        .route("/v1/maintenance", post(set_maintenance))
        .route("/v1/maintenance/{id}", delete(remove_maintenance))
        .route("/v1/put-back/{switch}", post(put_back))
        .route("/v1/history", get(history_summary))
        .route("/v1/history/{link}", get(history_of_link))
        .route("/v1/deliveries", get(deliveries))
        .route("/v1/deliveries/{id}", delete(drop_delivery))
        .route("/v1/deliveries/{id}/retry", post(retry_delivery))
        .route("/v1/audit", get(audit))
        .route("/v1/backup", get(backup))
        .layer(DefaultBodyLimit::max(PLAN_LEN_MAX))
        .with_state(shared)
}

/// Whether the daemon runs.
async fn health() -> &'static str {
    "ok\n"
}

async fn show_page(_: Caller, State(shared): State<Arc<Shared>>) -> Result<Html<String>, Refusal> {
    let status = blocking(shared, |manager| Ok(manager.status()?)).await?;
    Ok(Html(page::page(&status)))
}

async fn show_metrics(_: Caller, State(shared): State<Arc<Shared>>) -> Result<Response, Refusal> {
    let status = blocking(shared, |manager| Ok(manager.status()?)).await?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::metrics(&status)).into_response())
}

async fn show_openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi()).into_response()
}

/// The fabric as it was polled last, with open events and proposals.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = Status)))]
async fn status(_: Caller, State(shared): State<Arc<Shared>>) -> Reply<Status> {
    Ok(Json(blocking(shared, |manager| Ok(manager.status()?)).await?))
}

/// Events, newest first, cleared ones included.
#[utoipa::path(get, path = "/v1/events", responses((status = 200, body = Vec<Event>)))]
async fn events(_: Caller, State(shared): State<Arc<Shared>>) -> Json<Vec<Event>> {
    Json(shared.manager.events())
}

/// Changes of events as they happen, as server-sent events: `opened`, `changed`, `cleared`, `forgotten`, each with the event.
#[utoipa::path(get, path = "/v1/events/stream",
    responses((status = 200, body = Event, content_type = "text/event-stream")))]
async fn event_stream(
    _: Caller,
    State(shared): State<Arc<Shared>>,
) -> Sse<impl Stream<Item = Result<SentEvent, Infallible>>> {
    let changes = shared.manager.subscribe();
    let sent = stream::unfold(changes, |mut changes| async move {
        let sent = match changes.recv().await {
            Ok(change) => {
                let event = change.event();
                let data = serde_json::to_string(event).unwrap_or_default();
                SentEvent::default().event(change.word()).id(event.id.to_string()).data(data)
            }
            // A reader that was too slow reads /v1/events.
            Err(RecvError::Lagged(missed)) => SentEvent::default().event("missed").data(missed.to_string()),
            Err(RecvError::Closed) => return None,
        };
        Some((Ok(sent), changes))
    });
    Sse::new(sent).keep_alive(KeepAlive::default())
}

/// Every target that there was, oldest first.
#[utoipa::path(get, path = "/v1/targets", responses((status = 200, body = Vec<Target>)))]
async fn targets(_: Caller, State(shared): State<Arc<Shared>>) -> Reply<Vec<Target>> {
    Ok(Json(blocking(shared, |manager| Ok(manager.archive().targets()?)).await?))
}

/// Deploys a target once more that failed. Admins.
#[utoipa::path(post, path = "/v1/target/retry",
    responses((status = 200, body = Target), (status = 409, body = ErrorDocument)))]
async fn retry(caller: Caller, State(shared): State<Arc<Shared>>) -> Reply<Target> {
    caller.may(Role::Admin)?;
    Ok(Json(blocking(shared, move |manager| manager.retry(&caller.name)).await?))
}

fn nothing_deployed() -> Refusal {
    let why = "nothing has been deployed since espalierd was started; /v1/targets says what was deployed before";
    Refusal(StatusCode::NOT_FOUND, why.to_owned())
}

/// The current deployment, or the last one since the daemon was started.
#[utoipa::path(get, path = "/v1/deployment",
    responses((status = 200, body = Deployment), (status = 404, body = ErrorDocument)))]
async fn deployment(_: Caller, State(shared): State<Arc<Shared>>) -> Reply<Deployment> {
    shared.progress.current().map(Json).ok_or_else(nothing_deployed)
}

/// The same as server-sent events: a `line` for each line so far and each that comes, as a JSON string, and at the end `ended` with
/// the outcome.
#[utoipa::path(get, path = "/v1/deployment/stream",
    responses((status = 200, body = DeploymentOutcome, content_type = "text/event-stream"), (status = 404, body = ErrorDocument)))]
async fn deployment_stream(
    _: Caller,
    State(shared): State<Arc<Shared>>,
) -> Result<Sse<impl Stream<Item = Result<SentEvent, Infallible>>>, Refusal> {
    shared.progress.current().ok_or_else(nothing_deployed)?;
    let progress = Arc::clone(&shared.progress);
    let follower = progress.follow();
    let sent = stream::unfold((progress, follower), |(progress, mut follower)| async move {
        let (event, data) = match follower.next(&progress).await? {
            Step::Line(line) => ("line", serde_json::to_string(&line)),
            Step::Ended(outcome) => ("ended", serde_json::to_string(&outcome)),
        };
        let sent = SentEvent::default().event(event).data(data.unwrap_or_default());
        Some((Ok(sent), (progress, follower)))
    });
    Ok(Sse::new(sent).keep_alive(KeepAlive::default()))
}

/// Proposes the plan of an earlier target. Approvers.
#[utoipa::path(post, path = "/v1/rollback/{number}", params(("number" = u64, Path, description = "Which target")),
    responses((status = 200, body = Proposal), (status = 404, body = ErrorDocument)))]
async fn roll_back(caller: Caller, State(shared): State<Arc<Shared>>, Path(number): Path<u64>) -> Reply<Proposal> {
    caller.may(Role::Approver)?;
    Ok(Json(blocking(shared, move |manager| manager.roll_back(number, &caller.name)).await?))
}

/// A plan's file.
#[utoipa::path(get, path = "/v1/plans/{digest}", params(("digest" = String, Path, description = "The plan's digest")),
    responses((status = 200, description = "A plan file", content_type = "application/json"),
        (status = 404, body = ErrorDocument)))]
async fn plan(_: Caller, State(shared): State<Arc<Shared>>, Path(digest): Path<String>) -> Result<Response, Refusal> {
    let text = blocking(shared, move |manager| {
        let text = manager.archive().plan_text(&digest)?;
        text.ok_or_else(|| Refused::NotFound(format!("no plan with the digest {digest} is kept")))
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], text.await?).into_response())
}

/// Every proposal, oldest first.
#[utoipa::path(get, path = "/v1/proposals", responses((status = 200, body = Vec<Proposal>)))]
async fn proposals(_: Caller, State(shared): State<Arc<Shared>>) -> Reply<Vec<Proposal>> {
    Ok(Json(blocking(shared, |manager| Ok(manager.archive().proposals()?)).await?))
}

/// What a proposal is for.
#[derive(Deserialize, IntoParams)]
struct Reason {
    /// What for.
    #[serde(default)]
    reason: String,
}

fn bounded(text: &str) -> Result<(), Refusal> {
    if text.len() <= REASON_LEN_MAX {
        return Ok(());
    }
    Err(Refusal(StatusCode::BAD_REQUEST, format!("a reason has at most {REASON_LEN_MAX} bytes, not {}", text.len())))
}

/// Proposes a plan, whose file is the body. Approvers.
#[utoipa::path(post, path = "/v1/proposals", params(Reason), request_body(content = String, content_type = "application/json"),
    responses((status = 200, body = Proposal), (status = 400, body = ErrorDocument)))]
async fn propose(
    caller: Caller,
    State(shared): State<Arc<Shared>>,
    Query(Reason { reason }): Query<Reason>,
    request: Request,
) -> Reply<Proposal> {
    // Nobody who may not propose has a plan read.
    caller.may(Role::Approver)?;
    bounded(&reason)?;
    let body = Bytes::from_request(request, &shared).await;
    let body = body.map_err(|refused| Refusal(refused.status(), refused.body_text()))?;
    let proposed = blocking(shared, move |manager| {
        let plan = read_plan(&body, ReadMode::Strict).map_err(|error| Refused::Bad(error.to_string()))?;
        manager.propose(&plan, &reason, &caller.name)
    });
    Ok(Json(proposed.await?))
}

/// Approves a proposal; once enough have, it is deployed. Approvers.
#[utoipa::path(post, path = "/v1/proposals/{id}/approve", params(("id" = u64, Path, description = "Which proposal")),
    responses((status = 200, body = Proposal), (status = 404, body = ErrorDocument), (status = 409, body = ErrorDocument)))]
async fn approve(caller: Caller, State(shared): State<Arc<Shared>>, Path(id): Path<u64>) -> Reply<Proposal> {
    caller.may(Role::Approver)?;
    Ok(Json(blocking(shared, move |manager| manager.approve(id, &caller.name)).await?))
}

/// Withdraws a proposal. Approvers.
#[utoipa::path(post, path = "/v1/proposals/{id}/withdraw", params(("id" = u64, Path, description = "Which proposal")),
    responses((status = 200, body = Proposal), (status = 404, body = ErrorDocument), (status = 409, body = ErrorDocument)))]
async fn withdraw(caller: Caller, State(shared): State<Arc<Shared>>, Path(id): Path<u64>) -> Reply<Proposal> {
    caller.may(Role::Approver)?;
    Ok(Json(blocking(shared, move |manager| manager.withdraw(id, &caller.name)).await?))
}

/// Sets a maintenance mark: nothing is done about its subject until it is gone. Approvers.
#[utoipa::path(post, path = "/v1/maintenance", request_body = MaintenanceRequest,
    responses((status = 200, body = Maintenance), (status = 400, body = ErrorDocument)))]
async fn set_maintenance(
    caller: Caller,
    State(shared): State<Arc<Shared>>,
    Json(request): Json<MaintenanceRequest>,
) -> Reply<Maintenance> {
    caller.may(Role::Approver)?;
    bounded(&request.reason)?;
    let set = blocking(shared, move |manager| {
        let at_s = manager.now_s();
        let MaintenanceRequest { subject, reason, for_s, drain } = request;
        let until_s = for_s.map(|for_s| at_s.saturating_add(for_s));
        manager.set_maintenance(Maintenance { id: 0, subject, reason, by: caller.name, at_s, until_s, drain })
    });
    Ok(Json(set.await?))
}

/// Removes a maintenance mark. Approvers.
#[utoipa::path(delete, path = "/v1/maintenance/{id}", params(("id" = u64, Path, description = "Which mark")),
    responses((status = 204), (status = 404, body = ErrorDocument)))]
async fn remove_maintenance(
    caller: Caller,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<u64>,
) -> Result<StatusCode, Refusal> {
    caller.may(Role::Approver)?;
    blocking(shared, move |manager| manager.remove_maintenance(id, &caller.name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Puts a switch back to the plan, whoever changed it. Admins.
#[utoipa::path(post, path = "/v1/put-back/{switch}", params(("switch" = String, Path, description = "Which switch")),
    responses((status = 204), (status = 404, body = ErrorDocument)))]
async fn put_back(
    caller: Caller,
    State(shared): State<Arc<Shared>>,
    Path(switch): Path<String>,
) -> Result<StatusCode, Refusal> {
    caller.may(Role::Admin)?;
    blocking(shared, move |manager| manager.ask_back(&switch, &caller.name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How far back.
#[derive(Deserialize, IntoParams)]
struct Back {
    /// Hours; 24 unless given, which is the most that is kept.
    hours: Option<f64>,
}

impl Back {
    const HOURS: f64 = 24.0;

    /// The moment, in seconds since 1970-01-01 UTC.
    fn since_s(&self, now_s: u64) -> u64 {
        now_s.saturating_sub((self.hours.unwrap_or(Self::HOURS).clamp(0.0, Self::HOURS) * 3600.0) as u64)
    }
}

fn recorded(manager: &Manager) -> Result<&History, Refused> {
    let missing = || Refused::NotFound("loads are not recorded; the daemon's log says why".to_owned());
    manager.history().ok_or_else(missing)
}

fn unreadable(error: &HistoryError) -> Refused {
    Refused::Conflict(error.to_string())
}

/// The mean and the maximum load of every link, the greatest maximum first.
#[utoipa::path(get, path = "/v1/history", params(Back), responses((status = 200, body = Vec<LinkSummary>), (status = 404, body = ErrorDocument)))]
async fn history_summary(
    _: Caller,
    State(shared): State<Arc<Shared>>,
    Query(back): Query<Back>,
) -> Reply<Vec<LinkSummary>> {
    let summary = move |manager: &Manager| {
        let since_s = back.since_s(manager.now_s());
        recorded(manager)?.summary(since_s).map_err(|error| unreadable(&error))
    };
    Ok(Json(blocking(shared, summary).await?))
}

/// The loads of a link: means and maxima of five minutes each, then single polls.
#[utoipa::path(get, path = "/v1/history/{link}", params(("link" = String, Path, description = "The link, as /v1/status names it"), Back),
    responses((status = 200, body = LinkHistory), (status = 404, body = ErrorDocument)))]
async fn history_of_link(
    _: Caller,
    State(shared): State<Arc<Shared>>,
    Path(link): Path<String>,
    Query(back): Query<Back>,
) -> Reply<LinkHistory> {
    let of_link = move |manager: &Manager| {
        let since_s = back.since_s(manager.now_s());
        let found = recorded(manager)?.of(&link, since_s).map_err(|error| unreadable(&error))?;
        found.ok_or_else(|| {
            Refused::NotFound(format!(
                "{link}: no load is recorded of a link of this name; espalierd history lists them"
            ))
        })
    };
    Ok(Json(blocking(shared, of_link).await?))
}

/// Notifications that are pending or could not be delivered, oldest first.
#[utoipa::path(get, path = "/v1/deliveries", responses((status = 200, body = Vec<Delivery>)))]
async fn deliveries(_: Caller, State(shared): State<Arc<Shared>>) -> Json<Vec<Delivery>> {
    Json(shared.manager.deliveries())
}

/// Tries a delivery again at once. Admins.
#[utoipa::path(post, path = "/v1/deliveries/{id}/retry", params(("id" = u64, Path, description = "Which delivery")),
    responses((status = 200, body = Delivery), (status = 404, body = ErrorDocument)))]
async fn retry_delivery(caller: Caller, State(shared): State<Arc<Shared>>, Path(id): Path<u64>) -> Reply<Delivery> {
    caller.may(Role::Admin)?;
    Ok(Json(blocking(shared, move |manager| manager.retry_delivery(id, &caller.name)).await?))
}

/// Discards a delivery. Admins.
#[utoipa::path(delete, path = "/v1/deliveries/{id}", params(("id" = u64, Path, description = "Which delivery")),
    responses((status = 204), (status = 404, body = ErrorDocument)))]
async fn drop_delivery(
    caller: Caller,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<u64>,
) -> Result<StatusCode, Refusal> {
    caller.may(Role::Admin)?;
    blocking(shared, move |manager| manager.drop_delivery(id, &caller.name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What was done by whom, newest first.
#[utoipa::path(get, path = "/v1/audit", responses((status = 200, body = Vec<AuditEntry>)))]
async fn audit(_: Caller, State(shared): State<Arc<Shared>>) -> Reply<Vec<AuditEntry>> {
    Ok(Json(blocking(shared, |manager| Ok(manager.audit_entries()?)).await?))
}

/// A copy of the whole store, which `espalierd restore` takes. Admins.
#[utoipa::path(get, path = "/v1/backup",
    responses((status = 200, description = "A SQLite file", content_type = "application/vnd.sqlite3"),
        (status = 409, body = ErrorDocument)))]
async fn backup(caller: Caller, State(shared): State<Arc<Shared>>) -> Result<Response, Refusal> {
    caller.may(Role::Admin)?;
    let Some(store) = shared.store.clone() else {
        let why = "the store is etcd, which has backups of its own: etcdctl snapshot save FILE".to_owned();
        return Err(Refusal(StatusCode::CONFLICT, why));
    };
    let scratch = shared.scratch.clone();
    let copied = blocking(shared, move |_| {
        let file = scratch.join("backup.partial");
        // One of an earlier request that broke off is replaced.
        let _ = std::fs::remove_file(&file);
        let copied = store.back_up(&file).map_err(crate::archive::ArchiveError::from);
        let bytes = copied.map_err(Refused::from).and_then(|()| {
            std::fs::read(&file).map_err(|error| Refused::Conflict(format!("{}: {error}", file.display())))
        });
        let _ = std::fs::remove_file(&file);
        bytes
    });
    Ok(([(header::CONTENT_TYPE, "application/vnd.sqlite3")], copied.await?).into_response())
}

/// Paths for the OpenAPI document.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "espalierd", description = "The controller of an Espalier fabric."),
    paths(
        status,
        switches::fabric_status,
        switches::observation,
        switches::discovery,
        heartbeats::heartbeat,
        events,
        event_stream,
        targets,
        retry,
        deployment,
        deployment_stream,
        roll_back,
        plan,
        proposals,
        propose,
        approve,
        withdraw,
        set_maintenance,
        remove_maintenance,
        put_back,
        history_summary,
        history_of_link,
        deliveries,
        retry_delivery,
        drop_delivery,
        audit,
        backup
    )
)]
struct Paths;

/// The OpenAPI document, as JSON. The same program gives the same text.
pub fn openapi() -> String {
    let mut document = Paths::openapi();
    // The API has a version of its own, in its paths.
    document.info.version = "1".to_owned();
    document.info.license = None;
    let mut text = document.to_pretty_json().expect("the document has only keys that are text");
    text.push('\n');
    text
}
