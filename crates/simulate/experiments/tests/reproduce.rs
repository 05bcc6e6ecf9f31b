//! Reproductions as a caller of the library sees them.

use std::{cell::RefCell, fs, path::Path};

use experiments::{
    Error, Unavailable,
    reproduce::{Comparison, Event, Figure, LabSettings, Replay, Reproduction, Request, Testbed, reproduce},
};

const FOLDED: Replay<'_> = Replay { traces: None, ns_per_flop: 4.0 };

fn simulated(figure: Figure, replay: Replay<'_>, events: &dyn Fn(Event<'_>)) -> Result<Reproduction, Error> {
    reproduce(&Request { figure, testbed: Testbed::Simulator, replay }, events)
}

#[test]
fn numbers_are_compared_but_for_errata() {
    let found = simulated(Figure::Table3, FOLDED, &|event| panic!("{event:?}")).expect("a table");
    assert_eq!(found.comparison, Comparison::Numbers { agree: true });
    assert_eq!(found.values["table3"].as_array().map(Vec::len), Some(7));
    assert_eq!(found.notes.len(), 4, "one note an erratum: {:?}", found.notes);
}

#[test]
fn statements_say_whether_they_hold() {
    let found = simulated(Figure::MiuraTable2, FOLDED, &|event| panic!("{event:?}")).expect("a table");
    let Comparison::Statements(statements) = &found.comparison else { panic!("{:?}", found.comparison) };
    assert_eq!(statements.len(), 2);
    assert!(found.agrees(), "{statements:?}");
}

#[test]
fn the_lab_refuses_what_it_does_not_have() {
    let testbed = Testbed::Lab(LabSettings { name: "unused", rate_bps: 20_000_000 });
    let refused = reproduce(&Request { figure: Figure::Fig4, testbed, replay: FOLDED }, &|event| panic!("{event:?}"));
    let error = refused.expect_err("fig4 is simulated");
    assert!(error.is_of_request());
    let Error::Unavailable(Unavailable::SimulatedOnly { in_lab }) = error else { panic!("{error}") };
    assert_eq!(in_lab, "fig7, fig8, miura-fig6");
}

#[test]
fn a_trace_that_is_missing_is_told_and_one_that_does_not_read_is_refused() {
    let folder = std::env::temp_dir().join(format!("experiments-traces-{}", std::process::id()));
    fs::create_dir_all(folder.join("mg.B")).expect("a folder");
    fs::write(folder.join("mg.B/0"), "no trace\n").expect("a file");
    let missing = RefCell::new(Vec::new());
    let note = |event: Event<'_>| match event {
        Event::FoldedTrace { benchmark, path } => missing.borrow_mut().push((benchmark, path.to_owned())),
        event => panic!("{event:?}"),
    };
    let refused = simulated(Figure::Fig8, Replay { traces: Some(&folder), ..FOLDED }, &note);
    fs::remove_dir_all(&folder).expect("it is ours");
    assert_eq!(missing.take(), [("CG", folder.join("cg.B"))]);
    let Err(Error::Request(message)) = refused else { panic!("{:?}", refused.map(|found| found.notes)) };
    assert!(message.starts_with(&format!("{}:1: ", folder.join(Path::new("mg.B/0")).display())), "{message}");
}
