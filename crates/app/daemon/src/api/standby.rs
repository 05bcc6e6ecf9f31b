//! What a daemon answers that stands by.

use std::sync::{Arc, RwLock};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};

use crate::documents::ErrorDocument;

/// Why somebody stands by, in a sentence.
pub type Why = Arc<RwLock<String>>;

/// All routes of a daemon that stands by.
pub fn router(why: Why) -> Router {
    Router::new().route("/healthz", get(|| async { "standing by\n" })).fallback(refuse).with_state(why)
}

async fn refuse(State(why): State<Why>) -> Response {
    let error = why.read().map(|why| why.clone()).unwrap_or_default();
    (StatusCode::SERVICE_UNAVAILABLE, Json(ErrorDocument { error })).into_response()
}
