//! `espalier standby`: when a cable dies, hosts switch over as the plan stored.
//!
//! ```text
//!   whoever is free: look, set what differs, look ─▶ Report ─▶ Standby ─▶ PVIDs that are to hold, for every switch
//! ```
//! Each switch is looked at at its own pace, `--parallel` of them at a time: one that is silent holds one place.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use drivers::{
    credentials::Keyring,
    snmp::{Device, Glance},
};
use fabric::{HostId, LinkId, Plan, SwitchId, format::plan::ReadMode};
use rollout::standby::{News, Pvid, Stance, Standby, outlooks};
use serde_json::json;
use snmp::UdpLink;
use switch_model::{
    Slot,
    driver::{Driver as _, Fault},
    mark::{Mark, Phase},
    observe::{Drift, drift},
};

use super::{Output, controller, failure::moved_words, interrupt::Interrupt, rounds::Rounds, say};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::read_plan_file,
};

/// How long a thread may take to notice that it is to end, and a switch that does not answer at the start is left alone.
const GLANCE: Duration = Duration::from_millis(50);
const AGAIN: Duration = Duration::from_secs(2);

pub(super) fn run(args: &cli::Standby, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let interval = seconds("--interval", args.interval, 0.05..=60.0)?;
    let hold = seconds("--hold", args.hold, 0.0..=86_400.0)?;
    let drain = seconds("--drain", args.drain, 0.05..=60.0)?;
    let mut standby =
        Standby::new(&plan, hold, drain).map_err(|why| bad_input(format!("{}: {why}", args.plan.display())))?;
    let keyring = controller::keyring(&args.reach.credentials)?;
    let interrupt = Interrupt::watch_in_order()?;
    let teller = Teller { plan: &plan, output, started: Instant::now() };
    let Some(found) = start(&plan, &keyring, &args.reach, &interrupt, &teller)? else { return Ok(ExitCode::SUCCESS) };
    let (mark, devices) = match agree(&plan, found) {
        Ok(agreed) => agreed,
        Err(complaint) => {
            eprintln!("espalier: {complaint}");
            return Ok(ExitCode::from(FAILED));
        }
    };
    let (links, stopped) = standby.prepared();
    teller.ready(links, stopped)?;
    let fabric = Fabric { plan: &plan, keyring: &keyring, reach: &args.reach, mark, interval };
    fabric.attend(&mut standby, devices, &interrupt, &teller)
}

fn seconds(name: &str, value: f64, range: std::ops::RangeInclusive<f64>) -> Result<Duration> {
    if !range.contains(&value) {
        return Err(bad_input(format!("{name} is between {} and {} seconds", range.start(), range.end())));
    }
    Ok(Duration::from_secs_f64(value))
}

/// A switch, and the state in which it was found.
struct Found {
    device: Device<UdpLink>,
    mark: Option<Mark>,
    differs: Vec<String>,
}

/// Reads every switch, and waits for those that do not answer: what an earlier standby left may be theirs. None if
/// somebody does not want to wait.
fn start(
    plan: &Plan,
    keyring: &Keyring,
    reach: &cli::Reach,
    interrupt: &Interrupt,
    teller: &Teller<'_>,
) -> Result<Option<Vec<Found>>> {
    if let Some(switch) = plan.topology.switches().iter().find(|switch| switch.mgmt.is_none()) {
        return Err(bad_input(format!(
            "no management address for {}; add mgmt: to it in the topology and plan again",
            switch.name
        )));
    }
    let goals = controller::goals(plan);
    let one = |switch: SwitchId| -> Result<Found, Fault> {
        let mut device = controller::connect_one(plan, keyring, switch, reach)?;
        let reading = device.read()?;
        let ports = plan.topology.switch_ports(switch);
        let ours = |drift: &Drift| match drift {
            // Hosts that a standby moved; whether it was one is seen when all switches are known.
            Drift::Pvid { port, .. } => {
                let port = plan.topology.port(fabric::PortId::new(ports.start + port.index()));
                matches!(port.attachment, fabric::Attachment::Host(_))
            }
            _ => false,
        };
        let drifts = drift(&reading.config, &goals[switch.index()]);
        let foreign = drifts.iter().filter(|drift| !ours(drift));
        let differs = foreign.map(|drift| drift.sentence(&reading.config));
        Ok(Found { differs: differs.collect(), mark: reading.mark, device })
    };
    let mut found: BTreeMap<SwitchId, Found> = BTreeMap::new();
    let mut told = BTreeSet::new();
    loop {
        let missing: Vec<SwitchId> = plan.topology.switch_ids().filter(|switch| !found.contains_key(switch)).collect();
        if missing.is_empty() {
            return Ok(Some(found.into_values().collect()));
        }
        for (switch, answer) in missing.iter().zip(controller::at_once(missing.clone(), reach.parallel, one)) {
            match answer {
                Ok(answer) => {
                    found.insert(*switch, answer);
                }
                Err(fault) if told.insert(*switch) => teller.waits(*switch, &fault)?,
                Err(_) => {}
            }
        }
        let due = Instant::now() + AGAIN;
        while found.len() < plan.topology.switches().len() && Instant::now() < due {
            if interrupt.is_pressed() {
                return Ok(None);
            }
            thread::sleep(GLANCE);
        }
    }
}

