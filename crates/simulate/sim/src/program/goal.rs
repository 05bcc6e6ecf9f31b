//! GOAL schedules as text, read and written.
//!
//! ```text
//!   num_ranks 2
//!   rank 0 {
//!     l1: calc 1000 cpu 0            nanoseconds
//!     l2: send 64b to 1 tag 7 cpu 0
//!     l2 requires l1                 l2 begins when l1 has ended; irequires: when it has begun
//!   }
//!   rank 1 {
//!     l1: recv 64b from 0 tag 7
//!   }
//! ```
//! Labels are a rank's own and stand before their use. `nic` is read and ignored; a receive's size is not checked; `any`
//! or `-1` takes any sender or tag. Comments are `# …`, `// …` and `/* … */`.
//!
//! Source: Hoefler, Siebert and Lumsdaine, "Group operation assembly language", 2009; the text form is that of
//! `LogGOPSim` (Hoefler, Schneider and Lumsdaine, 2010).

mod tokens;
mod write;

use std::collections::BTreeMap;

use self::tokens::{Token, tokens};
pub use self::write::write_goal;
use super::{
    Action, ActionId, Builder, COLLECTIVE_TAG, MESSAGE_BYTES_MAX, Program, RANKS_MAX, Until,
    text::{Mistakes, quoted},
};

/// Nanoseconds in an action's unit.
const PS_PER_NS: u64 = 1000;

/// Reads a schedule; `file` is its name in mistakes. Cost: O(text · log labels).
///
/// # Errors
/// Every mistake, with its line.
pub fn read_goal(file: &str, text: &str) -> Result<Program, Mistakes> {
    let mut mistakes = Mistakes::default();
    let tokens = tokens(file, text, &mut mistakes);
    let mut reader = Reader { file, tokens: &tokens, at: 0, mistakes };
    let builder = reader.schedule();
    let mut mistakes = reader.mistakes;
    match builder {
        Some(builder) if mistakes.is_empty() => builder.build().map_err(|error| {
            mistakes.push(file, 1, error.to_string());
            mistakes
        }),
        _ => Err(mistakes),
    }
}

struct Reader<'a> {
    file: &'a str,
    tokens: &'a [Token<'a>],
    at: usize,
    mistakes: Mistakes,
}

impl<'a> Reader<'a> {
    fn schedule(&mut self) -> Option<Builder> {
        let ranks = self.heading()?;
        let mut builder = Builder::new(ranks);
        let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
        while self.at < self.tokens.len() && !self.mistakes.is_full() {
            let line = self.line();
            if self.take() != "rank" {
                self.at -= 1;
                self.wrong(format!("expected `rank`, and here is {}", quoted(self.peek())));
                // A brace that nobody opened is stepped over, or one would stay before it.
                self.at += usize::from(self.peek() == "}");
                self.skip_line();
                continue;
            }
            let Some(rank) = self.number::<u32>("the rank's number") else {
                self.skip_line();
                continue;
            };
            if rank as usize >= ranks {
                self.mistakes.push(
                    self.file,
                    line,
                    format!("rank {rank} of num_ranks {ranks}; the last is {}", ranks - 1),
                );
            }
            if let Some(first) = seen.insert(rank, line) {
                self.mistakes.push(
                    self.file,
                    line,
                    format!("rank {rank} is there twice, first on line {first}; join the two"),
                );
            }
            if self.peek() != "{" {
                self.wrong(format!("expected {{ after rank {rank}, and here is {}", quoted(self.peek())));
                continue;
            }
            self.at += 1;
            let mut strange = Builder::new(ranks);
            let known = (rank as usize) < ranks;
            self.body(if known { &mut builder } else { &mut strange }, if known { rank } else { 0 }, line);
        }
        Some(builder)
    }

    fn heading(&mut self) -> Option<usize> {
        if self.peek() != "num_ranks" {
            self.wrong(format!("a schedule begins with `num_ranks N`, and here is {}", quoted(self.peek())));
            return None;
        }
        self.at += 1;
        let line = self.line();
        let ranks = self.number::<usize>("how many ranks there are")?;
        if ranks == 0 || ranks > RANKS_MAX {
            self.mistakes.push(self.file, line, format!("num_ranks is 1 to {RANKS_MAX}, not {ranks}"));
            return None;
        }
        Some(ranks)
    }

    /// Statements up to the closing brace.
    fn body(&mut self, builder: &mut Builder, rank: u32, opened: usize) {
        let mut labels: BTreeMap<&'a str, ActionId> = BTreeMap::new();
        while !self.mistakes.is_full() {
            if self.at >= self.tokens.len() {
                self.mistakes.push(
                    self.file,
                    opened,
                    format!("rank {rank} begins here and does not end; close it with }}"),
                );
                return;
            }
            if self.peek() == "}" {
                self.at += 1;
                return;
            }
            if self.statement(builder, rank, &mut labels).is_none() {
                self.skip_line();
            }
        }
    }

