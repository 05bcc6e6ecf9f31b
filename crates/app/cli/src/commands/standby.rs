//! `espalier standby`: when a cable dies, hosts switch over as the plan stored.

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use controller::{Disagreement, StandbyEvent, StandbyRequest, StandbyResult, stand_by};
use fabric::{HostId, LinkId, Plan, SwitchId, format::plan::ReadMode};
use rollout::{
    bonds::BondNotice,
    standby::{ActiveVlans, Standby, StandbyNotice},
};
use switch_model::driver::Fault;

use super::{Output, event_log::EventLog, failure::moved_words, interrupt::Interrupt, reach};
use crate::{
    cli,
    count::counted,
    failure::{FAILED, bad_input},
    files::read_plan_file,
};

pub(super) fn run(args: &cli::Standby, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let request = StandbyRequest {
        plan: &plan,
        interval: seconds("--interval", args.interval, 0.05..=60.0)?,
        hold: seconds("--hold", args.hold, 0.0..=86_400.0)?,
        drain: seconds("--drain", args.drain, 0.05..=60.0)?,
    };
    // What is wrong with the plan comes before what is wrong with the credentials.
    Standby::new(&plan, request.hold, request.drain)
        .map_err(|why| bad_input(format!("{}: {why}", args.plan.display())))?;
    let (keyring, options) = (reach::keyring(&args.reach)?, reach::options(&args.reach));
    let interrupt = Interrupt::watch_in_order()?;
    let teller = Teller(EventLog::begin(&plan, output));
    // Whoever reads what is printed may go away; then there is nobody to stand by for.
    let mut unread = None;
    let token = interrupt.token();
    let result = stand_by(&request, (&keyring, &options), &interrupt.token(), &mut |event| {
        if let Err(error) = teller.event(event) {
            unread.get_or_insert(error);
            token.cancel();
        }
    })?;
    unread.map_or_else(|| teller.ended(result), Err)
}

fn seconds(name: &str, value: f64, range: std::ops::RangeInclusive<f64>) -> Result<Duration> {
    if !range.contains(&value) {
        return Err(bad_input(format!("{name} is between {} and {} seconds", range.start(), range.end())));
    }
    Ok(Duration::from_secs_f64(value))
}

/// Why the switches do not hold the plan, and the way out; `then` is what to do after that.
pub(super) fn disagreement(plan: &Plan, why: &Disagreement, then: &str) -> String {
    let name = |switch: SwitchId| &plan.topology.switch(switch).name;
    let way_out = "espalier status with this plan says why and what to do first";
    match why {
        Disagreement::NoTag(switch) => {
            format!("{} bears no deployment tag; deploy the plan, and {then}", name(*switch))
        }
        Disagreement::UnderWay(switch, mark) => format!(
            "{} is in the middle of a deployment ({mark}); end it where it was begun with espalier deploy --resume; {way_out}",
            name(*switch)
        ),
        Disagreement::Tags([(first, one), (second, other)]) => format!(
            "{} and {} bear tags of different deployments, {one} and {other}; {way_out}",
            name(*first),
            name(*second)
        ),
        Disagreement::Differs(switch, sentence) => {
            format!("{} does not hold the plan: {sentence}; {way_out}", name(*switch))
        }
    }
}

/// Says what happens.
struct Teller<'a>(EventLog<'a>);

