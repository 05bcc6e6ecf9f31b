//! State that all request handlers use, the caller and its role, and the answers to requests that are refused.

use std::sync::{Arc, PoisonError, RwLock};

use axum::{
    Json,
    extract::{ConnectInfo, FromRequestParts},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use records::SqliteRecords;
use tokio::sync::Semaphore;

use super::callers::{Caller, Peer, Role, Tokens, caller};
use crate::{
    documents::ErrorDocument,
    manager::{Manager, Refused},
    progress::Progress,
    work::Reach,
};

/// Requests that have switches asked, at a time.
pub const ASKING_MAX: usize = 32;

/// The one path at which hosts may ask.
pub const HEARTBEATS: &str = "/v1/heartbeats";

/// State that all request handlers use.
pub struct Shared {
    /// The daemon.
    pub manager: Arc<Manager>,
    /// What happens in deployments.
    pub progress: Arc<Progress>,
    /// Its store, for backups; none where it is not a file of the daemon's.
    pub store: Option<Arc<SqliteRecords>>,
    /// Folder for a backup that is under way.
    pub scratch: std::path::PathBuf,
    /// Who may ask over TCP.
    pub tokens: Arc<RwLock<Tokens>>,
    /// The daemon's own user.
    pub own_uid: u32,
    /// How switches are reached.
    pub reach: Box<dyn Fn() -> Arc<Reach> + Send + Sync>,
    /// Requests under way that have switches asked; no more than [`ASKING_MAX`] at a time.
    pub asking: Arc<Semaphore>,
}

/// A refusal.
#[derive(Debug)]
pub struct Refusal(pub StatusCode, pub String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(ErrorDocument { error: self.1 })).into_response()
    }
}

impl From<Refused> for Refusal {
    fn from(why: Refused) -> Self {
        let status = match &why {
            Refused::NotFound(_) => StatusCode::NOT_FOUND,
            Refused::Conflict(_) => StatusCode::CONFLICT,
            Refused::Bad(_) => StatusCode::BAD_REQUEST,
            Refused::Archive(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, why.to_string())
    }
}

/// Whoever asks.
impl FromRequestParts<Arc<Shared>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        let peer = parts.extensions.get::<ConnectInfo<Peer>>().map(|info| info.0.clone());
        let authorization = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let tokens = shared.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let caller = peer.and_then(|peer| caller(&peer, authorization, &tokens, shared.own_uid)).ok_or_else(|| {
            Refusal(StatusCode::UNAUTHORIZED, "say who you are: Authorization: Bearer TOKEN".to_owned())
        })?;
        if parts.uri.path() != HEARTBEATS {
            caller.may(Role::Viewer)?;
        }
        Ok(caller)
    }
}

impl Caller {
    /// Refuses what the caller's role does not allow.
    ///
    /// # Errors
    /// The refusal.
    pub fn may(&self, role: Role) -> Result<(), Refusal> {
        if self.role >= role {
            return Ok(());
        }
        let words = match role {
            Role::Host => "a host",
            Role::Viewer => "a viewer",
            Role::Approver => "an approver",
            Role::Admin => "an admin",
        };
        Err(Refusal(StatusCode::FORBIDDEN, format!("{} may not do this: it needs {words}", self.name)))
    }
}

/// A document, or why there is none.
pub type Reply<T> = Result<Json<T>, Refusal>;

/// Does what may take long, or waits for a disk, where nobody else waits for it.
///
/// # Errors
/// As `work`.
pub async fn blocking<T: Send + 'static>(
    shared: Arc<Shared>,
    work: impl FnOnce(&Manager) -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refusal> {
    let worked = move || {
        let done = work(&shared.manager);
        if let Err(Refused::Archive(error)) = &done {
            shared.manager.store_failed(error);
        }
        done
    };
    let done = tokio::task::spawn_blocking(worked).await;
    let done = done.map_err(|error| Refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(done?)
}
