//! `espalier tagger`: a host that tags its own frames.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use fabric::{
    FlowControl, Mac, VlanId,
    format::{plan::ReadMode, table::Table},
};
use tagger::{
    Config, Spread, TaggingTable,
    config::Failover,
    daemon::{self, Notice},
    device::{self, Tagged},
    health::{Settings, Verdict, Why},
    links::Links,
    paths::Paths,
    plan::{self, PlanError},
};

use super::{
    Output,
    heartbeats::{TaggerHeartbeats, Verdicts},
    interrupt::Interrupt,
    say,
    through::Through,
};
use crate::{
    cli::{self, TaggerCommand, TaggerSource},
    failure::bad_input,
    files::{read_plan_file, read_text, write_file},
};

pub(super) fn run(args: &cli::Tagger, controller: &cli::Controller, output: Output) -> Result<ExitCode> {
    match &args.command {
        TaggerCommand::Config { plan: path, spread, dscp, output: to } => {
            let plan = read_plan_file(path, ReadMode::Strict)?;
            let unfit = |error| unfit(&path.display().to_string(), &error);
            let mut config = plan::config(&plan, *spread).map_err(unfit)?;
            if *dscp {
                config.classes = plan::by_dscp(&plan).map_err(unfit)?;
            }
            write_file(to, |out| out.write_all(config.text().as_bytes()))?;
            if plan.policy.flow_control != FlowControl::None && plan.trees.len() > 1 {
                eprintln!(
                    "note: this plan uses flow control, and the configuration does not say which paths are proven free of deadlock; \
                     hosts that leave failed paths need the plan: tagger run --plan"
                );
            }
        }
        TaggerCommand::Attach { device, source, room, rto_min } => {
            let Tables { table, .. } = tables(device, source)?;
            let tagged = device::attach(device, &table, *room)?;
            rto_min.map_or(Ok(()), |floor_ms| retransmit_after(device, floor_ms))?;
            eprintln!("{device} tags: {} destinations, VLANs {}", table.destinations.len(), table.receive);
            if output == Output::Json {
                say!(
                    "{}",
                    serde_json::json!({ "device": device, "destinations": table.destinations.len(), "room": tagged.room() })
                );
            }
        }
        TaggerCommand::Detach { device } => {
            device::detach(device)?;
            eprintln!("{device} does not tag");
        }
        TaggerCommand::Status { device } => status(&Tagged::open(device)?, output)?,
        TaggerCommand::Run { device, source, room, probes, silence, rto_min, heartbeat } => {
            // Files of the controller's are read while they can be.
            let through = Through::of(controller)?;
            let Tables { table, paths, links } = tables(device, source)?;
            let tagged = device::attach(device, &table, *room)?;
            retransmit_after(device, *rto_min)?;
            let interrupt = Interrupt::watch_in_order()?;
            eprintln!(
                "{device} tags: {} destinations; watching {} paths",
                table.destinations.len(),
                paths.groups().len()
            );
            let silence_ns = u64::from(*silence) * 1_000_000;
            let settings = Settings { probes_per_s_max: *probes, silence_ns, ..Settings::default() };
            let prepared = daemon::prepare(&tagged)?;
            linux_net::privileges::keep_only(linux_net::privileges::Capability::Bpf).context("give up privileges")?;
            let heartbeats = through.as_ref().map(|through| TaggerHeartbeats {
                endpoint: &through.endpoint,
                tagged: &tagged,
                paths: &paths,
                vlans: &table.receive,
                every_s: u64::from(*heartbeat),
                verdicts: Verdicts::default(),
            });
            let is_over = AtomicBool::new(false);
            let stop = || interrupt.is_pressed() || is_over.load(Ordering::SeqCst);
            thread::scope(|scope| {
                if let Some(heartbeats) = &heartbeats {
                    scope.spawn(|| heartbeats.send(&stop));
                }
                let done = daemon::run(&prepared, &table, &paths, settings, links, &stop, &mut |notice| {
                    if let Some(heartbeats) = &heartbeats {
                        heartbeats.note(&notice);
                    }
                    tell(&notice);
                });
                is_over.store(true, Ordering::SeqCst);
                done
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(notice: &Notice) {
    let what = match notice.verdict {
        Verdict::Healthy => "healthy",
        Verdict::Sick(Why::Silent) => "silent",
        Verdict::Sick(Why::Lossy) => "lossy",
        Verdict::Sick(Why::Late) => "late",
    };
    eprintln!("VLAN {} toward {}: {what}; {} destinations moved", notice.vlan, notice.toward, notice.moved);
}

/// How soon TCP sends again on the device's subnets; 0 is as Linux would.
fn retransmit_after(device: &str, floor_ms: u32) -> Result<()> {
    let floor = (floor_ms > 0).then(|| Duration::from_millis(floor_ms.into()));
    let subnets = device::set_rto_min(device, floor)?;
    if floor.is_some() {
        eprintln!("{device}: TCP sends again after {floor_ms} ms at the earliest, on {subnets} subnets of it");
    }
    Ok(())
}

/// A host's table and paths, and the links of the plan where it places flows.
struct Tables {
    table: TaggingTable,
    paths: Paths,
    links: Option<Links>,
}

fn tables(device: &str, source: &TaggerSource) -> Result<Tables> {
    let strange = |name: &str, own: Mac| bad_input(format!("{name}: {device} is {own}, which is not listed there"));
    match (&source.config, &source.plan) {
        (Some(path), _) => {
            let (name, text) = read_text(path)?;
            let config = Config::parse(&name, &text).map_err(|error| bad_input(error.to_string()))?;
            let own = device::address(device)?;
            let table = config.table(own).map_err(|own| strange(&name, own))?;
            let hosts = config.hosts.iter().map(|(mac, line)| (*mac, line.switch.as_deref()));
            if config.spread == Spread::Placed {
                eprintln!(
                    "note: {name} does not say which links a VLAN uses, so all flows stay in their first VLAN; to place flows: \
                     tagger run --plan PLAN --spread placed"
                );
            }
            let paths = Paths::new(own, hosts, &config.vlans);
            let paths = match config.failover {
                Failover::Any => paths,
                Failover::None => paths.only_where(|_, _| false),
            };
            Ok(Tables { table, paths, links: None })
        }
        (None, Some(path)) => {
            let name = path.display().to_string();
            let plan = read_plan_file(path, ReadMode::Strict)?;
            let own = device::address(device)?;
            let host = plan::host_of(&plan.topology, own).ok_or_else(|| strange(&name, own))?;
            let mut table =
                plan::table(&plan, host, source.spread).ok_or_else(|| unfit(&name, &PlanError::BySwitch))?;
            if source.dscp {
                table.classes = plan::by_dscp(&plan).map_err(|error| unfit(&name, &error))?;
            }
            let topology = &plan.topology;
            let hosts = topology.host_ids().flat_map(|host| {
                let switch = Some(topology.switch(topology.switch_of(host)).name.as_str());
                topology.host(host).macs().map(move |mac| (mac, switch))
            });
            let number = topology.hosts_by_mac();
            let safe: BTreeMap<VlanId, Vec<bool>> =
                table.receive.iter().map(|vlan| (vlan, plan::safe(&plan, vlan, host))).collect();
            let may = |to: Mac, vlan| safe[&vlan][topology.switch_of(number[&to]).index()];
            let paths = Paths::new(own, hosts, &table.receive).only_where(may);
            let links = (source.spread == Spread::Placed).then(|| Links::of(&plan));
            Ok(Tables { table, paths, links })
        }
        (None, None) => Err(bad_input("name a configuration (--config) or a plan (--plan)")),
    }
}

fn unfit(name: &str, error: &PlanError) -> anyhow::Error {
    bad_input(format!("{name}: {error}"))
}

fn status(tagged: &Tagged, output: Output) -> Result<()> {
    let (table, counters) = (tagged.table()?, tagged.counters()?);
    let count = |mac: &Mac| counters.destinations.get(mac).copied().unwrap_or_default();
    let name = |mac: &Mac| if *mac == Mac::BROADCAST { "groups, unknown".to_owned() } else { mac.to_string() };
    let routes: Vec<_> =
        table.destinations.iter().chain(table.group.iter().map(|route| (&Mac::BROADCAST, route))).collect();
    if output == Output::Json {
        let destinations: Vec<_> = (routes.iter())
            .map(|(mac, route)| {
                let vlans: Vec<u16> = route.choices().iter().map(|vlan| vlan.get()).collect();
                let count = count(mac);
                serde_json::json!({
                    "destination": name(mac), "vlans": vlans, "frames": count.frames, "bytes": count.bytes,
                })
            })
            .collect();
        let vlans: Vec<_> = (counters.vlans.iter())
            .map(|(vlan, count)| {
                serde_json::json!({
                    "vlan": vlan.get(), "sent_frames": count.sent.frames, "sent_bytes": count.sent.bytes,
                    "received_frames": count.received.frames, "received_bytes": count.received.bytes,
                })
            })
            .collect();
        let events: serde_json::Map<String, serde_json::Value> =
            counters.events.iter().map(|(event, count)| (event.word().to_owned(), (*count).into())).collect();
        say!(
            "{}",
            serde_json::json!({
                "device": tagged.device(), "address": tagged.mac().to_string(), "room": tagged.room(),
                "receives": table.receive.to_string(), "classes": table.classes.lines(), "destinations": destinations, "vlans": vlans, "events": events,
            })
        );
        return Ok(());
    }
    say!("{} ({}): receives VLANs {}", tagged.device(), tagged.mac(), table.receive);
    for line in table.classes.lines() {
        say!("class {line}");
    }
    let mut lines = Table::new(["destination", "VLANs", "frames", "bytes"]);
    for (mac, route) in routes {
        let count = count(mac);
        lines.row([name(mac), route.to_string(), count.frames.to_string(), count.bytes.to_string()]);
    }
    say!("{lines}");
    let mut lines = Table::new(["VLAN", "frames out", "bytes out", "frames in", "bytes in"]);
    for (vlan, count) in &counters.vlans {
        lines.row([
            vlan.to_string(),
            count.sent.frames.to_string(),
            count.sent.bytes.to_string(),
            count.received.frames.to_string(),
            count.received.bytes.to_string(),
        ]);
    }
    say!("{lines}");
    for (event, count) in &counters.events {
        say!("{}: {count}", event.word());
    }
    Ok(())
}
