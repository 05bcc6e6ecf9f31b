//! Forwarding tables as runs: compared, cut and overlaid without ever being written out host by host.
//!
//! ```text
//!   before   v2: 0-5 ▶ p1              compared: 0-2 the same, 3 changed to p2, 4-5 removed, 6 added
//!   after    v2: 0-2 ▶ p1  3,6 ▶ p2
//! ```
//! Both are in ascending order, so one sweep over the two suffices.

use fabric::{FdbRun, HostId, PortId};

/// Sweeps over two tables: `visit` gets each stretch of hosts with its port before and after, ascending, none twice.
/// Cost: O(runs).
pub(crate) fn sweep(
    before: &[FdbRun],
    after: &[FdbRun],
    mut visit: impl FnMut(FdbRun, Option<PortId>, Option<PortId>),
) {
    let (mut old, mut new) = (before.iter().copied(), after.iter().copied());
    let (mut a, mut b) = (old.next(), new.next());
    loop {
        match (a, b) {
            (None, None) => return,
            (Some(run), None) => {
                visit(run, Some(run.port), None);
                a = old.next();
            }
            (None, Some(run)) => {
                visit(run, None, Some(run.port));
                b = new.next();
            }
            (Some(one), Some(other)) => {
                let (start, begin) = ((one.vlan, one.first), (other.vlan, other.first));
                if start < begin {
                    // What comes before the other begins stands alone.
                    let whole = one.vlan < other.vlan || one.last < other.first;
                    let last = if whole { one.last } else { before_host(other.first) };
                    visit(FdbRun { last, ..one }, Some(one.port), None);
                    a = if whole { old.next() } else { Some(FdbRun { first: other.first, ..one }) };
                } else if begin < start {
                    let whole = other.vlan < one.vlan || other.last < one.first;
                    let last = if whole { other.last } else { before_host(one.first) };
                    visit(FdbRun { last, ..other }, None, Some(other.port));
                    b = if whole { new.next() } else { Some(FdbRun { first: one.first, ..other }) };
                } else {
                    let last = one.last.min(other.last);
                    visit(FdbRun { last, ..other }, Some(one.port), Some(other.port));
                    a = rest(one, last).or_else(|| old.next());
                    b = rest(other, last).or_else(|| new.next());
                }
            }
        }
    }
}

/// Sorts runs that do not overlap, and ties together those that follow each other.
pub(crate) fn tidy(mut runs: Vec<FdbRun>) -> Vec<FdbRun> {
    runs.sort_unstable();
    let mut tidy: Vec<FdbRun> = Vec::with_capacity(runs.len());
    for run in runs {
        match tidy.last_mut() {
            Some(last) if (last.vlan, last.port, last.last.index() + 1) == (run.vlan, run.port, run.first.index()) => {
                last.last = run.last;
            }
            _ => tidy.push(run),
        }
    }
    tidy
}

/// The table with these entries set, whatever was there before.
pub(crate) fn set(table: &[FdbRun], entries: &[FdbRun]) -> Vec<FdbRun> {
    let mut runs = Vec::with_capacity(table.len() + entries.len());
    sweep(table, entries, |run, before, after| runs.extend(after.or(before).map(|port| FdbRun { port, ..run })));
    tidy(runs)
}

/// The table without these entries, wherever they lead.
pub(crate) fn unset(table: &[FdbRun], entries: &[FdbRun]) -> Vec<FdbRun> {
    let mut runs = Vec::with_capacity(table.len());
    sweep(table, entries, |run, before, after| {
        if after.is_none() {
            runs.extend(before.map(|port| FdbRun { port, ..run }));
        }
    });
    tidy(runs)
}

fn before_host(host: HostId) -> HostId {
    HostId::new(host.index() - 1)
}

fn rest(run: FdbRun, done: HostId) -> Option<FdbRun> {
    (run.last > done).then(|| FdbRun { first: HostId::new(done.index() + 1), ..run })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::{VlanId, rng::Rng};

    fn table(text: &[(u16, usize, usize, usize)]) -> Vec<FdbRun> {
        let run = |&(vlan, first, last, port): &(u16, usize, usize, usize)| FdbRun {
            vlan: VlanId::new(vlan).expect("valid"),
            first: HostId::new(first),
            last: HostId::new(last),
            port: PortId::new(port),
        };
        text.iter().map(run).collect()
    }

    #[test]
    fn the_drawn_example() {
        let (before, after) = (table(&[(2, 0, 5, 1)]), table(&[(2, 0, 2, 1), (2, 3, 3, 2), (2, 6, 6, 2)]));
        let mut seen = Vec::new();
        sweep(&before, &after, |run, old, new| {
            seen.push((run.first.index(), run.last.index(), old.map(PortId::index), new.map(PortId::index)));
        });
        let expect = [(0, 2, Some(1), Some(1)), (3, 3, Some(1), Some(2)), (4, 5, Some(1), None), (6, 6, None, Some(2))];
        assert_eq!(seen, expect);
    }

    #[test]
    fn setting_and_unsetting_lead_from_any_table_to_any_other() {
        let mut rng = Rng::new(7);
        let mut random = || {
            let mut entries = Vec::new();
            for vlan in 2..4 {
                for host in 0..12 {
                    if rng.below(3) > 0 {
                        entries.push((vlan, host, host, rng.below(2)));
                    }
                }
            }
            tidy(table(&entries))
        };
        for _ in 0..200 {
            let (before, after) = (random(), random());
            let mut gone = Vec::new();
            sweep(&before, &after, |run, _, new| gone.extend(new.is_none().then_some(run)));
            assert_eq!(unset(&set(&before, &after), &tidy(gone)), after);
        }
    }
}
