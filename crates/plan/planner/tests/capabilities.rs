//! Every combination of what a model can do with what a mode needs: it is planned within the model's limits and judged, or
//! refused with what would work, and that then does work.

use fabric::{
    FdbMode, FindingKind, Flood, FloodKind, FloodSet, FlowControl, Mac, Model, Models, Plan, Policy, SwitchSpec,
    Tagging, Topology, TopologyBuilder,
    generate::{Kind, Options, generate},
};
use planner::{PlanError, plan};

fn ring(model: Model) -> Topology {
    let name = model.name.clone();
    let options = Options { model: Some(name), models: Models::built_in().with([model]), ..Options::default() };
    generate(&Kind::parse("torus", &["6".to_owned()]).expect("a valid size"), &options).expect("a sane size")
}

fn model(change: impl FnOnce(&mut Model)) -> Model {
    let mut model = Model { name: "ours".to_owned(), ..(*Model::generic()).clone() };
    change(&mut model);
    model
}

/// Floods are dropped where every switch can, and nothing needs them.
#[test]
fn floods_are_dropped_where_the_models_can() {
    let unknown = FloodSet::NONE.with(FloodKind::UnknownUnicast);
    for blocks in [FloodSet::NONE, unknown, FloodSet::ALL] {
        let topology = ring(model(|model| model.blocks_floods = blocks));
        for flood in [Flood::Forward, Flood::Drop, Flood::DropAll] {
            let context = format!("{flood} where {blocks} can be blocked");
            let policy = Policy { tagging: Tagging::Destination, flood, ..Policy::default() };
            match plan(&topology, &policy, None) {
                Ok(plan) => {
                    assert!(flood.blocked().without(blocks).is_empty(), "{context}");
                    let verify::Judgement { report, deadlock, dropped } = verify::judge(&plan);
                    assert_eq!(report.findings(), [], "{context}");
                    assert!(deadlock.is_impossible(), "{context}: {deadlock:?}");
                    assert_eq!(dropped.len(), flood.blocked().iter().count(), "{context}");
                }
                Err(error) => {
                    let text = error.to_string();
                    let less = if blocks == unknown { Flood::Drop } else { Flood::Forward };
                    assert!(!flood.blocked().without(blocks).is_empty(), "{context}: {text}");
                    assert!(text.contains("(ours) lacks ports that block"), "{context}: {text}");
                    assert!(text.ends_with(&format!("; use --flood {less}")), "{context}: {text}");
                }
            }
        }
    }
}

/// Two switches with LAGs of two cables between them and for hosts, all or only some of them.
fn with_lags(between: usize, hosts: usize, lags_max: Option<usize>) -> Topology {
    let mut builder = TopologyBuilder::with_models(Models::built_in().with([model(|model| model.lags_max = lags_max)]));
    let spec = || SwitchSpec { model: Some("ours".to_owned()), ..SwitchSpec::default() };
    let switches = ["a", "b"].map(|name| builder.add_switch(name, spec()).expect("a fresh name"));
    let mut used = [0, 0];
    let mut port = |builder: &mut TopologyBuilder, at: usize| {
        used[at] += 1;
        builder.add_port(switches[at], &format!("p{}", used[at])).expect("a fresh port")
    };
    let mut lag = |builder: &mut TopologyBuilder, at: usize| {
        let lag = builder.add_lag(switches[at], None).expect("a free number");
        for _ in 0..2 {
            let member = port(builder, at);
            builder.add_to_lag(lag, member).expect("a free port");
        }
        lag
    };
    for _ in 0..between {
        let [a, b] = [0, 1].map(|at| lag(&mut builder, at));
        builder.add_link(a, b, 2_000_000_000).expect("free ports");
    }
    for number in 0..hosts {
        let port = lag(&mut builder, 0);
        builder
            .add_host(&format!("h{number}"), Mac::local(number as u32 + 1), port, 2_000_000_000, None)
            .expect("free");
    }
    let [a, b] = [0, 1].map(|at| builder.add_port(switches[at], "single").expect("a fresh port"));
    builder.add_link(a, b, 1_000_000_000).expect("free ports");
    let last = builder.add_port(switches[1], "last").expect("a fresh port");
    builder.add_host("last", Mac::local(900), last, 1_000_000_000, None).expect("a free port");
    builder.finish().expect("connected")
}