    fn statement(&mut self, builder: &mut Builder, rank: u32, labels: &mut BTreeMap<&'a str, ActionId>) -> Option<()> {
        let next = |reader: &Self, ahead: usize| reader.tokens.get(reader.at + ahead).map_or("", |(word, _)| *word);
        if next(self, 1) == ":" {
            let (label, line) = self.tokens[self.at];
            self.at += 2;
            let action = self.action(builder.ranks())?;
            let id = builder.add(rank, action);
            if labels.insert(label, id).is_some() {
                self.mistakes.push(self.file, line, format!("label {} is there twice in rank {rank}", quoted(label)));
            }
            return Some(());
        }
        let until = match next(self, 1) {
            "requires" => Until::End,
            "irequires" => Until::Start,
            _ => {
                let action = self.action(builder.ranks())?;
                builder.add(rank, action);
                return Some(());
            }
        };
        let follower = self.label(rank, labels)?;
        self.at += 1;
        let of = self.label(rank, labels)?;
        builder.after(follower, of, until);
        Some(())
    }

    fn label(&mut self, rank: u32, labels: &BTreeMap<&'a str, ActionId>) -> Option<ActionId> {
        let id = labels.get(self.peek()).copied();
        if id.is_none() {
            self.wrong(format!("no action of rank {rank} before here is called {}", quoted(self.peek())));
        }
        self.at += 1;
        id
    }

    fn action(&mut self, ranks: usize) -> Option<Action> {
        match self.peek() {
            "calc" => {
                self.at += 1;
                let ps = self.time()?;
                let (_, cpu) = self.options()?;
                Some(Action::Compute { ps, cpu })
            }
            "wait" => {
                self.at += 1;
                Some(Action::Wait { ps: self.time()? })
            }
            "send" => {
                self.at += 1;
                let bytes = self.size()?;
                let to = self.peer("to", ranks)?;
                let Some(to) = to else {
                    self.wrong("a message is sent to one rank, not to any");
                    return None;
                };
                let (tag, cpu) = self.options()?;
                let Some(tag) = tag.unwrap_or(Some(0)) else {
                    self.wrong("a message has one tag, not any");
                    return None;
                };
                Some(Action::Send { to, tag, bytes, cpu })
            }
            "recv" => {
                self.at += 1;
                self.size()?;
                let from = self.peer("from", ranks)?;
                let (tag, cpu) = self.options()?;
                Some(Action::Receive { from, tag: tag.unwrap_or(Some(0)), cpu })
            }
            other => {
                self.wrong(format!("expected send, recv, calc, or `A requires B`, and here is {}", quoted(other)));
                None
            }
        }
    }

    /// A time in nanoseconds, with at most three digits behind the point.
    fn time(&mut self) -> Option<u64> {
        let word = self.peek();
        let (whole, rest) = word.split_once('.').unwrap_or((word, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let ps = (digits(whole) && digits(rest) && rest.len() <= 3)
            .then(|| {
                let rest: u64 = format!("{rest:0<3}").parse().ok()?;
                whole.parse::<u64>().ok()?.checked_mul(PS_PER_NS)?.checked_add(rest)
            })
            .flatten()
            .filter(|ps| *ps <= super::ACTION_PS_MAX);
        if ps.is_none() {
            self.wrong(format!("expected a time in nanoseconds, 11 days at most, and here is {}", quoted(word)));
            return None;
        }
        self.at += 1;
        ps
    }

    fn size(&mut self) -> Option<u64> {
        let word = self.peek();
        let bytes = word.strip_suffix('b').and_then(|digits| digits.parse().ok());
        match bytes.filter(|bytes| *bytes <= MESSAGE_BYTES_MAX) {
            Some(bytes) => {
                self.at += 1;
                Some(bytes)
            }
            None => {
                self.wrong(format!(
                    "expected a size such as 64b, {MESSAGE_BYTES_MAX} at most, and here is {}",
                    quoted(word)
                ));
                None
            }
        }
    }

    fn peer(&mut self, word: &str, ranks: usize) -> Option<Option<u32>> {
        if self.peek() != word {
            self.wrong(format!("expected `{word}` and a rank, and here is {}", quoted(self.peek())));
            return None;
        }
        self.at += 1;
        let peer = self.number_or_any("a rank")?;
        if let Some(peer) = peer.filter(|peer| *peer as usize >= ranks) {
            self.at -= 1;
            self.wrong(format!("rank {peer} of num_ranks {ranks}; the last is {}", ranks - 1));
            return None;
        }
        Some(peer)
    }

    /// Tag (none if there is none) and processor.
    fn options(&mut self) -> Option<(Option<Option<u32>>, u16)> {
        let (mut tag, mut cpu) = (None, 0);
        loop {
            match self.peek() {
                "tag" => {
                    self.at += 1;
                    let found = self.number_or_any("a tag")?;
                    if found.is_some_and(|found| found > COLLECTIVE_TAG) {
                        self.at -= 1;
                        self.wrong(format!("a tag is at most {COLLECTIVE_TAG}"));
                        return None;
                    }
                    tag = Some(found);
                }
                "cpu" => {
                    self.at += 1;
                    cpu = self.number("a processor")?;
                }
                "nic" => {
                    self.at += 1;
                    self.number::<u16>("a network interface")?;
                }
                _ => return Some((tag, cpu)),
            }
        }
    }

    fn number_or_any(&mut self, what: &str) -> Option<Option<u32>> {
        if matches!(self.peek(), "any" | "-1") {
            self.at += 1;
            return Some(None);
        }
        self.number(what).map(Some)
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Option<T> {
        let word = self.peek();
        let number = if word.bytes().all(|byte| byte.is_ascii_digit()) { word.parse().ok() } else { None };
        match number {
            Some(number) => {
                self.at += 1;
                Some(number)
            }
            None => {
                self.wrong(format!("expected {what}, and here is {}", quoted(word)));
                None
            }
        }
    }

    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).map_or("", |(word, _)| word)
    }

    fn take(&mut self) -> &'a str {
        self.at += 1;
        self.tokens[self.at - 1].0
    }

