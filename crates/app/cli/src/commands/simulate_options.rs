//! Options of `simulate` that exclude each other: one that would have no effect is refused, with the way out.

use anyhow::Result;
use sim::{pattern::Pattern, program::collective::Collective, spread::Spread};

use crate::{cli, failure::bad_input};

/// An option that was given, whether it would have an effect, and what to do if not.
struct Rule {
    option: &'static str,
    given: bool,
    ignored: bool,
    remedy: &'static str,
}

const FRAMES: &str = "it is about frames, and the flow level has rates alone: leave it out, or use --level packet";
const PROGRAMS: &str =
    "it is about programs: leave it out, or run one with --collective, --goal, --trace, --matrix or --random";

/// Refuses the first option that the others leave without effect.
///
/// # Errors
/// Bad input, naming the option and the way out.
pub(super) fn check(args: &cli::Simulate) -> Result<()> {
    match rules(args).iter().find(|rule| rule.given && rule.ignored) {
        Some(Rule { option, remedy, .. }) => Err(bad_input(format!("{option} would have no effect: {remedy}"))),
        None => Ok(()),
    }
}

fn rules(args: &cli::Simulate) -> [Rule; 23] {
    let (work, fabric, out) = (&args.workload, &args.fabric, &args.outputs);
    let flow = matches!(args.level, cli::SimulationLevel::Flow);
    let program = work.is_program();
    let sized_by_itself = work.goal.is_some() || work.trace.is_some() || work.random.is_some();
    let rootless = work.collective.is_some_and(|(collective, _)| {
        use Collective::{Broadcast, Gather, Reduce, Scatter};
        !matches!(collective, Broadcast | Reduce | Gather | Scatter)
    });
    let sizeless = work.collective.is_some_and(|(collective, _)| collective == Collective::Barrier);
    let certain = flow && work.random.is_none() && (program || args.pattern != Pattern::Permutation);
    let no_pause = matches!(args.flow_control, Some(cli::FlowControlChoice::None));
    let rule = |option, given, ignored, remedy| Rule { option, given, ignored, remedy };
    [
        rule("--transport", args.transport.is_some(), flow, FRAMES),
        rule("--flow-control", args.flow_control.is_some(), flow, FRAMES),
        rule("--refresh-pause", args.refresh_pause, flow, FRAMES),
        rule("--fault", !fabric.fault.is_empty(), flow, FRAMES),
        rule("--pattern", args.pattern.floods(), flow, FRAMES),
        rule("--ecn", fabric.ecn.is_some(), flow, FRAMES),
        rule("--arp", fabric.arp, flow, FRAMES),
        rule(
            "--flowlet-gap-us",
            args.flowlet_gap_us.is_some(),
            args.spread != Spread::Flowlet,
            "only --spread flowlet waits for silences: leave it out",
        ),
        rule(
            "--spread",
            args.spread == Spread::Ideal,
            program,
            "ideal rates are shared among the pairs of a pattern: for a program use --spread one or flow",
        ),
        rule(
            "--pcap",
            !out.pcap.is_empty(),
            args.spread == Spread::Coupled,
            "captures do not tell coupled subflows apart: use another --spread, or leave it out",
        ),
        rule("--cut-through", args.cut_through, flow && !program, FRAMES),
        rule("--sample-ms", out.sample_ms.is_some(), flow, FRAMES),
        rule("--channels", out.channels.is_some(), flow && program, "programs at the flow level write --csv alone"),
        rule("--heat-map", out.heat_map.is_some(), flow && program, "programs at the flow level write --csv alone"),
        rule(
            "--duration-ms",
            args.duration_ms.is_some(),
            flow,
            "at the flow level transfers end by themselves: say how much is sent with --bytes, or use --level packet",
        ),
        rule(
            "--refresh-pause",
            args.refresh_pause,
            no_pause,
            "--flow-control none sends no PAUSE; leave one of them out",
        ),
        rule(
            "--seed",
            args.seed.is_some(),
            certain,
            "nothing of this is random: leave it out, or use --pattern permutation, --random or --level packet",
        ),
        rule(
            "--bytes",
            args.bytes.is_some(),
            sized_by_itself,
            "schedules and traces say how much is sent, and --sizes how large random messages are: leave it out",
        ),
        rule("--bytes", args.bytes.is_some(), sizeless, "a barrier carries no data: leave it out"),
        rule(
            "--root",
            work.root.is_some(),
            rootless,
            "only broadcast, reduce, gather and scatter have a root: leave it out",
        ),
        rule("--ranks-per-host", work.ranks_per_host.is_some(), !program, PROGRAMS),
        rule("--eager", work.eager.is_some(), !program, PROGRAMS),
        rule("--overhead-us", work.overhead_us.is_some(), !program, PROGRAMS),
    ]
}