/// The mark that all switches bear, if they hold the plan but for PVIDs of hosts' ports.
fn agree(plan: &Plan, found: Vec<Found>) -> Result<(Mark, Vec<Device<UdpLink>>), String> {
    let name = |index: usize| &plan.topology.switch(SwitchId::new(index)).name;
    let way_out = "espalier status with this plan says why and what to do first";
    let mut mark: Option<(usize, Mark)> = None;
    for (index, found) in found.iter().enumerate() {
        let Some(own) = found.mark else {
            return Err(format!("{} bears no deployment tag; deploy the plan, and stand by then", name(index)));
        };
        if own.phase == Phase::UnderWay {
            return Err(format!(
                "{} is in the middle of a deployment ({own}); end it where it was begun with espalier deploy --resume; \
                 {way_out}",
                name(index)
            ));
        }
        match mark {
            None => mark = Some((index, own)),
            Some((first, other)) if (other.generation, other.digest) != (own.generation, own.digest) => {
                return Err(format!(
                    "{} and {} bear tags of different deployments, {other} and {own}; {way_out}",
                    name(first),
                    name(index)
                ));
            }
            Some(_) => {}
        }
        if let Some(sentence) = found.differs.first() {
            return Err(format!("{} does not hold the plan: {sentence}; {way_out}", name(index)));
        }
    }
    let (_, mark) = mark.ok_or("the plan has no switches")?;
    Ok((mark, found.into_iter().map(|found| found.device).collect()))
}

/// What a switch is to hold, and when that was said.
#[derive(Clone, Default)]
struct Order {
    turn: u64,
    pvids: Vec<(Slot, Pvid)>,
}

/// What became of an order.
struct Report {
    switch: SwitchId,
    turn: u64,
    seen: Result<Glance, Fault>,
}

struct Fabric<'a> {
    plan: &'a Plan,
    keyring: &'a Keyring,
    reach: &'a cli::Reach,
    mark: Mark,
    interval: Duration,
}

