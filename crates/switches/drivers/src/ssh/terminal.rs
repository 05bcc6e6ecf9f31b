//! A conversation with a command line: what was said, when it has finished, and what it wants to know in between.
//!
//! ```text
//!   "display current-configuration" ─▶ echo, lines, "---- More ----" ◀─ space, lines, "<sw1>"  ─▶ the lines
//! ```
//! A command line has finished when its prompt is there again: the name that it had at the login, with whatever mode it is
//! in around it. It is asked one thing at a time, and what comes unasked is thrown away before the next.

use std::time::{Duration, Instant};

use super::{Arrived, Channel, Login, screen::Screen};
use switch_model::driver::Fault;

/// How long nothing may come before a line that looks like a prompt is one.
const QUIET: Duration = Duration::from_millis(60);
/// How long a question may stay open after a key before Enter is pressed as well.
const KEY: Duration = Duration::from_millis(300);
/// Longest time that one command may take, whatever comes.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(600);
/// Most bytes that one command may answer with: 16,384 entries of a hundred bytes, many times over.
const ANSWER_LEN_MAX: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// Most questions and pages of one command.
const QUESTIONS_MAX: usize = 1_000_000;
/// Most that is answered before the first prompt: a user's name, a password, a few pages of rules.
const GREETINGS_MAX: usize = 100;
/// What stands at a prompt's end.
const ENDS: [char; 4] = ['>', '#', ']', '$'];
const PAGERS: [&str; 5] = ["-more-", "- more -", "<--- more", "more: ", "press any key to continue"];
const QUESTIONS: [&str; 5] = ["[y/n]", "(y/n)", "[yes/no]", "(yes/no)", "<y/n>"];
/// Questions of a command that saves whose default will do.
const DEFAULTS: [&str; 3] = ["file name [", "filename [", "press the enter key"];
/// What commands that save begin with.
const SAVING: [&str; 3] = ["save", "copy running-config", "write memory"];

/// A question that is answered with yes. Every other one is answered with no, and ends the conversation.
pub(super) struct Question {
    /// How the command begins that asks it.
    pub(super) command: &'static str,
    /// Words of which the question has one.
    pub(super) asks: &'static [&'static str],
    /// Words of which it has none.
    pub(super) unless: &'static [&'static str],
}

/// A conversation.
pub(super) struct Terminal<C> {
    channel: C,
    screen: Screen,
    name: String,
    patience: Duration,
    questions: &'static [Question],
}

