//! The API over TCP, by a client of a few lines: who may do what, documents, metrics, the stream, and the stored OpenAPI
//! document.

mod common;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
};

use common::{Daemon, plan_text, ring};
use controller::{Discovery, FoundSwitch};
use espalierd::documents::DiscoveredSwitch;
use fabric::format::native::parse_native;
use serde_json::Value;
use switch_model::format::StationRecord;

/// A heartbeat of the host h0.
const BEAT: &[u8] = b"{\"host\":\"02:00:00:00:00:01\",\"every_s\":60,\"vlans\":\"2-4\"}";

#[test]
fn a_token_says_who_may_do_what() {
    let daemon = Daemon::start("roles");
    let plan = plan_text();
    let propose = "/v1/proposals?reason=first%20plan";
    for (method, path, token, body, status) in [
        ("GET", "/v1/status", None, &b""[..], 200),
        ("GET", "/v1/status", Some("wrong"), b"", 401),
        ("GET", "/healthz", Some("wrong"), b"", 200),
        ("POST", propose, None, &plan, 403),
        ("POST", propose, Some("sesame"), b"no plan", 400),
        ("POST", propose, Some("sesame"), &plan, 200),
        ("POST", "/v1/proposals/1/approve", None, b"", 403),
        ("POST", "/v1/proposals/9/approve", Some("sesame"), b"", 404),
        ("POST", "/v1/target/retry", Some("sesame"), b"", 403),
        ("GET", "/v1/backup", Some("sesame"), b"", 403),
        ("POST", "/v1/maintenance", Some("sesame"), b"{\"subject\":\"s0\",\"reason\":\"x\",\"why\":1}", 422),
        ("POST", "/v1/maintenance", Some("sesame"), b"{\"subject\":\"s0\",\"reason\":\"x\"}", 200),
        ("DELETE", "/v1/maintenance/1", Some("sesame"), b"", 204),
        ("DELETE", "/v1/maintenance/1", Some("sesame"), b"", 404),
        ("POST", "/v1/proposals/1/withdraw", Some("sesame"), b"", 200),
        ("POST", "/v1/proposals/1/approve", Some("sesame"), b"", 409),
        ("GET", "/v1/deployment", None, b"", 404),
        ("GET", "/v1/deployment/stream", Some("sesame"), b"", 404),
        ("GET", "/v1/deployment", Some("wrong"), b"", 401),
        ("GET", "/v1/plans/none", None, b"", 404),
        ("GET", "/v1/nothing", None, b"", 404),
        ("POST", "/v1/heartbeats", None, BEAT, 403),
        ("POST", "/v1/heartbeats", Some("sesame"), BEAT, 403),
        ("POST", "/v1/heartbeats", Some("drum"), BEAT, 404),
        ("POST", "/v1/heartbeats", Some("drum"), b"{\"host\":\"h0\",\"every_s\":1,\"vlans\":\"2\"}", 400),
        ("GET", "/v1/status", Some("drum"), b"", 403),
        ("POST", "/v1/proposals/1/approve", Some("drum"), b"", 403),
        ("GET", "/metrics", Some("drum"), b"", 403),
    ] {
        let (found, text) = daemon.ask(method, path, token, body);
        assert_eq!(found, status, "{method} {path}: {text}");
    }
    let (_, audit) = daemon.ask("GET", "/v1/audit", None, b"");
    let audit: Vec<Value> = serde_json::from_str(&audit).expect("JSON");
    assert!(audit.iter().all(|entry| entry["who"] == "ada"), "{audit:?}");
    assert_eq!(audit.len(), 4, "{audit:?}");
    // Nothing of a token is anywhere.
    let kept = fs::read(daemon.folder.0.join("state/espalierd.sqlite")).expect("a file");
    assert!(!kept.windows(6).any(|window| window == b"sesame"));
}

#[test]
fn plans_come_back_as_they_were_and_events_are_streamed() {
    let daemon = Daemon::start("stream");
    let plan = plan_text();
    let (_, proposal) = daemon.ask("POST", "/v1/proposals?reason=x", Some("sesame"), &plan);
    let proposal: Value = serde_json::from_str(&proposal).expect("JSON");
    let digest = proposal["plan"].as_str().expect("a digest");
    let (status, kept) = daemon.ask("GET", &format!("/v1/plans/{digest}"), None, b"");
    assert_eq!((status, kept.as_bytes() == plan), (200, true));

    let stream = daemon.send("GET", "/v1/events/stream", None, b"");
    let (status, _) = daemon.ask("POST", "/v1/proposals/1/approve", Some("sesame"), b"");
    assert_eq!(status, 200);
    // A switch that falls silent is an event.
    daemon.await_planned();
    let (_, deployment) = daemon.ask("GET", "/v1/deployment", None, b"");
    let deployment: Value = serde_json::from_str(&deployment).expect("JSON");
    let told = deployment["lines"].as_array().expect("lines");
    assert_eq!(
        (&deployment["target"], told[0].as_str()),
        (&1.into(), Some("survey: 4 of 4 cables confirmed by both ends"))
    );
    assert_eq!(deployment["outcome"]["lines"][0], "4 of 4 switches hold the plan: generation 1");
    let (status, streamed) = daemon.ask("GET", "/v1/deployment/stream", None, b"");
    let data = |event: &str| -> Vec<Value> {
        let blocks = streamed.split("\n\n").filter(|block| block.contains(&format!("event: {event}\n")));
        let data = blocks.filter_map(|block| block.lines().find_map(|line| line.strip_prefix("data: ")));
        data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
    };
    assert_eq!(
        (status, &data("line"), &data("ended")),
        (200, told, &vec![deployment["outcome"].clone()]),
        "{streamed}"
    );
    daemon.closet.do_it("s1 silent");
    let mut lines = BufReader::new(stream).lines();
    let data = loop {
        let line = lines.next().expect("the stream goes on").expect("text");
        if line == "event: opened" {
            let rest: Vec<String> = lines.by_ref().take(2).map(|line| line.expect("text")).collect();
            break rest.into_iter().find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).expect("data");
        }
    };
    let event: Value = serde_json::from_str(&data).expect("JSON");
    assert_eq!((event["kind"].as_str(), event["subject"].as_str()), (Some("unreachable"), Some("s1")), "{data}");
    let (_, metrics) = daemon.ask("GET", "/metrics", None, b"");
    assert!(metrics.contains("espalierd_target_deployed 1.0\n") && metrics.ends_with("# EOF\n"), "{metrics}");
    let (_, page) = daemon.ask("GET", "/", None, b"");
    assert!(page.contains("<h1 class=\"critical\">1 thing needs a person</h1>"), "{page}");
}