/// A switch with as many LAGs as its model has is planned, one with more is refused by the planner and found by the judge; LAGs between
/// switches that are taken apart, as the refusal says, make the topology fit.
#[test]
fn more_lags_than_a_model_has_are_refused_and_found() {
    for (between, hosts) in [(1, 1), (2, 1), (1, 3), (3, 0), (0, 2)] {
        let need = between + hosts;
        let unlimited = plan(&with_lags(between, hosts, None), &Policy::default(), None).expect("nothing is known");
        for limit in 0..=need + 1 {
            let context = format!("{between} LAGs between switches, {hosts} of hosts, {limit} at most");
            let topology = with_lags(between, hosts, Some(limit));
            let judged = verify::check(&Plan { topology: topology.clone(), ..unlimited.clone() });
            let exceeded = judged.findings().iter().filter(|finding| finding.kind == FindingKind::LimitExceeded);
            let exceeded: Vec<&str> = exceeded.map(|finding| finding.subject.as_str()).collect();
            match plan(&topology, &Policy::default(), None) {
                Ok(plan) => {
                    assert!(need <= limit, "{context}");
                    assert_eq!((verify::check(&plan).findings(), exceeded.len()), (&[][..], 0), "{context}");
                }
                Err(PlanError::TooManyLags { switch, need: told, limit: holds, way_out, .. }) => {
                    assert!(need > limit, "{context}");
                    assert_eq!((switch.as_str(), told, holds), ("a", need, limit), "{context}");
                    assert!(exceeded.contains(&"a"), "{context}: {judged}");
                    let apart = need - limit;
                    assert_eq!(way_out.starts_with("write the cables of"), apart <= between, "{context}: {way_out}");
                    if apart <= between {
                        assert!(
                            plan(&with_lags(between - apart, hosts, Some(limit)), &Policy::default(), None).is_ok()
                        );
                    } else {
                        assert_eq!(way_out, format!("use a switch that has {need} LAGs"), "{context}");
                        assert!(plan(&with_lags(between, hosts, Some(need)), &Policy::default(), None).is_ok());
                    }
                }
                Err(other) => panic!("{context}: {other}"),
            }
        }
    }
}

/// By destination a host's own tree cannot carry what it floods; where floods are dropped nobody needs a tree for them.
#[test]
fn dropped_floods_need_no_vlans_of_their_own() {
    let topology = generate(&Kind::parse("torus", &["4x5".to_owned()]).expect("a size"), &Options::default());
    let topology = topology.expect("a sane size");
    let of = |flood| {
        let policy = Policy { tagging: Tagging::Destination, flood, ..Policy::default() };
        plan(&topology, &policy, None).expect("a plan")
    };
    let [forward, drop, drop_all] = [Flood::Forward, Flood::Drop, Flood::DropAll].map(of);
    let load = |plan: &Plan| plan.summary.max_channel_load;
    assert_eq!([load(&drop), load(&drop_all)], [load(&forward); 2], "floods are no load");
    assert_eq!(drop.summary.vlans, forward.summary.vlans, "broadcasts are still on the wire");
    assert!(drop_all.summary.vlans < forward.summary.vlans, "{} VLANs", drop_all.summary.vlans);
    // The same request changes nothing, and another choice is heard.
    for before in [&forward, &drop, &drop_all] {
        for after in [&forward, &drop, &drop_all] {
            let again = plan(&topology, &after.policy, Some(before)).expect("a plan");
            let report = verify::check(&again);
            assert_eq!(report.findings(), [], "{} to {}", before.policy.flood, after.policy.flood);
            assert_eq!(again.policy.flood, after.policy.flood);
            if before.policy == after.policy {
                assert_eq!(again, *before);
            }
            for part in transition::steps(before, &again).expect("a way").steps {
                assert!(!part.parts.is_empty());
            }
        }
    }
}

#[test]
fn floods_that_something_needs_are_not_dropped() {
    let policy =
        Policy { flood: Flood::Drop, fdb: FdbMode::Learned, tagging: Tagging::SourceDestination, ..Policy::default() };
    let error = plan(&ring(model(|_| {})), &policy, None).expect_err("learning").to_string();
    assert!(error.contains("a switch that learns finds receivers") && error.contains("--fdb minimal"), "{error}");
}

#[test]
fn what_a_model_cannot_do_is_refused_with_what_would_work() {
    let flows = [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)];
    let (mut planned, mut refused) = (0, 0);
    for bits in 0..16_u8 {
        let can = |bit: u8| bits & (1 << bit) != 0;
        let own = model(|model| {
            model.hybrid_ports = can(0);
            model.independent_vlan_learning = can(1);
            model.pause = can(2);
            model.pfc_classes = if can(3) { 2 } else { 0 };
        });
        let topology = ring(own.clone());
        for &tagging in Tagging::ALL {
            for flow_control in flows {
                let policy = Policy { tagging, flow_control, ..Policy::default() };
                let context = format!("{own:?}, {tagging}, {flow_control}");
                // In the order in which a person would want to hear of them.
                let way_out = if !own.independent_vlan_learning {
                    Some("shared tables")
                } else if tagging == Tagging::Switch && !own.hybrid_ports {
                    Some("--tagging source")
                } else {
                    match flow_control {
                        FlowControl::Pause if !own.pause => Some("--flow-control none"),
                        FlowControl::Pfc(classes) if own.pfc_classes < classes && own.pause => {
                            Some("--flow-control pause")
                        }
                        FlowControl::Pfc(classes) if own.pfc_classes < classes => Some("--flow-control none"),
                        _ => None,
                    }
                };
                match (plan(&topology, &policy, None), way_out) {
                    (Ok(plan), None) => {
                        let report = verify::check(&plan);
                        assert!(report.is_deployable(), "{context}: {report}");
                        planned += 1;
                    }
                    (Err(error), Some(way_out)) => {
                        let text = error.to_string();
                        assert!(text.contains(way_out) && text.contains("ours"), "{context}: {text}");
                        refused += 1;
                    }
                    (Ok(_), Some(way_out)) => panic!("{context}: planned in spite of {way_out}"),
                    (Err(error), None) => panic!("{context}: {error}"),
                }
            }
        }
    }
    assert!(planned > 40 && refused > 100, "{planned} planned, {refused} refused");
}

