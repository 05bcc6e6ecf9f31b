//! Time-independent traces of MPI programs, as SimGrid's SMPI writes them.
//!
//! ```text
//!   0 init
//!   0 compute 1.105e+08        work, in SimGrid's flop
//!   0 irecv 2 1 18750 0        peer, tag, count, type
//!   0 send 2 1 18750 0
//!   0 wait 2 0 1               sender, receiver, tag of the request
//!   0 allreduce 10 0 0         count, work, type
//!   0 repeat 250               what follows, up to `end`, so many times; not known to SimGrid
//!   0 end
//!   0 finalize
//! ```
//! One file a rank, or all in one; the first word of a line is the rank. A process does one thing after the other, so each
//! line waits for the one before, but for `isend` and `irecv`, for which `wait` waits. Collectives become messages, in
//! the algorithm that [`Reading`] names.
//!
//! Source: the reader of SimGrid 3.32's `smpirun -replay`, whose numbers of types these are.

use std::collections::{BTreeMap, VecDeque};

use super::{
    ACTION_PS_MAX, Action, ActionId, Builder, MESSAGE_BYTES_MAX, Program, RANKS_MAX,
    collective::{self, Algorithm, Collective, Operation},
    text::{Mistakes, quoted},
};

/// How a trace becomes a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Picoseconds of one flop.
    pub ps_per_flop: f64,
    /// Algorithms of collectives; [`Algorithm::Auto`] where none is named. An all-to-all of unequal blocks is linear
    /// unless an algorithm is named.
    pub algorithms: Vec<(Collective, Algorithm)>,
    /// Most lines, those of a repetition counted each time.
    pub lines_max: u64,
}

impl Default for Reading {
    /// A flop a nanosecond; 67 million lines.
    fn default() -> Self {
        Self { ps_per_flop: 1000.0, algorithms: Vec::new(), lines_max: 1 << 26 }
    }
}

/// Reads traces, file by file; `files` are names (for mistakes) and texts. Cost: O(text · log ranks).
///
/// # Errors
/// Every mistake, with its file and line.
pub fn read_traces(files: &[(&str, &str)], reading: &Reading) -> Result<Program, Mistakes> {
    let mut reader = Reader::new(reading, count_ranks(files));
    files.iter().for_each(|(file, text)| reader.file(file, text));
    reader.finish(files.first().map_or("", |(file, _)| file))
}

/// Ranks are numbered from 0, so that the highest says how many there are.
fn count_ranks(files: &[(&str, &str)]) -> usize {
    let lines = files.iter().flat_map(|(_, text)| text.lines());
    let ranks = lines.filter_map(|line| line.split_ascii_whitespace().next()?.parse::<usize>().ok());
    ranks.filter(|rank| *rank < RANKS_MAX).max().map_or(0, |last| last + 1)
}

/// Sender (none for any), receiver and tag of a request.
type Key = (Option<u32>, u32, u32);

struct Reader<'a> {
    reading: &'a Reading,
    builder: Builder,
    ranks: Vec<Process>,
    lines_left: u64,
    mistakes: Mistakes,
}

/// Lines that are read again.
struct Repetition<'a> {
    /// The first word of each of them.
    rank: &'a str,
    /// The line of its `repeat`.
    number: usize,
    /// How often they are still to be read.
    left: u64,
}

/// What is known of a rank while its lines are read.
#[derive(Clone, Default)]
struct Process {
    /// Requests that nobody has waited for.
    requests: BTreeMap<Key, VecDeque<ActionId>>,
    /// Octets of a type that is not named.
    default_bytes: u64,
    /// A request may have been found done by `test`.
    tests: bool,
}

impl<'a> Reader<'a> {
    fn new(reading: &'a Reading, ranks: usize) -> Self {
        let process = Process { default_bytes: 1, ..Process::default() };
        Self {
            reading,
            builder: Builder::new(ranks),
            ranks: vec![process; ranks],
            lines_left: reading.lines_max,
            mistakes: Mistakes::default(),
        }
    }

