//! The command that deploys, to be given again.

use std::fmt::Write as _;

use controller::deploy_words::{DeployCommand, WayOn, quoted};

use crate::cli;

/// How a person goes on after this command.
pub(super) fn way_on(args: &cli::Deploy) -> WayOn {
    let may_plan_around = args.around_unconfirmed.is_none() && !args.resume;
    WayOn::CommandLine(DeployCommand {
        plan: args.plan.display().to_string(),
        again: again(args),
        reach: reach(args),
        around: may_plan_around.then_some("--around-unconfirmed around.json"),
        confirm: (!args.confirm_by_link_state).then_some("--confirm-by-link-state"),
    })
}

/// The command that was given, to be given again.
fn again(args: &cli::Deploy) -> String {
    let mut command = format!("espalier deploy {}{}", quoted(&args.plan.display().to_string()), reach(args));
    if args.state.as_os_str() != ".espalier" {
        let _ = write!(command, " --state {}", quoted(&args.state.display().to_string()));
    }
    if let Some(since) = &args.since {
        let _ = write!(command, " --since {}", quoted(&since.display().to_string()));
    }
    if let Some(program) = &args.hosts_program {
        let _ = write!(command, " --hosts-program {}", quoted(&program.display().to_string()));
    }
    if let Some(addresses) = &args.addresses {
        let _ = write!(command, " --addresses {}", quoted(&addresses.display().to_string()));
    }
    let words = [(args.resume, " --resume"), (args.take_over, " --take-over"), (args.dry_run, " --dry-run")];
    command.extend(words.into_iter().filter(|(given, _)| *given).map(|(_, word)| word));
    for switch in &args.replaced {
        let _ = write!(command, " --replaced {}", quoted(switch));
    }
    for link in &args.trust_cabling {
        let _ = write!(command, " --trust-cabling {}", quoted(link));
    }
    command
}

/// How the switches are reached, as options.
fn reach(args: &cli::Deploy) -> String {
    let mut options = String::new();
    if args.reach.credentials.as_os_str() != "credentials.toml" {
        let _ = write!(options, " --credentials {}", quoted(&args.reach.credentials.display().to_string()));
    }
    if args.reach.port != 161 {
        let _ = write!(options, " --port {}", args.reach.port);
    }
    options
}