#[test]
fn what_is_suggested_works() {
    let topology = ring(model(|model| (model.hybrid_ports, model.pause) = (false, false)));
    let asked = Policy::default();
    let refused = plan(&topology, &asked, None).expect_err("two things are missing").to_string();
    assert!(refused.ends_with("; plan with --tagging source and --flow-control none"), "{refused}");
    let tagging = Policy { tagging: Tagging::Source, ..asked };
    let refused = plan(&topology, &tagging, None).expect_err("one is still missing").to_string();
    assert!(refused.ends_with("; plan without flow control: --flow-control none"), "{refused}");
    let neither = Policy { flow_control: FlowControl::None, ..tagging };
    assert!(verify::check(&plan(&topology, &neither, None).expect("what was suggested")).is_deployable());
}

#[test]
fn few_vlans_and_entries_cap_the_plan() {
    for vlans_max in 1..=6 {
        let topology = ring(model(|model| model.vlans_max = vlans_max));
        let plan = plan(&topology, &Policy::default(), None).unwrap_or_else(|error| panic!("{vlans_max}: {error}"));
        assert!(plan.summary.vlans <= vlans_max, "{} of {vlans_max}", plan.summary.vlans);
        assert!(verify::check(&plan).is_deployable());
    }
    let unbound = plan(&ring(model(|_| {})), &Policy::default(), None).expect("no limits").summary;
    assert!(unbound.vlans > 1, "a limit of one would bind nothing");
    for static_entries_max in [6, 8, 12, 20] {
        let topology = ring(model(|model| model.static_entries_max = static_entries_max));
        let plan =
            plan(&topology, &Policy::default(), None).unwrap_or_else(|error| panic!("{static_entries_max}: {error}"));
        assert!(plan.summary.fdb_entries_max <= static_entries_max, "{static_entries_max}");
        assert!(verify::check(&plan).is_deployable());
    }
    let error =
        plan(&ring(model(|model| model.static_entries_max = 5)), &Policy::default(), None).expect_err("six hosts");
    assert!(error.to_string().contains("holds 5 static entries, but 6 are needed"), "{error}");
}

/// Where nothing is left for even one tree, that is said before anything is searched for, with what would do.
#[test]
fn no_vlan_at_all_is_refused_at_once() {
    let two = |extra: &str| {
        let text = format!(
            "switches:\n  a:\nhosts:\n  h0: {{mac: \"02:00:00:00:00:01\", port: \"a:p0\"}}\n  \
             h1: {{mac: \"02:00:00:00:00:02\", port: \"a:p1\"}}\n{extra}"
        );
        fabric::format::native::parse_native("two.yaml", &text).expect("a topology")
    };
    let id = |id| fabric::VlanId::new(id).expect("a VLAN");
    let mut none = Policy::default();
    (none.vlans.first, none.vlans.last) = (id(2), id(2));
    none.vlans.reserved.insert(id(2));
    for topology in [two(""), ring((*Model::generic()).clone())] {
        for engine in [fabric::EngineName::Auto, fabric::EngineName::Balanced, fabric::EngineName::Tree] {
            let refused = plan(&topology, &Policy { engine, ..none.clone() }, None).expect_err("no VLAN").to_string();
            assert!(refused.contains("needs 1 VLAN, but the range of VLAN ids has 0"), "{refused}");
            assert!(refused.contains("widen --vlans to 1 id") && !refused.contains("--engine auto"), "{refused}");
        }
    }
}

/// A single lossless class is PAUSE with another name: what one lane can carry is planned, else refused, never lost.
#[test]
fn one_class_is_planned_like_pause() {
    let topology =
        generate(&Kind::parse("torus", &["5".to_owned()]).expect("a size"), &Options::default()).expect("sane");
    for &tagging in Tagging::ALL {
        let policy = |flow_control| Policy { tagging, flow_control, ..Policy::default() };
        let (one, pause) = (policy(FlowControl::Pfc(1)), policy(FlowControl::Pause));
        let (one, pause) = (plan(&topology, &one, None), plan(&topology, &pause, None));
        assert_eq!(one.is_ok(), pause.is_ok(), "{tagging}");
        if let (Ok(one), Ok(pause)) = (one, pause) {
            assert!(verify::check(&one).is_deployable(), "{tagging}");
            assert_eq!(one.summary.max_channel_load, pause.summary.max_channel_load, "{tagging}");
        }
    }
}