#[test]
fn switches_are_polled_observed_and_discovered_for_whoever_asks() {
    let daemon = Daemon::start("switches");
    let json = |(status, text): (u16, String)| -> (u16, Value) { (status, serde_json::from_str(&text).expect("JSON")) };
    let get = |path: &str| json(daemon.ask("GET", path, None, b""));
    let (status, refusal) = get("/v1/fabric?fresh=true");
    assert_eq!(
        (status, refusal["error"].as_str()),
        (409, Some("the switches are not polled now; the controller is waiting for a plan: espalierd propose PLAN"))
    );
    assert_eq!(get("/v1/switches/s0/observation").0, 409);
    daemon.ask("POST", "/v1/proposals?reason=x", Some("sesame"), &plan_text());
    daemon.ask("POST", "/v1/proposals/1/approve", Some("sesame"), b"");
    daemon.await_planned();

    // A host is heard once a plan has it.
    assert_eq!(daemon.ask("POST", "/v1/heartbeats", Some("drum"), BEAT).0, 204);
    assert_eq!(get("/v1/status").1["heartbeats"], 1);
    let (_, last) = get("/v1/fabric");
    daemon.closet.do_it("s1 silent");
    // The last poll is older than the fault, one that is asked for is not.
    let (status, fresh) = get("/v1/fabric?fresh=true");
    let lines = fresh["lines"].as_array().expect("lines");
    let has = |line: &str| lines.iter().any(|found| found == line);
    assert!(status == 200 && has("3 of 4 switches hold the plan"), "{fresh}");
    assert_eq!((&last["is_sound"], &fresh["is_sound"]), (&true.into(), &false.into()));
    assert_eq!(fresh["report"]["switches"][1]["switch"], "s1");
    assert!(fresh["report"]["switches"][1]["fault"].is_string(), "{fresh}");

    let (status, silent) = get("/v1/switches/s1/observation");
    assert!(status == 200 && silent["observation"].is_null() && silent["fault"].is_string(), "{silent}");
    daemon.closet.do_it("s1 speaks");
    let (_, observed) = get("/v1/switches/s1/observation");
    assert_eq!(observed["observation"]["format"], "espalier-observed", "{observed}");
    assert_eq!(get("/v1/switches/nobody/observation").0, 404);

    let topology = parse_native("ring.yaml", &ring()).expect("a topology");
    let address = |at: usize| topology.switches()[at].mgmt.expect("an address").to_string();
    let discover = |asked: Value, token: Option<&str>| {
        let body = serde_json::json!({ "switches": asked }).to_string();
        json(daemon.ask("POST", "/v1/discovery", token, body.as_bytes()))
    };
    let all: Vec<Value> = (0..4).map(|at| serde_json::json!({ "address": address(at) })).collect();
    let (status, found) = discover(all.into(), None);
    let found: Vec<DiscoveredSwitch> = serde_json::from_value(found).expect("switches");
    assert_eq!(status, 200);
    let switches = found.into_iter().map(|DiscoveredSwitch { address, station, .. }| {
        let record: StationRecord = serde_json::from_value(station.expect("it answers")).expect("a station");
        let (station, identity) = record.parse().expect("a station");
        FoundSwitch { address, station, identity }
    });
    assert_eq!(Discovery::new(switches.collect(), Vec::new()).cabling.links.len(), 4);
    // A name decides whose credentials are sent, so only approvers give another one, or another address.
    for asked in
        [serde_json::json!({ "address": address(0), "name": "s1" }), serde_json::json!({ "address": "127.0.0.9" })]
    {
        assert_eq!(discover(serde_json::json!([asked]), None).0, 403, "{asked}");
    }
    let (status, strange) = discover(serde_json::json!([{ "address": "127.0.0.9" }]), Some("sesame"));
    assert!(status == 200 && strange[0]["station"].is_null() && strange[0]["fault"].is_string(), "{strange}");
}

#[test]
fn the_stored_openapi_document_is_that_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let found = espalierd::api::routes::openapi();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &found).expect("it can be written");
    }
    let stored = fs::read_to_string(&path).expect("a file");
    assert!(stored == found, "{} is another: BLESS=1 takes what the program has", path.display());
}