impl<C: Channel> Terminal<C> {
    /// Waits for the first prompt, giving the user's name and password to a command line that asks for them again.
    /// `questions` are those that later commands may be answered with yes.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) fn login(
        channel: C,
        login: &Login,
        patience: Duration,
        questions: &'static [Question],
    ) -> Result<Self, Fault> {
        let mut terminal = Self { channel, screen: Screen::default(), name: String::new(), patience, questions };
        let mut secrets_told = 0;
        for _ in 0..GREETINGS_MAX {
            let line = terminal.quiet_line()?;
            let asks = line.to_lowercase();
            if ["username:", "user name:", "login:", "user:"].iter().any(|words| asks.ends_with(words)) {
                terminal.send(&format!("{}\r", login.user))?;
            } else if asks.ends_with("password:") {
                let password = login.password.clone().filter(|_| secrets_told == 0).ok_or_else(|| {
                    Fault::Refused("its command line asks for a password again: wrong user or password".to_owned())
                })?;
                secrets_told += 1;
                terminal.send(&format!("{password}\r"))?;
            } else if is_pager(&asks) || asks.contains("press enter") || asks.contains("press any key") {
                terminal.send("\r")?;
            } else if asks.ends_with(ENDS) {
                terminal.name = name_in(&line);
                return match terminal.name.is_empty() {
                    true => Err(Fault::Refused("its prompt has no name in it; give the switch a name".to_owned())),
                    false => Ok(terminal),
                };
            } else {
                return Err(Fault::Refused(format!("its command line says {line:?}, which is no prompt")));
            }
            terminal.screen.clear_line();
        }
        Err(Fault::Refused("its greeting does not end".to_owned()))
    }

    /// Says a line and returns what comes before the next prompt.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) fn say(&mut self, line: &str) -> Result<Vec<String>, Fault> {
        self.ask(line, None)
    }

    /// The name that stands in its prompt.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the prompt ends so.
    pub(super) fn prompt_ends(&mut self, end: char) -> Result<bool, Fault> {
        self.say("")?;
        Ok(self.screen.line().ends_with(end))
    }

    /// Says a line that asks for a password.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) fn say_with_password(&mut self, line: &str, password: Option<&str>) -> Result<Vec<String>, Fault> {
        self.ask(line, Some(password))
    }

    fn ask(&mut self, line: &str, password: Option<Option<&str>>) -> Result<Vec<String>, Fault> {
        let mut patience = Patience::new();
        // What came unasked.
        while let Arrived::Bytes(bytes) = self.receive(Duration::ZERO)? {
            patience.take(&bytes)?;
        }
        self.screen.wipe();
        self.send(&format!("{line}\r"))?;
        let (mut questions, mut told) = (0, false);
        let mut pressed: Option<String> = None;
        loop {
            let last = self.screen.line();
            let asks = last.to_lowercase();
            let answered = self.screen.count() > 0;
            let question = QUESTIONS.iter().any(|words| asks.contains(words)) || pressed.is_some();
            let default = DEFAULTS.iter().any(|words| asks.contains(words));
            let secret = password.is_some() && !told && asks.ends_with("password:");
            let prompt = answered && self.is_prompt(&last);
            if prompt || is_pager(&asks) || question || default || secret {
                // One line is an answer to a command that says nothing; a longer text may hold what looks like a prompt.
                let wait = match (prompt, self.screen.count()) {
                    (true, 0..=1) => Duration::ZERO,
                    _ if pressed.is_some() => KEY,
                    _ => QUIET,
                };
                match self.receive(wait)? {
                    Arrived::Bytes(bytes) => {
                        patience.take(&bytes)?;
                        self.screen.take(&bytes);
                    }
                    Arrived::Closed => return Err(self.channel.complaint()),
                    Arrived::Nothing if prompt => break,
                    Arrived::Nothing => {
                        questions += 1;
                        if questions > QUESTIONS_MAX || patience.is_over() {
                            return Err(Fault::Refused(format!("it repeats one question: {last:?}")));
                        }
                        if is_pager(&asks) {
                            self.screen.clear_line();
                            self.send(" ")?;
                        } else if default && SAVING.iter().any(|command| line.starts_with(command)) {
                            self.screen.clear_line();
                            self.send("\r")?;
                        } else if secret {
                            told = true;
                            let secret = password.flatten().unwrap_or_default().to_owned();
                            self.send(&format!("{secret}\r"))?;
                        } else {
                            let again = pressed.as_ref().is_some_and(|question| last.starts_with(question.as_str()));
                            pressed = if again {
                                self.send("\r")?;
                                None
                            } else if default || QUESTIONS.iter().any(|words| asks.contains(words)) {
                                if !self.is_expected(line, &asks) {
                                    // It hears no before it is left, so that nothing waits for the next login.
                                    self.send("n\r")?;
                                    return Err(unexpected(line, &last));
                                }
                                self.send("y")?;
                                Some(last)
                            } else {
                                None
                            };
                        }
                    }
                }
                continue;
            }
            match self.receive(self.patience)? {
                Arrived::Bytes(bytes) => {
                    patience.take(&bytes)?;
                    self.screen.take(&bytes);
                }
                Arrived::Nothing => return Err(Fault::Silent),
                Arrived::Closed => return Err(self.channel.complaint()),
            }
        }
        let prompt = self.screen.line();
        let mut lines = self.screen.wipe();
        self.screen.take(prompt.as_bytes());
        if lines.first().is_some_and(|first| first.trim_end().ends_with(line.trim())) {
            lines.remove(0);
        }
        Ok(lines)
    }

    /// Whether the command is known to ask this, and yes is what is meant.
    fn is_expected(&self, line: &str, asks: &str) -> bool {
        let has = |words: &[&str]| words.iter().any(|word| asks.contains(word));
        self.questions.iter().any(|question| {
            line.trim_start().starts_with(question.command) && has(question.asks) && !has(question.unless)
        })
    }

    /// The last line, once nothing more comes.
    fn quiet_line(&mut self) -> Result<String, Fault> {
        let mut patience = Patience::new();
        loop {
            let line = self.screen.line();
            let wait = if line.is_empty() { self.patience } else { KEY };
            match self.receive(wait)? {
                Arrived::Bytes(bytes) => {
                    patience.take(&bytes)?;
                    self.screen.take(&bytes);
                }
                Arrived::Nothing if !line.is_empty() => return Ok(line),
                Arrived::Nothing => return Err(Fault::Silent),
                Arrived::Closed => return Err(self.channel.complaint()),
            }
        }
    }

    fn is_prompt(&self, line: &str) -> bool {
        let inside = line.trim_start_matches(['[', '<', '(', '~', '*']);
        line.len() <= self.name.len() + 80 && inside.starts_with(&self.name) && line.ends_with(ENDS)
    }

    fn send(&mut self, text: &str) -> Result<(), Fault> {
        self.channel.send(text.as_bytes()).map_err(|_| self.channel.complaint())
    }

    fn receive(&mut self, wait: Duration) -> Result<Arrived, Fault> {
        self.channel.receive(wait).map_err(|_| self.channel.complaint())
    }
}