    fn file(&mut self, file: &str, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let (mut words, mut open, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(line) = lines.get(at) {
            at += 1;
            words.clear();
            words.extend(line.split_ascii_whitespace());
            if words.is_empty() || words[0].starts_with('#') {
                continue;
            }
            if self.lines_left == 0 {
                let most = self.reading.lines_max;
                return self.mistakes.push(file, at, format!("more than {most} lines, each repetition counted"));
            }
            self.lines_left -= 1;
            match self.structured(&words, &mut open, at) {
                Ok(next) => at = next,
                Err(message) => {
                    self.mistakes.push(file, at, message);
                    // Once said is enough.
                    open.iter_mut().for_each(|repetition| repetition.left = 1);
                }
            }
            if self.mistakes.is_full() {
                return;
            }
        }
        for Repetition { number, .. } in open {
            self.mistakes.push(file, number, "the repetition has no end");
        }
    }

    /// Reads line `number`, which may begin or end a repetition; how many lines are behind the reader then.
    fn structured<'t>(
        &mut self,
        words: &[&'t str],
        open: &mut Vec<Repetition<'t>>,
        number: usize,
    ) -> Result<usize, String> {
        if open.last().is_some_and(|repetition| repetition.rank != words[0]) {
            return Err("a repetition holds lines of one rank".to_owned());
        }
        match words.get(1) {
            Some(&"repeat") => {
                let line = Line { words, ranks: self.ranks.len() };
                line.rank()?;
                let times = line.word(2)?;
                let left = times.parse::<u64>().ok().filter(|left| *left > 0);
                let left = left.ok_or_else(|| format!("{} is no number of times, 1 or more", quoted(times)))?;
                open.push(Repetition { rank: words[0], number, left });
            }
            Some(&"end") => {
                let repetition = open.last_mut().ok_or("ends a repetition, and none has begun")?;
                repetition.left -= 1;
                if repetition.left > 0 {
                    return Ok(repetition.number);
                }
                open.pop();
            }
            _ => self.line(words)?,
        }
        Ok(number)
    }

    fn finish(mut self, file: &str) -> Result<Program, Mistakes> {
        if self.ranks.is_empty() && self.mistakes.is_empty() {
            self.mistakes.push(
                file,
                1,
                "no line begins with a rank; is this a trace of SimGrid's time-independent kind?",
            );
        }
        if !self.mistakes.is_empty() {
            return Err(self.mistakes);
        }
        self.builder.build().map_err(|error| {
            self.mistakes.push(file, 1, error.to_string());
            self.mistakes
        })
    }

    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        let line = Line { words, ranks: self.ranks.len() };
        let rank = line.rank()?;
        let name = *words.get(1).ok_or("a rank and then nothing; what does it do?")?;
        match name {
            "init" => self.ranks[rank as usize].default_bytes = if words.len() > 2 { 8 } else { 1 },
            "finalize" | "comm_size" | "comm_split" | "comm_dup" | "location" => {}
            "compute" => self.work(rank, line.amount(2)?)?,
            "sleep" => {
                let ps = picoseconds(line.amount(2)? * 1e12)?;
                self.builder.step(rank, &[Action::Wait { ps }]);
            }
            "send" | "isend" => {
                let (peer, tag) = (line.peer(2)?, line.tag(3)?);
                let to = peer.ok_or("a message is sent to one rank, not to any")?;
                let send = Action::Send { to, tag, bytes: self.bytes(&line, rank, 4, 5)?, cpu: 0 };
                self.point_to_point(rank, send, name == "isend", (Some(rank), to, tag));
            }
            "recv" | "irecv" => {
                let (from, tag) = (line.peer(2)?, line.tag(3)?);
                let receive = Action::Receive { from, tag: Some(tag), cpu: 0 };
                self.point_to_point(rank, receive, name == "irecv", (from, rank, tag));
            }
            "wait" => self.wait(rank, (line.peer(2)?, line.peer(3)?.unwrap_or(rank), line.tag(4)?))?,
            "waitall" | "waitAll" => {
                let requests = std::mem::take(&mut self.ranks[rank as usize].requests);
                requests.into_values().flatten().for_each(|request| self.builder.join(request));
            }
            "test" | "testall" => self.ranks[rank as usize].tests = true,
            "barrier" => self.collective(rank, Collective::Barrier, 0, 0)?,
            "bcast" => {
                let root = line.root(3)?;
                self.collective(rank, Collective::Broadcast, self.bytes(&line, rank, 2, 4)?, root)?;
            }
            "reduce" => {
                let (root, flops) = (line.root(4)?, line.amount(3)?);
                self.collective(rank, Collective::Reduce, self.bytes(&line, rank, 2, 5)?, root)?;
                self.work(rank, flops)?;
            }
            "allreduce" => {
                let flops = line.amount(3)?;
                self.collective(rank, Collective::AllReduce, self.bytes(&line, rank, 2, 4)?, 0)?;
                self.work(rank, flops)?;
            }
            "alltoall" => self.collective(rank, Collective::AllToAll, self.bytes(&line, rank, 2, 4)?, 0)?,
            "allgather" => self.collective(rank, Collective::AllGather, self.bytes(&line, rank, 2, 4)?, 0)?,
            "gather" => {
                let root = line.root(4)?;
                self.collective(rank, Collective::Gather, self.bytes(&line, rank, 2, 5)?, root)?;
            }
            "scatter" => {
                let root = line.root(4)?;
                self.collective(rank, Collective::Scatter, self.bytes(&line, rank, 2, 5)?, root)?;
            }
            "alltoallv" => self.all_to_all_v(&line, rank)?,
            other => return Err(format!("{} is no action that is known here", quoted(other))),
        }
        Ok(())
    }