impl Fabric<'_> {
    fn attend(
        &self,
        standby: &mut Standby,
        devices: Vec<Device<UdpLink>>,
        interrupt: &Interrupt,
        teller: &Teller<'_>,
    ) -> Result<ExitCode> {
        thread::scope(|scope| {
            let (reports, inbox) = mpsc::channel();
            let devices: Vec<Mutex<Option<Device<UdpLink>>>> =
                devices.into_iter().map(|device| Mutex::new(Some(device))).collect();
            let rounds = Arc::new(Rounds::new(devices.len(), self.interval, Instant::now()));
            let devices = Arc::new(devices);
            for _ in 0..devices.len().min(self.reach.parallel.max(1)) {
                let (reports, rounds, devices) = (reports.clone(), Arc::clone(&rounds), Arc::clone(&devices));
                scope.spawn(move || self.mind(&devices, &rounds, &reports));
            }
            drop(reports);
            let led = self.lead(standby, &rounds, &inbox, interrupt, teller);
            rounds.end();
            led
        })
    }

    /// Looks at whichever switch is due, again and again, and has it hold what was ordered last.
    fn mind(&self, devices: &[Mutex<Option<Device<UdpLink>>>], rounds: &Rounds<Order>, reports: &mpsc::Sender<Report>) {
        while let Some((at, order)) = rounds.next() {
            let switch = SwitchId::new(at);
            let mut device = devices[at].lock().unwrap_or_else(PoisonError::into_inner);
            let seen = self.tend(switch, &mut device, order.as_ref());
            if let Err(Fault::Refused(_)) = seen {
                // It may have restarted with other numbers for its ports.
                *device = None;
            }
            drop(device);
            let turn = order.as_ref().map_or(0, |order| order.turn);
            rounds.done(at, order.map_or(0, |order| order.turn), |order| order.turn);
            if reports.send(Report { switch, turn, seen }).is_err() {
                return;
            }
        }
    }

    fn tend(
        &self,
        switch: SwitchId,
        device: &mut Option<Device<UdpLink>>,
        order: Option<&Order>,
    ) -> Result<Glance, Fault> {
        let device = match device {
            Some(device) => device,
            None => device.insert(controller::connect_one(self.plan, self.keyring, switch, self.reach)?),
        };
        let seen = device.glance()?;
        let wrong = |order: &Order| -> Vec<(Slot, Pvid)> {
            let differs = |(slot, pvid): &&(Slot, Pvid)| seen.ports[slot.index()].pvid != *pvid;
            order.pvids.iter().filter(differs).copied().collect()
        };
        let wrong = order.map_or_else(Vec::new, wrong);
        if wrong.is_empty() || seen.mark.is_none_or(|mark| !self.is_ours(mark)) {
            return Ok(seen);
        }
        device.set_pvids(seen.mark.unwrap_or(self.mark), &wrong)?;
        device.glance()
    }

    /// Whether a switch still bears the deployment's mark. Nonces differ where a deployment was taken up again.
    fn is_ours(&self, mark: Mark) -> bool {
        (mark.generation, mark.digest) == (self.mark.generation, self.mark.digest)
    }

    fn host_ports(&self, switch: SwitchId) -> impl Iterator<Item = (HostId, Slot)> + '_ {
        let topology = &self.plan.topology;
        let first = topology.switch_ports(switch).start;
        topology.hosts_of(switch).iter().map(move |host| (*host, Slot::new(topology.host(*host).port.index() - first)))
    }

    /// Tells switches what to hold, by what they report, until somebody ends it.
    fn lead(
        &self,
        standby: &mut Standby,
        rounds: &Rounds<Order>,
        inbox: &mpsc::Receiver<Report>,
        interrupt: &Interrupt,
        teller: &Teller<'_>,
    ) -> Result<ExitCode> {
        let topology = &self.plan.topology;
        let started = Instant::now();
        let mut seen: Vec<Option<Glance>> = vec![None; topology.switches().len()];
        let mut turns = vec![0; topology.switches().len()];
        let mut faults: BTreeMap<SwitchId, Fault> = BTreeMap::new();
        let mut silent = BTreeSet::new();
        let (mut turn, mut told, mut is_up) = (0, None, false);
        while !interrupt.is_pressed() {
            let mut news = match inbox.recv_timeout(GLANCE) {
                Ok(report) => vec![report],
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            news.extend(inbox.try_iter());
            for Report { switch, turn, seen: answer } in news {
                match answer {
                    Ok(glance) => {
                        match glance.mark {
                            Some(mark) if self.is_ours(mark) => {}
                            Some(mark) => {
                                teller.ends(switch, mark)?;
                                return Ok(ExitCode::from(FAILED));
                            }
                            None => {
                                teller.untagged(switch)?;
                                return Ok(ExitCode::from(FAILED));
                            }
                        }
                        if faults.remove(&switch).is_some() {
                            teller.back(switch)?;
                        }
                        silent.remove(&switch);
                        (seen[switch.index()], turns[switch.index()]) = (Some(glance), turn);
                    }
                    Err(fault) => {
                        if faults.get(&switch) != Some(&fault) {
                            teller.fault(switch, &fault)?;
                        }
                        if fault == Fault::Silent {
                            seen[switch.index()] = None;
                            silent.insert(switch);
                        }
                        faults.insert(switch, fault);
                    }
                }
            }
            let running: Vec<Option<Vec<bool>>> = (seen.iter())
                .map(|glance| Some(glance.as_ref()?.ports.iter().map(|port| port.running).collect()))
                .collect();
            let links = outlooks(topology, &running);
            if !is_up {
                // Everybody has answered at the start; what they said of their hosts' ports is to be known of all at once.
                let Some(found) = self.found(&seen) else { continue };
                let down =
                    |(_, outlook): &(LinkId, &rollout::standby::Outlook)| **outlook == rollout::standby::Outlook::Down;
                let dead = topology.link_ids().zip(&links).filter(down).map(|(link, _)| link).collect();
                if let Err(host) = standby.take_up(&found, &dead) {
                    teller.foreign(host, found[host.index()])?;
                    return Ok(ExitCode::from(FAILED));
                }
                is_up = true;
            }
            let now = started.elapsed();
            standby.handle_links(now, &links, &silent);
            let behind: BTreeSet<SwitchId> = (topology.switch_ids())
                .filter(|switch| {
                    turns[switch.index()] != turn
                        || told != Some(standby.stance())
                        || self.lags(standby, *switch, &seen)
                })
                .collect();
            standby.handle_held(now, &behind, &silent);
            while let Some(news) = standby.poll_news() {
                teller.tell(news)?;
            }
            if told != Some(standby.stance()) {
                (told, turn) = (Some(standby.stance()), turn + 1);
                for switch in topology.switch_ids() {
                    let pvids = self.host_ports(switch).map(|(host, slot)| (slot, standby.pvid(host))).collect();
                    rounds.order(switch.index(), Order { turn, pvids }, Instant::now());
                }
            }
        }
        teller.left(standby.stance())?;
        Ok(ExitCode::SUCCESS)
    }

    /// `found[host]`: what its port has; none before every switch has been seen.
    fn found(&self, seen: &[Option<Glance>]) -> Option<Vec<Pvid>> {
        let topology = &self.plan.topology;
        let of = |host: HostId| {
            let switch = topology.switch_of(host);
            let slot = topology.host(host).port.index() - topology.switch_ports(switch).start;
            Some(seen[switch.index()].as_ref()?.ports[slot].pvid)
        };
        topology.host_ids().map(of).collect()
    }

    /// Whether a switch holds something else than it is to, or nobody knows.
    fn lags(&self, standby: &Standby, switch: SwitchId, seen: &[Option<Glance>]) -> bool {
        let Some(glance) = &seen[switch.index()] else { return true };
        self.host_ports(switch).any(|(host, slot)| glance.ports[slot.index()].pvid != standby.pvid(host))
    }
}

