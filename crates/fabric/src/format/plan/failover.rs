//! The section of a plan file about what to do when a link, a switch or a group fails.

use std::io;

use super::{
    json::{Located, Read},
    lines::{Quoted, commas, push_field, write_list},
    numbering::numbering,
};
use crate::{
    Failover, FailoverSummary, Failure, GroupId, HostId, HostRun, LinkId, PairRun, PartCoverage, Proof, SwitchId,
    SwitchOver, Topology, VlanId, format::report::failover_fields,
};

/// The field that says how long the most loaded channel takes after the worst failure.
const TIME: &str = "max_channel_time";

/// Writes the section, a line a switch-over and a line a numbering.
pub(super) fn write_failover(failover: &Failover, out: &mut impl io::Write) -> io::Result<()> {
    let switch_overs = failover.switch_overs.iter().map(switch_over_line);
    write_list(out, "\"failover\":{\"switch_overs\":[", switch_overs, "],\n")?;
    let numberings = failover.numberings.iter().map(|numbering| {
        let lanes: Vec<String> = numbering.rank.iter().map(|ranks| format!("[{}]", commas(ranks))).collect();
        format!("{{\"ranks\":[{}]}}", lanes.join(","))
    });
    write_list(out, "\"numberings\":[", numberings, "],\n")?;
    let mut figures = String::new();
    failover_fields(&failover.summary).iter().for_each(|(name, value)| push_field(&mut figures, name, value));
    writeln!(out, "\"summary\":{{{figures}}}}},")
}

fn switch_over_line(over: &SwitchOver) -> String {
    let SwitchOver { failure, hosts, pairs, proof } = over;
    let mut text = String::new();
    match failure {
        Failure::Link(link) => push_field(&mut text, "link", link.index()),
        Failure::Switch(switch) => push_field(&mut text, "switch", switch.index()),
        Failure::Group(group) => push_field(&mut text, "group", group.index()),
    }
    let run = |run: &HostRun<VlanId>| format!("{},{},{}", run.first.index(), run.last.index(), run.choice);
    let runs: Vec<String> = hosts.iter().map(|hosts| format!("[{}]", run(hosts))).collect();
    push_field(&mut text, "hosts", format_args!("[{}]", runs.join(",")));
    if !pairs.is_empty() {
        let runs: Vec<String> =
            pairs.iter().map(|pair| format!("[{},{}]", pair.source.index(), run(&pair.run))).collect();
        push_field(&mut text, "pairs", format_args!("[{}]", runs.join(",")));
    }
    let proof = match proof {
        Proof::Unneeded => "unneeded".to_owned(),
        Proof::Certificate => "certificate".to_owned(),
        Proof::Numbering(number) => format!("numbering {number}"),
        Proof::Drained(number) => format!("drained {number}"),
    };
    push_field(&mut text, "proof", Quoted(proof));
    format!("{{{text}}}")
}

/// Reads the section.
pub(super) fn failover(topology: &Topology, at: &Located<'_>) -> Read<Failover> {
    at.only(&["switch_overs", "numberings", "summary"])?;
    let numberings = at.field("numberings")?.items()?.map(|at| numbering(topology, &at)).collect::<Read<Vec<_>>>()?;
    let mut switch_overs: Vec<SwitchOver> = Vec::new();
    for at in at.field("switch_overs")?.items()? {
        let over = switch_over(topology, numberings.len(), &at)?;
        if switch_overs.last().is_some_and(|before| before.failure >= over.failure) {
            return Err(at.error("switch-overs ascend by link, then by switch, then by group, one each"));
        }
        switch_overs.push(over);
    }
    let at = at.field("summary")?;
    let whole = |name| at.field(name)?.whole::<usize>();
    // Older files count pairs, as if all links had one rate.
    let time = if at.optional(TIME)?.is_some() { TIME } else { "max_channel_load" };
    let coverage = |covered, dividing| -> Read<Option<PartCoverage>> {
        match at.optional(covered)? {
            Some(_) => Ok(Some(PartCoverage { covered: whole(covered)?, dividing: whole(dividing)? })),
            None => Ok(None),
        }
    };
    let summary = FailoverSummary {
        links_covered: whole("links_covered")?,
        links_dividing: whole("links_dividing")?,
        switches: coverage("switches_covered", "switches_dividing")?,
        groups: coverage("groups_covered", "groups_dividing")?,
        drained: whole("drained")?,
        max_channel_time: at.field(time)?.number()?,
        vlans_extra: whole("vlans_extra")?,
        fdb_entries_extra: whole("fdb_entries_extra")?,
    };
    let fields = failover_fields(&summary).into_iter().map(|(name, _)| if name == TIME { time } else { name });
    at.only(&fields.collect::<Vec<_>>())?;
    Ok(Failover { switch_overs, numberings, summary })
}