impl Teller<'_> {
    fn ready(&self, links: usize, stopped: usize, bonds: usize) -> Result<()> {
        let care = match stopped {
            0 => String::new(),
            _ => format!("; for {stopped} of them hosts that move are stopped for a moment"),
        };
        let of = self.0.plan.topology.links().len();
        let cables = match &self.0.plan.failover {
            Some(_) => format!("any of {links} cables of {of}{care}"),
            None => String::new(),
        };
        let bonds = match bonds {
            0 => String::new(),
            _ => format!("the active port of {}", counted(bonds, "failover bond")),
        };
        let of_what: Vec<String> = [cables, bonds].into_iter().filter(|words| !words.is_empty()).collect();
        self.0.say("ready", None, &format!("standing by for the failure of {}", of_what.join(", and of ")))
    }

    fn waits(&self, switch: SwitchId, fault: &Fault) -> Result<()> {
        let name = self.0.switch(switch);
        self.0.say("waiting", Some(name), &format!("waiting for {name}: {fault}"))
    }

    fn fault(&self, switch: SwitchId, fault: &Fault) -> Result<()> {
        let name = self.0.switch(switch);
        self.0.say("fault", Some(name), &format!("{name}: {fault}"))
    }

    fn back(&self, switch: SwitchId) -> Result<()> {
        let name = self.0.switch(switch);
        self.0.say("answers", Some(name), &format!("{name} answers again"))
    }

    /// How it ended; whether it was asked to.
    fn ended(&self, result: StandbyResult) -> Result<ExitCode> {
        match result {
            StandbyResult::Interrupted => return Ok(ExitCode::SUCCESS),
            StandbyResult::Unprepared(why) => eprintln!("espalier: {why}"),
            StandbyResult::Left(active) => {
                self.left(active)?;
                return Ok(ExitCode::SUCCESS);
            }
            StandbyResult::Disagreement(why) => {
                eprintln!("espalier: {}", disagreement(self.0.plan, &why, "stand by then"))
            }
            StandbyResult::Superseded(switch, mark) => {
                let name = self.0.switch(switch);
                self.0.say(
                    "ended",
                    Some(name),
                    &format!("{name} was set up by somebody else, {mark}: this standby ends"),
                )?;
            }
            StandbyResult::Untagged(switch) => {
                let name = self.0.switch(switch);
                let words = format!(
                    "{name} bears no deployment tag any more, so nobody knows what it holds: this standby ends; deploy the plan, and stand by then"
                );
                self.0.say("untagged", Some(name), &words)?;
            }
            StandbyResult::Foreign(host, pvid) => {
                let name = &self.0.plan.topology.host(host).name;
                let pvid =
                    pvid.map_or_else(|| "takes no untagged frames".to_owned(), |vlan| format!("has PVID {vlan}"));
                let words = format!(
                    "the port of {name} {pvid}, as no switch-over of the plan has it; deploy the plan, and stand by then"
                );
                self.0.say("foreign", Some(name), &words)?;
            }
        }
        Ok(ExitCode::from(FAILED))
    }

    fn event(&self, event: StandbyEvent) -> Result<()> {
        match event {
            StandbyEvent::Waits(switch, fault) => self.waits(switch, &fault),
            StandbyEvent::Ready { links, stopped, bonds } => self.ready(links, stopped, bonds),
            StandbyEvent::Fault(switch, fault) => self.fault(switch, &fault),
            StandbyEvent::Answers(switch) => self.back(switch),
            StandbyEvent::Notice(notice) => self.tell(notice),
            StandbyEvent::Bond(notice) => self.tell_of_bond(notice),
        }
    }

    fn tell_of_bond(&self, notice: BondNotice) -> Result<()> {
        let topology = &self.0.plan.topology;
        let port = |host: HostId| {
            let host = topology.host(host);
            (host.name.as_str(), topology.port_label(host.port))
        };
        match notice {
            BondNotice::Moves { from, to } => {
                let ((from, _), (to, at)) = (port(from), port(to));
                let words = format!("{to} at {at} takes over from {from}: entries for its addresses turn there");
                self.0.say("bond-moves", Some(to), &words)
            }
            BondNotice::Down(active) => {
                let (name, at) = port(active);
                let machine = &topology.machine(topology.host(active).machine).name;
                let words =
                    format!("{name} at {at} is down, and no other port of {machine} is up: {machine} is unreachable");
                self.0.say("bond-down", Some(name), &words)
            }
        }
    }

    fn left(&self, active: ActiveVlans) -> Result<()> {
        match active {
            ActiveVlans::Planned => self.0.say("left", None, "ended; all hosts send as the plan has it"),
            ActiveVlans::Gathering => self.0.say("left", None, "ended in the middle of a change; start it again soon"),
            ActiveVlans::Backup(link) | ActiveVlans::Stopped(link) => {
                let label = self.0.plan.topology.link_label(link);
                let words = format!("ended in the middle of what the failure of {label} asks for; start it again soon");
                self.0.say("left", Some(&label), &words)
            }
        }
    }

    fn tell(&self, notice: StandbyNotice) -> Result<()> {
        let label = |link: LinkId| self.0.plan.topology.link_label(link);
        let moved = |link: LinkId| {
            let over = self.0.plan.failover.as_ref().and_then(|failover| failover.switch_over(link));
            over.map_or_else(String::new, |over| moved_words(self.0.plan, over))
        };
        match notice {
            StandbyNotice::Failed(link) => {
                self.0.say("failed", Some(&label(link)), &format!("{} is down: {}", label(link), moved(link)))
            }
            StandbyNotice::Missed(link) => {
                self.0.say("failed", Some(&label(link)), &format!("{} is down, which no frame needs", label(link)))
            }
            StandbyNotice::Dividing(link) => {
                let words =
                    format!("{} is down, and nothing runs beside it: hosts are cut off from each other", label(link));
                self.0.say("divided", Some(&label(link)), &words)
            }
            StandbyNotice::Second(link) => {
                let words = format!(
                    "{} is down as well, and nothing is stored for two: mend either, or plan again",
                    label(link)
                );
                self.0.say("second", Some(&label(link)), &words)
            }
            StandbyNotice::Healed(link) => {
                self.0.say("healed", Some(&label(link)), &format!("{} carries again", label(link)))
            }
            StandbyNotice::Holds(ActiveVlans::Planned) => self.0.say("home", None, "all hosts send as the plan has it"),
            StandbyNotice::Holds(ActiveVlans::Backup(link)) => {
                self.0.say("over", Some(&label(link)), &format!("hosts have switched over, away from {}", label(link)))
            }
            StandbyNotice::Holds(ActiveVlans::Gathering) => self.0.say(
                "gathering",
                None,
                "hosts that were found in the middle of a change are stopped, and go home",
            ),
            StandbyNotice::Holds(ActiveVlans::Stopped(link)) => self.0.say(
                "stopped",
                Some(&label(link)),
                &format!("hosts that {} concerns are stopped until their frames are gone", label(link)),
            ),
            StandbyNotice::CannotStop(link, switch) | StandbyNotice::Waits(link, switch) => {
                let name = self.0.switch(switch);
                let words = format!(
                    "{name} does not do what {} asks for, and without it nothing may change; the next try is in a minute",
                    label(link)
                );
                self.0.say("waits", Some(name), &words)
            }
        }
    }
}
