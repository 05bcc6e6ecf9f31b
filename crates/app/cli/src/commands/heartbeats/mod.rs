//! Heartbeats of this host to espalierd: which paths to other hosts fail. Of its tagger, which tests them all (`tagger run`), or of its
//! streams of RI2N (`heartbeats`).

mod ri2n;
mod tagger;

use std::{
    thread,
    time::{Duration, Instant},
};

use api_client::{Ask, Endpoint, documents::Heartbeat};

pub(super) use self::{
    ri2n::run,
    tagger::{TaggerHeartbeats, Verdicts},
};

/// How long the controller may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How soon news are sent after the heartbeats before.
const SOON: Duration = Duration::from_secs(1);
/// Longest sleep, so that a request to end is heard.
const NAP: Duration = Duration::from_millis(100);

/// Sends heartbeats every `every_s` seconds until `stop` says so, and within a second of news. A controller that does not take them is
/// reported once, and asked again.
fn send(
    endpoint: &Endpoint,
    every_s: u64,
    stop: &dyn Fn() -> bool,
    has_news: &dyn Fn() -> bool,
    heartbeats: &mut dyn FnMut() -> Vec<Heartbeat>,
) {
    let mut is_heard = true;
    while !stop() {
        let begun = Instant::now();
        let sent = heartbeats().iter().try_for_each(|heartbeat| {
            let body = serde_json::to_vec(heartbeat).map_err(|error| error.to_string())?;
            endpoint.send(Ask::post("/v1/heartbeats", body), ANSWER_MAX)
        });
        match &sent {
            Err(why) if is_heard => eprintln!("espalier: no heartbeat: {why}; trying again every {every_s} s"),
            Ok(()) if !is_heard => eprintln!("{endpoint}: heartbeats arrive again"),
            _ => {}
        }
        is_heard = sent.is_ok();
        let is_due =
            |waited: Duration| waited >= Duration::from_secs(every_s) || is_heard && waited >= SOON && has_news();
        while !stop() && !is_due(begun.elapsed()) {
            thread::sleep(NAP);
        }
    }
}
