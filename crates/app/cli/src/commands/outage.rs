//! `espalier show PLAN --failure sw3,sw4` and `--failures`: how many pairs of hosts lose their path.

use anyhow::Result;
use fabric::{Group, HostId, Plan, SwitchId, format::table::Table};
use serde_json::json;
use verify::{Losses, Outage, links_lost_at_most, losses, switch_losses};

use super::{Output, say};
use crate::count::{abridged, counted};

/// Hosts and parts named in one line; the rest are counted.
const NAMES_MAX: usize = 12;
/// Switches that are listed; the rest lose no more.
const SWITCHES_MAX: usize = 20;
/// Groups that are listed; the rest lose no more.
const GROUPS_MAX: usize = 20;

/// Parts that fail together.
pub(super) fn show(plan: &Plan, outage: &Outage, output: Output) -> Result<()> {
    let losses = losses(plan, outage);
    let topology = &plan.topology;
    let switches: Vec<&str> = outage.switches.iter().map(|switch| topology.switch(*switch).name.as_str()).collect();
    let links: Vec<String> = outage.links.iter().map(|link| topology.link_label(*link)).collect();
    if output == Output::Json {
        let mut object = json_of(plan, &losses);
        (object["switches"], object["links"]) = (json!(switches), json!(links));
        say!("{object}");
        return Ok(());
    }
    let parts: Vec<&str> = switches.into_iter().chain(links.iter().map(String::as_str)).collect();
    say!("without {}", abridged(&parts, ", ", NAMES_MAX));
    let hosts = |hosts: &[HostId]| {
        let names: Vec<&str> = hosts.iter().map(|host| topology.host(*host).name.as_str()).collect();
        abridged(&names, " ", NAMES_MAX)
    };
    let Losses { cut_off, taking_over, pairs, lost, divided } = &losses;
    if !cut_off.is_empty() {
        say!("cut off          {}: {}", counted(cut_off.len(), "host"), hosts(cut_off));
    }
    if !taking_over.is_empty() {
        say!("taken over       by {}: {}", counted(taking_over.len(), "standby port"), hosts(taking_over));
    }
    let until = match (*divided, lost - divided) {
        (0, _) => ", until the fabric is planned again".to_owned(),
        (_, 0) => ": no other path exists".to_owned(),
        (divided, others) => {
            format!(": {others} until the fabric is planned again, for {divided} no other path exists")
        }
    };
    say!("lost             {lost} of {pairs} pairs of other hosts{until}");
    if *lost > *divided {
        say!("way out          {}", way_out(&parts));
    }
    Ok(())
}

/// How the fabric does without the parts.
fn way_out(parts: &[&str]) -> String {
    let drains: String = parts.iter().map(|part| format!(" --drain '{part}'")).collect();
    format!("plan again with --previous and{drains}, and deploy the new plan")
}

/// Every switch by itself, and the most that two links cost.
pub(super) fn show_all(plan: &Plan, output: Output) -> Result<()> {
    let topology = &plan.topology;
    let alone = switch_losses(plan);
    let groups: Vec<(&str, Losses)> = (topology.groups().iter())
        .map(|Group { name, switches, links }| {
            let outage =
                Outage { switches: switches.iter().copied().collect(), links: links.iter().copied().collect() };
            (name.as_str(), losses(plan, &outage))
        })
        .collect();
    let (one, two) = (links_lost_at_most(plan, 1), links_lost_at_most(plan, 2));
    if output == Output::Json {
        let switches: Vec<_> = (topology.switch_ids().zip(&alone))
            .map(|(switch, losses)| {
                let mut object = json_of(plan, losses);
                object["switch"] = json!(topology.switch(switch).name);
                object
            })
            .collect();
        let mut object = json!({ "switches": switches, "one_link_at_most": one, "two_links_at_most": two });
        if !groups.is_empty() {
            let of_group = |(name, losses): &(&str, Losses)| {
                let mut object = json_of(plan, losses);
                object["group"] = json!(name);
                object
            };
            object["groups"] = groups.iter().map(of_group).collect();
        }
        say!("{object}");
        return Ok(());
    }
    let mut worst: Vec<(SwitchId, &Losses)> = topology.switch_ids().zip(&alone).collect();
    worst.sort_by_key(|(switch, losses)| (std::cmp::Reverse((losses.lost, losses.cut_off.len())), *switch));
    let mut table = Table::new(["without", "hosts cut off", "pairs lost", "of", "no other path"]);
    let shown = worst.iter().take(SWITCHES_MAX);
    let shown = shown.map(|(switch, losses)| (topology.switch(*switch).name.as_str(), *losses));
    let mut worst_groups: Vec<(&str, &Losses)> = groups.iter().map(|(name, losses)| (*name, losses)).collect();
    worst_groups.sort_by_key(|(name, losses)| (std::cmp::Reverse((losses.lost, losses.cut_off.len())), *name));
    for (name, Losses { cut_off, pairs, lost, divided, .. }) in shown.chain(worst_groups.into_iter().take(GROUPS_MAX)) {
        let figures = [cut_off.len(), *lost, *pairs, *divided].map(|figure| figure.to_string());
        table.row(std::iter::once(name.to_owned()).chain(figures));
    }
    say!("{table}");
    if worst.len() > SWITCHES_MAX {
        say!("the other {} lose no more", counted(worst.len() - SWITCHES_MAX, "switch"));
    }
    if groups.len() > GROUPS_MAX {
        say!("the other {} lose no more", counted(groups.len() - GROUPS_MAX, "group"));
    }
    let stored = if plan.failover.is_some() { ", for which switch-overs are stored" } else { "" };
    if plan.failover.as_ref().is_some_and(|failover| failover.summary.switches.is_some()) {
        say!("any one switch   pairs lost as above until hosts have switched over; see show --failure SWITCH");
    }
    if plan.failover.as_ref().is_some_and(|failover| failover.summary.groups.is_some()) {
        say!("any one group    the same; see show --failure GROUP");
    }
    say!("any one link     {one} pairs at most{stored}");
    let stored = if plan.policy.resilience.protects_link_pairs() { stored } else { "" };
    say!("any two links    {two} pairs at most{stored}");
    Ok(())
}

fn json_of(plan: &Plan, losses: &Losses) -> serde_json::Value {
    let names = |hosts: &[HostId]| hosts.iter().map(|host| plan.topology.host(*host).name.clone()).collect::<Vec<_>>();
    let Losses { cut_off, taking_over, pairs, lost, divided } = losses;
    json!({
        "cut_off": names(cut_off), "taking_over": names(taking_over), "pairs": pairs, "lost": lost, "divided": divided,
    })
}