    /// The line of the next word, or of the last if none is left.
    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(_, line)| *line)
    }

    fn wrong(&mut self, message: impl Into<String>) {
        let line = self.line();
        self.mistakes.push(self.file, line, message);
    }

    /// To the next line, or to a closing brace on this one.
    fn skip_line(&mut self) {
        let line = self.line();
        while self.at < self.tokens.len() && self.line() == line && self.peek() != "}" {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<String> {
        read_goal("s.goal", text).expect_err("wrong").items().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_schedule_is_read_and_written() {
        let text = "num_ranks 2 // two\nrank 0 { /* first\n */ a: calc 1000 cpu 1\nb: send 64b to 1 tag 7 nic 0\n\
            b requires a\nrecv 1b from any tag any }\nrank 1 {\nl1: recv 64b from 0 tag 7\nl2: send 1b to 0\n\
            l2 irequires l1\n}\n";
        let program = read_goal("s.goal", text).expect("a schedule");
        assert_eq!(program.actions(0)[0], Action::Compute { ps: 1_000_000, cpu: 1 });
        assert_eq!(program.actions(0)[2], Action::Receive { from: None, tag: None, cpu: 0 });
        assert_eq!(program.orders(0).collect::<Vec<_>>(), [(1, 0, Until::End)]);
        assert_eq!(program.orders(1).collect::<Vec<_>>(), [(1, 0, Until::Start)]);
        let mut written = Vec::new();
        write_goal(&program, &mut written).expect("memory");
        let written = String::from_utf8(written).expect("text");
        assert!(written.contains("recv 64b from 0 tag 7"), "{written}");
        assert_eq!(read_goal("w.goal", &written).expect("a schedule"), program);
    }

    #[test]
    fn mistakes_say_where_they_are() {
        let text = "num_ranks 2\nrank 0 {\nl1: send 5 to 1\nl1: snd 5b to 1\nl2: send 5b to 2\nl3 requires l1\n\
            l4: calc x\n}\nrank 0 {\n}\nrank 7 { }\nrank 1 {\n";
        assert_eq!(
            mistakes(text),
            [
                "s.goal:3: expected a size such as 64b, 1099511627776 at most, and here is \"5\"",
                "s.goal:4: expected send, recv, calc, or `A requires B`, and here is \"snd\"",
                "s.goal:5: rank 2 of num_ranks 2; the last is 1",
                "s.goal:6: no action of rank 0 before here is called \"l3\"",
                "s.goal:7: expected a time in nanoseconds, 11 days at most, and here is \"x\"",
                "s.goal:9: rank 0 is there twice, first on line 2; join the two",
                "s.goal:11: rank 7 of num_ranks 2; the last is 1",
                "s.goal:12: rank 1 begins here and does not end; close it with }",
            ]
        );
        assert_eq!(mistakes(""), ["s.goal:1: a schedule begins with `num_ranks N`, and here is \"\""]);
        assert_eq!(mistakes("num_ranks 1\n}\n"), ["s.goal:2: expected `rank`, and here is \"}\""]);
        assert_eq!(mistakes("num_ranks 0"), ["s.goal:1: num_ranks is 1 to 65536, not 0"]);
        assert_eq!(
            mistakes("num_ranks 1\n/* x"),
            ["s.goal:2: the comment that begins here does not end; close it with */"]
        );
        assert_eq!(
            mistakes("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}"),
            ["s.goal:1: actions of rank 0 depend on each other in a cycle"]
        );
    }
}
