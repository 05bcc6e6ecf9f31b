//! Runs of numbers, `0-3,8`: ascending, disjoint, and kept as they are cut, so that what is read is what was written.

use std::fmt::Write;

/// Appends the run `first..=last`, after a comma unless it is the first of the text.
pub(super) fn push_run(text: &mut String, first: usize, last: usize) {
    if !text.is_empty() {
        text.push(',');
    }
    let written = if first == last { write!(text, "{first}") } else { write!(text, "{first}-{last}") };
    written.expect("writing to a string");
}

/// Writes ascending numbers as the fewest runs.
pub(super) fn join_runs(numbers: impl Iterator<Item = usize>) -> String {
    let mut text = String::new();
    let mut open: Option<(usize, usize)> = None;
    for number in numbers {
        match &mut open {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => {
                if let Some((first, last)) = open.replace((number, number)) {
                    push_run(&mut text, first, last);
                }
            }
        }
    }
    if let Some((first, last)) = open {
        push_run(&mut text, first, last);
    }
    text
}

/// Reads runs of numbers below `count`, `what` being their name in errors.
pub(super) fn parse_runs(text: &str, what: &str, count: usize) -> Result<Vec<(usize, usize)>, String> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(format!(
                "{:?} is no run of {what}s such as 0-3 or 8",
                part.chars().take(40).collect::<String>()
            ));
        };
        if first > last {
            return Err(format!("the run {first}-{last} runs backwards"));
        }
        if last >= count {
            return Err(format!("there is no {what} {last}: the last is {}", count as i128 - 1));
        }
        if runs.last().is_some_and(|&(_, before)| first <= before) {
            return Err(format!("{what} {first} comes after a greater or equal one: runs ascend"));
        }
        runs.push((first, last));
    }
    Ok(runs)
}

fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_and_read_back() {
        for (numbers, text) in [(vec![], ""), (vec![0], "0"), (vec![0, 1, 2, 3, 8], "0-3,8"), (vec![4, 6, 7], "4,6-7")]
        {
            assert_eq!(join_runs(numbers.iter().copied()), text);
            let read = parse_runs(text, "host", 9).expect("runs");
            assert_eq!(read.into_iter().flat_map(|(first, last)| first..=last).collect::<Vec<_>>(), numbers);
        }
        assert_eq!(parse_runs("0-1,2", "host", 9), Ok(vec![(0, 1), (2, 2)]), "runs stay as they are cut");
    }

    #[test]
    fn broken_runs_are_refused() {
        for text in ["9", "0-9", "3-2", "1,1", "0-3,3", "2,1", ",", "1,", "-", "1-", "-1", "+1", "a", "1-2-3", " 1"] {
            assert!(parse_runs(text, "host", 9).is_err(), "{text}");
        }
        assert!(parse_runs("99999999999999999999999999", "host", 9).is_err());
        assert!(parse_runs("0", "host", 0).is_err());
    }
}