fn switch_over(topology: &Topology, numberings: usize, at: &Located<'_>) -> Read<SwitchOver> {
    at.only(&["link", "switch", "group", "hosts", "pairs", "proof"])?;
    let failure = match (at.optional("group")?, at.optional("switch")?, at.optional("link")?) {
        (Some(at), None, None) => Failure::Group(GroupId::new(at.index("group", topology.groups().len())?)),
        (None, Some(at), None) => Failure::Switch(SwitchId::new(at.index("switch", topology.switches().len())?)),
        (None, None, Some(at)) => Failure::Link(LinkId::new(at.index("link", topology.links().len())?)),
        _ => return Err(at.error("a switch-over is for a link, for a switch or for a group")),
    };
    let mut hosts: Vec<HostRun<VlanId>> = Vec::new();
    for at in at.field("hosts")?.items()? {
        let parts: Vec<Located<'_>> = at.items_for(3, "parts (first host, last host, VLAN)")?.collect();
        let run = host_run(topology, &parts, &at)?;
        if hosts.last().is_some_and(|before| before.last >= run.first) {
            return Err(at.error("runs of hosts ascend"));
        }
        hosts.push(run);
    }
    let mut pairs: Vec<PairRun> = Vec::new();
    if let Some(at) = at.optional("pairs")? {
        for at in at.items()? {
            let parts: Vec<Located<'_>> =
                at.items_for(4, "parts (sender, first receiver, last receiver, VLAN)")?.collect();
            let source = HostId::new(parts[0].index("host", topology.hosts().len())?);
            let run = host_run(topology, &parts[1..], &at)?;
            if pairs.last().is_some_and(|before| (before.source, before.run.last) >= (source, run.first)) {
                return Err(at.error("runs of pairs ascend by sender and receiver"));
            }
            pairs.push(PairRun { source, run });
        }
    }
    let proof = at.field("proof")?;
    let numbered = |word: &str| {
        let number = proof.text().ok()?.strip_prefix(word)?.strip_prefix(' ')?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse::<usize>().ok())?
    };
    let proof = match (proof.text()?, numbered("numbering"), numbered("drained")) {
        ("unneeded", ..) => Proof::Unneeded,
        ("certificate", ..) => Proof::Certificate,
        (_, Some(number), _) if number < numberings => Proof::Numbering(number),
        (_, _, Some(number)) if number < numberings => Proof::Drained(number),
        (other, ..) => {
            let words = "unneeded, certificate, and numbering or drained with the number of one that there is";
            return Err(proof.error(format!("{other:?} is none of {words}")));
        }
    };
    Ok(SwitchOver { failure, hosts, pairs, proof })
}

fn host_run(topology: &Topology, parts: &[Located<'_>], whole: &Located<'_>) -> Read<HostRun<VlanId>> {
    let count = topology.hosts().len();
    let (first, last) = (parts[0].index("host", count)?, parts[1].index("host", count)?);
    if first > last {
        return Err(whole.error(format!("the run {first}-{last} runs backwards")));
    }
    Ok(HostRun { first: HostId::new(first), last: HostId::new(last), choice: parts[2].vlan()? })
}