/// Says what happens.
struct Teller<'a> {
    plan: &'a Plan,
    output: Output,
    started: Instant,
}

impl Teller<'_> {
    fn say(&self, event: &str, subject: Option<&str>, words: &str) -> Result<()> {
        let at = self.started.elapsed().as_secs_f64();
        match self.output {
            Output::Person => say!("{at:9.2} s  {words}"),
            Output::Json => {
                say!(
                    "{}",
                    json!({ "at_s": (at * 1e3).round() / 1e3, "event": event, "subject": subject, "text": words })
                );
            }
        }
        Ok(())
    }

    fn switch(&self, switch: SwitchId) -> &str {
        &self.plan.topology.switch(switch).name
    }

    fn ready(&self, links: usize, stopped: usize) -> Result<()> {
        let care = match stopped {
            0 => String::new(),
            _ => format!("; for {stopped} of them hosts that move are stopped for a moment"),
        };
        let of = self.plan.topology.links().len();
        self.say("ready", None, &format!("standing by for the failure of any of {links} cables of {of}{care}"))
    }

    fn waits(&self, switch: SwitchId, fault: &Fault) -> Result<()> {
        let name = self.switch(switch);
        self.say("waiting", Some(name), &format!("waiting for {name}: {fault}"))
    }

    fn fault(&self, switch: SwitchId, fault: &Fault) -> Result<()> {
        let name = self.switch(switch);
        self.say("fault", Some(name), &format!("{name}: {fault}"))
    }

    fn back(&self, switch: SwitchId) -> Result<()> {
        let name = self.switch(switch);
        self.say("answers", Some(name), &format!("{name} answers again"))
    }

    fn ends(&self, switch: SwitchId, mark: Mark) -> Result<()> {
        let name = self.switch(switch);
        self.say("ended", Some(name), &format!("{name} was set up by somebody else, {mark}: this standby ends"))
    }

    fn untagged(&self, switch: SwitchId) -> Result<()> {
        let name = self.switch(switch);
        let words = format!(
            "{name} bears no deployment tag any more, so nobody knows what it holds: this standby ends; deploy the plan, and stand by then"
        );
        self.say("untagged", Some(name), &words)
    }

    fn foreign(&self, host: HostId, pvid: Pvid) -> Result<()> {
        let name = &self.plan.topology.host(host).name;
        let pvid = pvid.map_or_else(|| "takes no untagged frames".to_owned(), |vlan| format!("has PVID {vlan}"));
        self.say(
            "foreign",
            Some(name),
            &format!(
                "the port of {name} {pvid}, as no switch-over of the plan has it; deploy the plan, and stand by then"
            ),
        )
    }

    fn left(&self, stance: Stance) -> Result<()> {
        match stance {
            Stance::Home => self.say("left", None, "ended; all hosts send as the plan has it"),
            Stance::Gathering => self.say("left", None, "ended in the middle of a change; start it again soon"),
            Stance::Over(link) | Stance::Stopped(link) => {
                let label = self.plan.topology.link_label(link);
                let words = format!("ended in the middle of what the failure of {label} asks for; start it again soon");
                self.say("left", Some(&label), &words)
            }
        }
    }

    fn tell(&self, news: News) -> Result<()> {
        let label = |link: LinkId| self.plan.topology.link_label(link);
        let moved = |link: LinkId| {
            let over = self.plan.failover.as_ref().and_then(|failover| failover.switch_over(link));
            over.map_or_else(String::new, |over| moved_words(self.plan, over))
        };
        match news {
            News::Failed(link) => {
                self.say("failed", Some(&label(link)), &format!("{} is down: {}", label(link), moved(link)))
            }
            News::Missed(link) => {
                self.say("failed", Some(&label(link)), &format!("{} is down, which no frame needs", label(link)))
            }
            News::Dividing(link) => {
                let words =
                    format!("{} is down, and nothing runs beside it: hosts are cut off from each other", label(link));
                self.say("divided", Some(&label(link)), &words)
            }
            News::Second(link) => {
                let words = format!(
                    "{} is down as well, and nothing is stored for two: mend either, or plan again",
                    label(link)
                );
                self.say("second", Some(&label(link)), &words)
            }
            News::Healed(link) => self.say("healed", Some(&label(link)), &format!("{} carries again", label(link))),
            News::Holds(Stance::Home) => self.say("home", None, "all hosts send as the plan has it"),
            News::Holds(Stance::Over(link)) => {
                self.say("over", Some(&label(link)), &format!("hosts have switched over, away from {}", label(link)))
            }
            News::Holds(Stance::Gathering) => {
                self.say("gathering", None, "hosts that were found in the middle of a change are stopped, and go home")
            }
            News::Holds(Stance::Stopped(link)) => self.say(
                "stopped",
                Some(&label(link)),
                &format!("hosts that {} concerns are stopped until their frames are gone", label(link)),
            ),
            News::CannotStop(link, switch) | News::Waits(link, switch) => {
                let name = self.switch(switch);
                let words = format!(
                    "{name} does not do what {} asks for, and without it nothing may change; the next try is in a minute",
                    label(link)
                );
                self.say("waits", Some(name), &words)
            }
        }
    }
}