    fn work(&mut self, rank: u32, flops: f64) -> Result<(), String> {
        let ps = picoseconds(flops * self.reading.ps_per_flop)?;
        if ps > 0 {
            self.builder.step(rank, &[Action::Compute { ps, cpu: 0 }]);
        }
        Ok(())
    }

    fn point_to_point(&mut self, rank: u32, action: Action, later: bool, key: Key) {
        if later {
            let request = self.builder.fork(rank, action);
            self.ranks[rank as usize].requests.entry(key).or_default().push_back(request);
        } else {
            self.builder.step(rank, &[action]);
        }
    }

    /// A request that took any sender's message may be waited for by its sender's name.
    fn wait(&mut self, rank: u32, key: Key) -> Result<(), String> {
        let process = &mut self.ranks[rank as usize];
        let (_, to, tag) = key;
        for key in [key, (None, to, tag)] {
            let Some(queue) = process.requests.get_mut(&key) else { continue };
            let request = queue.pop_front();
            if queue.is_empty() {
                process.requests.remove(&key);
            }
            if let Some(request) = request {
                self.builder.join(request);
                return Ok(());
            }
        }
        if process.tests {
            Ok(())
        } else {
            Err("waits for a request that was not made, or is waited for before".to_owned())
        }
    }

    fn collective(&mut self, rank: u32, collective: Collective, bytes: u64, root: u32) -> Result<(), String> {
        let operation = Operation { collective, algorithm: self.algorithm(collective), bytes, root };
        let operation = operation.resolve(self.ranks.len() as u32).map_err(|error| error.to_string())?;
        operation.append(&mut self.builder, rank);
        Ok(())
    }

    fn all_to_all_v(&mut self, line: &Line<'_>, rank: u32) -> Result<(), String> {
        let ranks = self.ranks.len();
        let size = self.type_bytes(line, rank, 4 + 2 * ranks)?;
        let sizes: Result<Vec<u64>, String> =
            (0..ranks).map(|to| message(line.amount(3 + to)? * size as f64)).collect();
        let algorithm = match self.algorithm(Collective::AllToAll) {
            Algorithm::Auto | Algorithm::Bruck => Algorithm::Linear,
            named => named,
        };
        for round in collective::unequal_all_to_all(rank, &sizes?, algorithm) {
            collective::append_round(&mut self.builder, rank, &round);
        }
        Ok(())
    }

    fn algorithm(&self, collective: Collective) -> Algorithm {
        let named = self.reading.algorithms.iter().find(|(of, _)| *of == collective);
        named.map_or(Algorithm::Auto, |(_, algorithm)| *algorithm)
    }

