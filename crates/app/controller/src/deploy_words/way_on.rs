//! How a person goes on after a deployment: the commands that sentences name.

use std::fmt::Write as _;

use fabric::{EngineName, FdbMode, FlowControl, Plan, Policy, Resilience, Tagging, Topology};

/// Whose deployment it is, and so which commands lead on.
#[derive(Clone, Debug)]
pub enum WayOn {
    /// `espalier deploy`.
    CommandLine(DeployCommand),
    /// `espalierd`.
    Controller,
}

/// The command that deploys.
#[derive(Clone, Debug)]
pub struct DeployCommand {
    /// The plan's file.
    pub plan: String,
    /// The whole command, to be given again.
    pub again: String,
    /// Its options that say how switches are reached, each after a blank.
    pub reach: String,
    /// The option that plans around unconfirmed cables, if it may be added.
    pub around: Option<&'static str>,
    /// The option that confirms cables by their link state, if it may be added.
    pub confirm: Option<&'static str>,
}

impl WayOn {
    /// The command that deploys the same once more.
    pub fn again(&self) -> &str {
        match self {
            Self::CommandLine(command) => &command.again,
            Self::Controller => "espalierd retry",
        }
    }

    /// The commands that plan for what is there, with the policy of the plan.
    pub(super) fn plan_anew(&self, plan: &Plan) -> String {
        let addresses: Vec<String> =
            plan.topology.switches().iter().filter_map(|switch| Some(switch.mgmt?.to_string())).collect();
        let (reach, deploy) = match self {
            Self::CommandLine(command) => {
                (command.reach.as_str(), format!("espalier deploy new.json{}", command.reach))
            }
            Self::Controller => ("", "espalierd propose new.json".to_owned()),
        };
        format!(
            "espalier discover {}{reach} -o found.yaml && espalier plan found.yaml{} -o new.json && {deploy}",
            addresses.join(" "),
            options(&plan.policy, &plan.topology)
        )
    }
}

/// A policy as options of `plan`, those left out that are the default.
fn options(policy: &Policy, topology: &Topology) -> String {
    let mut options = String::new();
    let mut option = |given: bool, name: &str, value: String| {
        if given {
            let _ = write!(options, " --{name} {value}");
        }
    };
    option(policy.engine != EngineName::Auto, "engine", policy.engine.to_string());
    option(policy.tagging != Tagging::Switch, "tagging", policy.tagging.to_string());
    option(policy.flow_control != FlowControl::Pause, "flow-control", policy.flow_control.to_string());
    option(policy.fdb != FdbMode::Minimal, "fdb", policy.fdb.to_string());
    option(policy.resilience != Resilience::None, "resilience", policy.resilience.to_string());
    option(policy.paths_max > 1, "paths", policy.paths_max.to_string());
    option(policy.vlans_max.is_some(), "max-vlans", policy.vlans_max.unwrap_or(0).to_string());
    let whole = (policy.vlans.first.get(), policy.vlans.last.get()) == (2, 4094);
    option(!whole, "vlans", format!("{}-{}", policy.vlans.first, policy.vlans.last));
    option(policy.vlans.reserved.to_string() != "1002-1005", "reserved-vlans", policy.vlans.reserved.to_string());
    if let Some(in_band) = topology.in_band() {
        let controller = quoted(&topology.port_label(in_band.controller));
        let _ = write!(options, " --management-vlan {} --controller {controller}", in_band.vlan);
    }
    options
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+@:,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