/// How much of one answer is listened to.
struct Patience {
    until: Instant,
    len: usize,
}

impl Patience {
    fn new() -> Self {
        Self { until: Instant::now() + COMMAND_TIME_MAX, len: 0 }
    }

    fn is_over(&self) -> bool {
        self.len > ANSWER_LEN_MAX || Instant::now() > self.until
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.len += bytes.len();
        if self.is_over() { Err(Fault::Refused("its answer does not end".to_owned())) } else { Ok(()) }
    }
}

fn unexpected(line: &str, question: &str) -> Fault {
    Fault::Refused(format!(
        "to {line:?} it asks {question:?}, which is not one of the questions that this command is known to ask; it was answered \
         with no. Give the command by hand to see what it is about"
    ))
}

fn is_pager(line: &str) -> bool {
    PAGERS.iter().any(|words| line.contains(words))
}

/// The name in a prompt such as `<sw1>`, `sw1(config)#`, `(sw1) #`, `[admin@sw1] >`.
fn name_in(prompt: &str) -> String {
    let inside = prompt.trim_start_matches(['[', '<', '(', '~', '*']);
    let end = inside.find(['>', ']', ')', '#', '(', '$']).unwrap_or(inside.len());
    inside[..end].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, io};

    use super::*;

    /// A command line that says what the script has for each line that it hears.
    struct Script {
        answers: VecDeque<(&'static str, &'static str)>,
        ready: VecDeque<Vec<u8>>,
        heard: String,
    }

    impl Channel for Script {
        fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.heard.push_str(&String::from_utf8_lossy(bytes));
            while let Some((expect, answer)) = self.answers.front() {
                let Some(rest) = self.heard.strip_prefix(expect) else { break };
                self.heard = rest.to_owned();
                // In pieces, as networks do.
                self.ready.extend(answer.as_bytes().chunks(7).map(<[u8]>::to_vec));
                self.answers.pop_front();
            }
            Ok(())
        }

        fn receive(&mut self, _: Duration) -> io::Result<Arrived> {
            Ok(self.ready.pop_front().map_or(Arrived::Nothing, Arrived::Bytes))
        }

        fn complaint(&mut self) -> Fault {
            Fault::Silent
        }
    }

    fn terminal(greeting: &str, answers: &[(&'static str, &'static str)]) -> Result<Terminal<Script>, Fault> {
        let script = Script {
            answers: answers.iter().copied().collect(),
            ready: [greeting.as_bytes().to_vec()].into(),
            heard: String::new(),
        };
        let login = Login { user: "admin".to_owned(), password: Some("secret".to_owned()), ..Login::default() };
        Terminal::login(script, &login, Duration::from_millis(1), SAVE)
    }

    const SAVE: &[Question] = &[Question { command: "save", asks: &["sure"], unless: &["format"] }];

    #[test]
    fn pagers_are_turned_and_their_traces_gone() {
        let mut terminal = terminal(
            "\r\nWelcome\r\n<sw1>",
            &[
                ("show\r", "show\r\nvlan 2\r\n  ---- More ----"),
                (" ", "\x1b[16D                \x1b[16Dvlan 3\r\nsw1 is a name#\r\n<sw1>"),
            ],
        )
        .expect("a prompt");
        assert_eq!(terminal.say("show"), Ok(vec!["vlan 2".into(), "vlan 3".into(), "sw1 is a name#".into()]));
    }

    #[test]
    fn questions_are_answered_with_a_key_and_with_enter_if_that_is_wanted() {
        let mut terminal = terminal(
            "sw1#",
            &[
                ("save\r", "save\r\nSure? (Y/N)[N] ?"),
                ("y", "y"),
                ("\r", "\r\nDone\r\nsw1#"),
                ("save\r", "save\r\nSure? [Y/N]"),
                ("y", "y\r\nDone\r\nsw1#"),
            ],
        )
        .expect("a prompt");
        assert_eq!(terminal.say("save").map(|lines| lines.last().cloned()), Ok(Some("Done".to_owned())));
        assert_eq!(terminal.say("save").map(|lines| lines.last().cloned()), Ok(Some("Done".to_owned())));
    }

    /// What a command is not known to ask is answered with no, and nothing more is said in this conversation.
    #[test]
    fn unexpected_questions_are_answered_with_no() {
        for (command, question) in [
            ("save", "Sure to format flash:? [Y/N]"),
            ("save", "Reboot now? [Y/N]"),
            ("undo vlan 2", "Are you sure? (y/n)"),
            ("show", "Startup file name [startup1.cfg]:"),
            ("save", "System will be restarted, continue <y/n>?"),
        ] {
            let script = [
                (
                    Box::leak(format!("{command}\r").into_boxed_str()) as &str,
                    Box::leak(format!("{command}\r\n{question}").into_boxed_str()) as &str,
                ),
                ("n\r", "n\r\nsw1#"),
            ];
            let mut terminal = terminal("sw1#", &script).expect("a prompt");
            let said = terminal.say(command);
            assert!(
                matches!(&said, Err(Fault::Refused(why)) if why.contains(question) && why.contains(command)),
                "{said:?}"
            );
            assert!(terminal.channel.answers.is_empty(), "{question} was answered with no");
        }
    }

    #[test]
    fn a_second_login_is_given_and_a_third_refused() {
        let answers = &[("admin\r", "admin\r\nPassword:"), ("secret\r", "\r\nsw1>")];
        assert!(terminal("User Name:", answers).is_ok());
        let answers = &[("admin\r", "admin\r\nPassword:"), ("secret\r", "\r\nPassword:")];
        assert!(matches!(terminal("User Name:", answers), Err(Fault::Refused(_))));
        assert!(matches!(terminal("Go away", &[]), Err(Fault::Refused(_))));
        assert!(matches!(terminal("", &[]), Err(Fault::Silent)));
    }

    /// One that never falls silent, with the same words again and again.
    struct Babble {
        first: VecDeque<&'static [u8]>,
        words: &'static [u8],
        said: usize,
    }

    impl Channel for Babble {
        fn send(&mut self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn receive(&mut self, _: Duration) -> io::Result<Arrived> {
            self.said += 1;
            assert!(self.said < 1 << 20, "nobody listens for ever");
            Ok(match self.first.pop_front() {
                Some(b"") => Arrived::Nothing,
                Some(words) => Arrived::Bytes(words.to_vec()),
                None if self.words.is_empty() => Arrived::Nothing,
                None => Arrived::Bytes(self.words.repeat(1024)),
            })
        }

        fn complaint(&mut self) -> Fault {
            Fault::Silent
        }
    }

    #[test]
    fn nobody_listens_without_end() {
        let login = Login { user: "admin".to_owned(), password: Some("secret".to_owned()), ..Login::default() };
        // A greeting: of lines, of one line that is wiped out again and again, of a question.
        for words in [&b"hello\r\n"[..], b"\rno prompt", b"\r \r"] {
            let babble = Babble { first: VecDeque::new(), words, said: 0 };
            let greeted = Terminal::login(babble, &login, Duration::from_millis(1), &[]).map(drop);
            assert!(matches!(greeted, Err(Fault::Refused(_))), "{words:?}");
        }
        let asks = Babble { first: [&b"login:"[..], b""].repeat(1000).into(), words: b"", said: 0 };
        let greeted = Terminal::login(asks, &login, Duration::from_millis(1), &[]).map(drop);
        assert!(matches!(&greeted, Err(Fault::Refused(why)) if why.contains("does not end")), "{greeted:?}");
        // An answer whose last line always looks like something: nothing, a prompt, a page, a question; and what comes
        // before the command is said.
        for words in [&b"line\r\n"[..], b"line\r\nsw1#", b"line\r\n--More--", b"line\r\n[Y/N]"] {
            for asked in [true, false] {
                let quiet: &[&[u8]] = if asked { &[b"sw1#", b"", b""] } else { &[b"sw1#", b""] };
                let babble = Babble { first: quiet.iter().copied().collect(), words, said: 0 };
                let mut terminal = Terminal::login(babble, &login, Duration::from_millis(1), &[]).expect("a prompt");
                let said = terminal.say("show");
                assert!(matches!(said, Err(Fault::Refused(_))), "{words:?}: {said:?}");
            }
        }
    }

    #[test]
    fn a_command_line_that_falls_silent_is_silent() {
        let mut terminal = terminal("sw1#", &[("show\r", "show\r\nvlan 2\r\nvla")]).expect("a prompt");
        assert_eq!(terminal.say("show"), Err(Fault::Silent));
    }

    #[test]
    fn prompts_have_names() {
        for (prompt, name) in [
            ("<HPE>", "HPE"),
            ("[~sw1]", "sw1"),
            ("console#", "console"),
            ("(UBNT EdgeSwitch) >", "UBNT EdgeSwitch"),
            ("[admin@MikroTik] >", "admin@MikroTik"),
        ] {
            assert_eq!(name_in(prompt), name);
        }
    }
}