    /// The octets of a count and, further on, its type.
    fn bytes(&self, line: &Line<'_>, rank: u32, count: usize, of: usize) -> Result<u64, String> {
        message(line.amount(count)? * self.type_bytes(line, rank, of)? as f64)
    }

    fn type_bytes(&self, line: &Line<'_>, rank: u32, at: usize) -> Result<u64, String> {
        let Some(word) = line.words.get(at) else { return Ok(self.ranks[rank as usize].default_bytes) };
        let bytes = match word.parse::<i64>() {
            // No type: nothing is sent from here.
            Ok(-1) => Some(0),
            Ok(number) => usize::try_from(number).ok().and_then(|number| TYPE_BYTES.get(number)).copied(),
            Err(_) => None,
        };
        bytes.ok_or_else(|| {
            format!("{} is no number of an MPI type; those known are 0 to {}", quoted(word), TYPE_BYTES.len() - 1)
        })
    }
}

/// `TYPE_BYTES[number]`, as SimGrid numbers the types of MPI: double, int, char, short, long, float, byte, long long, …
const TYPE_BYTES: [u64; 54] = [
    8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16, 8, 8, 8,
    16, 16, 4, 4, 8, 16, 8, 16, 32, 1, 2, 4, 8, 16, 32, 0, 0, 1,
];

/// A line's words, by place.
struct Line<'a> {
    words: &'a [&'a str],
    ranks: usize,
}

impl Line<'_> {
    fn rank(&self) -> Result<u32, String> {
        let word = self.words[0];
        match word.parse::<usize>() {
            Ok(rank) if rank < self.ranks => Ok(rank as u32),
            _ => Err(format!("a line begins with a rank of 0 to {}, not with {}", RANKS_MAX - 1, quoted(word))),
        }
    }

    fn word(&self, at: usize) -> Result<&str, String> {
        self.words
            .get(at)
            .copied()
            .ok_or_else(|| format!("{} has too few numbers: {} of them at least", quoted(self.words[1]), at - 1))
    }

    fn amount(&self, at: usize) -> Result<f64, String> {
        let word = self.word(at)?;
        let amount = word.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0);
        amount.ok_or_else(|| format!("{} is no amount of 0 or more", quoted(word)))
    }

    /// A rank; none for a negative number, which stands for any.
    fn peer(&self, at: usize) -> Result<Option<u32>, String> {
        let word = self.word(at)?;
        match word.parse::<i64>() {
            Ok(number) if number < 0 => Ok(None),
            Ok(number) if (number as u64) < self.ranks as u64 => Ok(Some(number as u32)),
            _ => Err(format!("{} is no rank; those of these files are 0 to {}", quoted(word), self.ranks - 1)),
        }
    }

    fn root(&self, at: usize) -> Result<u32, String> {
        if self.words.len() <= at {
            return Ok(0);
        }
        self.peer(at)?.ok_or_else(|| "no root of a collective in one communicator of all ranks".to_owned())
    }

    fn tag(&self, at: usize) -> Result<u32, String> {
        let word = self.word(at)?;
        word.parse::<i32>()
            .ok()
            .and_then(|tag| u32::try_from(tag).ok())
            .ok_or_else(|| format!("{} is no tag of 0 or more", quoted(word)))
    }
}

fn picoseconds(ps: f64) -> Result<u64, String> {
    if ps <= ACTION_PS_MAX as f64 { Ok(ps.round() as u64) } else { Err("more than 11 days of work at once".to_owned()) }
}

fn message(bytes: f64) -> Result<u64, String> {
    let most = MESSAGE_BYTES_MAX as f64;
    if bytes <= most {
        Ok(bytes.round() as u64)
    } else {
        Err(format!("a message of more than {MESSAGE_BYTES_MAX} octets"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{
        executor::Costs,
        ideal::{self, Ideal, Ports},
    };

    fn mistakes(text: &str) -> Vec<String> {
        let wrong = read_traces(&[("t.txt", text)], &Reading::default()).expect_err("wrong");
        wrong.items().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn requests_end_where_they_are_waited_for() {
        let text = "0 init\n0 irecv 1 5 10 0\n0 compute 1000\n0 send 1 4 10 0\n0 wait 1 0 5\n0 barrier\n0 finalize\n\
            1 init\n1 irecv -333 4 10 0\n1 wait -333 1 4\n1 compute 500\n1 isend 0 5 10 0\n1 wait 1 0 5\n1 barrier\n";
        let program = read_traces(&[("t.txt", text)], &Reading::default()).expect("a trace");
        let network = Ideal { latency_ps: 7, ps_per_byte: 1, ports: Ports::Single };
        let ran = ideal::run(&program, Costs::default(), &network);
        assert_eq!(ran.stalled, [] as [String; 0]);
        // Compute, 80 octets there, compute, 80 octets back, a word to each other.
        assert_eq!(ran.end_ps(), 1_000_000 + 87 + 500_000 + 87 + 7);
        assert_eq!((ran.messages, ran.bytes), (4, 160));
    }

    #[test]
    fn repetitions_are_what_they_stand_for() {
        let inner = "0 compute 7\n0 send 1 0 9 1\n";
        let again = format!("{}0 barrier\n", inner.repeat(3)).repeat(4);
        let other = "1 recv 0 0 9 1\n".repeat(3) + "1 barrier\n";
        let plain = format!("0 init\n{again}{}", other.repeat(4));
        let folded = format!(
            "0 init\n0 repeat 4\n0 repeat 3\n{inner}0 end\n0 barrier\n0 end\n\
             1 repeat 4\n1 repeat 3\n1 recv 0 0 9 1\n1 end\n1 barrier\n1 end\n"
        );
        let read = |text: &str| read_traces(&[("t.txt", text)], &Reading::default()).expect("a trace");
        assert_eq!(read(&folded), read(&plain));
    }

    #[test]
    fn repetitions_have_bounds() {
        assert_eq!(mistakes("0 repeat 3\n0 compute 1\n"), ["t.txt:1: the repetition has no end"]);
        assert_eq!(mistakes("0 end\n"), ["t.txt:1: ends a repetition, and none has begun"]);
        assert_eq!(mistakes("0 repeat 0\n0 end\n")[0], "t.txt:1: \"0\" is no number of times, 1 or more");
        assert_eq!(mistakes("0 repeat 9\n1 compute 1\n0 end\n"), ["t.txt:2: a repetition holds lines of one rank"]);
        // A mistake in it is said once.
        assert_eq!(mistakes("0 repeat 9\n0 fly 1\n0 end\n").len(), 1);
        let endless = "0 repeat 99999999\n0 repeat 99999999\n0 compute 1\n0 end\n0 end\n";
        let reading = Reading { lines_max: 1000, ..Reading::default() };
        let wrong = read_traces(&[("t.txt", endless)], &reading).expect_err("too long");
        assert_eq!(wrong.items()[0].message, "more than 1000 lines, each repetition counted");
    }

    #[test]
    fn mistakes_say_where_they_are() {
        let text = "0 init\n1 send 2 1 1 1\n0 compute x\n0 alltoallv 1 2 3\n0 dance\n0 send 1 1 1 99\n0 wait 1 0 3\n\
            x compute 1\n1 recv\n0\n0 compute 1e30\n";
        assert_eq!(
            mistakes(text),
            [
                "t.txt:2: \"2\" is no rank; those of these files are 0 to 1",
                "t.txt:3: \"x\" is no amount of 0 or more",
                "t.txt:5: \"dance\" is no action that is known here",
                "t.txt:6: \"99\" is no number of an MPI type; those known are 0 to 53",
                "t.txt:7: waits for a request that was not made, or is waited for before",
                "t.txt:8: a line begins with a rank of 0 to 65535, not with \"x\"",
                "t.txt:9: \"recv\" has too few numbers: 1 of them at least",
                "t.txt:10: a rank and then nothing; what does it do?",
                "t.txt:11: more than 11 days of work at once",
            ]
        );
        assert_eq!(mistakes("hello\n"), ["t.txt:1: a line begins with a rank of 0 to 65535, not with \"hello\""]);
    }
}
