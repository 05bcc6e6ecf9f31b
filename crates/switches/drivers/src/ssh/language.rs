//! What a vendor's command line wants beside the dialect: how to get in, what to ask, how to save, where marks go.
//!
//! Sources are those of the dialects; what is said of pagers, saving and the shape of running configurations is believed,
//! as the vendors' guides show it, and has been tried against scripted command lines only.

use fabric::VlanId;

use super::terminal::Question;
use dialects::Target;
use switch_model::mark::Mark;

/// A vendor's command line.
pub(super) struct Language {
    /// Its dialect.
    pub(super) target: Target,
    /// What the user's name ends in, to get a plain command line.
    pub(super) login_suffix: &'static str,
    /// Leads to the privileged mode, where the prompt ends in `>`.
    pub(super) privilege: Option<&'static str>,
    /// Said after the login; what is refused of it does no harm.
    pub(super) prepare: &'static [&'static str],
    /// Leads to where rendered text is understood.
    pub(super) enter: &'static [&'static str],
    /// Leads back.
    pub(super) leave: &'static [&'static str],
    /// Shows the running configuration.
    pub(super) show: &'static str,
    /// Saves it; empty where it saves itself.
    pub(super) save: &'static [&'static str],
    /// How it is told to restart after a while, and to stay after all; none where it cannot.
    pub(super) restart: Option<Restart>,
    /// A line that ends a section of the running configuration, and the command that means the same.
    pub(super) section_end: Option<(&'static str, &'static str)>,
    /// How a mark is left in a VLAN.
    pub(super) mark: fn(VlanId, Mark) -> Vec<String>,
    /// How a VLAN with an old mark goes.
    pub(super) unmark: fn(VlanId) -> Vec<String>,
    /// What its commands ask that is answered with yes.
    pub(super) questions: &'static [Question],
    /// Which ports its running configuration mentions.
    pub(super) shows: Shows,
    /// Asks about one port; refused if there is none of this name.
    pub(super) ask_port: fn(&str) -> String,
}

/// Which ports a running configuration mentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// Every one.
    EveryPort,
    /// Those that are not as the factory made them.
    Changes,
}

/// A restart that is put off, by which a switch takes back what was not saved.
pub(super) struct Restart {
    /// In so many minutes.
    pub(super) arm: fn(u64) -> String,
    /// Not any more.
    pub(super) disarm: &'static str,
}

/// The command line of a target; none if it is not spoken over SSH.
pub(super) fn language(target: Target) -> Option<&'static Language> {
    LANGUAGES.iter().find(|language| language.target == target)
}

/// The names of the targets that are.
pub(super) fn known() -> String {
    let names: Vec<&str> = LANGUAGES.iter().map(|language| language.target.name()).collect();
    format!("{}, {}", Target::LinuxBridge.name(), names.join(", "))
}

/// What asks for a restart that takes unsaved changes back is not to save them first.
const SAVES: &[&str] = &["want to save", "save the", "save current", "saving"];
const CONTINUES: &[&str] = &["continue", "sure", "confirm"];

const COMWARE_ASKS: &[Question] = &[
    Question { command: "save", asks: &["continue", "sure", "overwrite"], unless: &[] },
    Question { command: "schedule reboot", asks: &["continue", "sure", "confirm", "reboot"], unless: SAVES },
    Question { command: "undo vlan", asks: CONTINUES, unless: &[] },
    Question { command: "stp", asks: CONTINUES, unless: &[] },
    Question { command: "undo stp", asks: CONTINUES, unless: &[] },
    Question { command: "port link-type hybrid", asks: CONTINUES, unless: &[] },
    Question { command: "undo igmp-snooping", asks: CONTINUES, unless: &[] },
    Question { command: "undo mld-snooping", asks: CONTINUES, unless: &[] },
];
const ROS_ASKS: &[Question] = &[
    Question { command: "copy running-config startup-config", asks: &["overwrite"], unless: &[] },
    Question { command: "reload", asks: &["continue", "sure", "reset"], unless: SAVES },
];
const FASTPATH_ASKS: &[Question] = &[Question { command: "write memory", asks: &["want to save"], unless: &[] }];

const COMWARE7: Language = Language {
    target: Target::Comware7,
    login_suffix: "",
    privilege: None,
    prepare: &["screen-length disable"],
    enter: &["system-view"],
    leave: &["return"],
    show: "display current-configuration",
    save: &["save force"],
    restart: Some(Restart {
        arm: |minutes| format!("schedule reboot delay {minutes}"),
        disarm: "undo schedule reboot",
    }),
    section_end: Some(("#", "quit")),
    mark: view_mark,
    unmark: |vlan| vec![format!("undo vlan {vlan}")],
    questions: COMWARE_ASKS,
    shows: Shows::EveryPort,
    ask_port: |port| format!("display interface {port}"),
};

const POWERCONNECT: Language = Language {
    target: Target::PowerConnect,
    login_suffix: "",
    privilege: Some("enable"),
    prepare: &["terminal datadump"],
    enter: &["configure"],
    leave: &["end"],
    show: "show running-config",
    save: &["copy running-config startup-config"],
    restart: None,
    section_end: Some(("!", "exit")),
    mark: |vlan, mark| {
        let mut lines = database(vec![format!("vlan {vlan}")]);
        lines.extend([format!("interface vlan {vlan}"), format!("name {mark}"), "exit".to_owned()]);
        lines
    },
    unmark: |vlan| database(vec![format!("no vlan {vlan}")]),
    questions: ROS_ASKS,
    shows: Shows::Changes,
    ask_port: |port| format!("show interfaces status ethernet {port}"),
};

const LANGUAGES: [Language; 8] = [
    POWERCONNECT,
    Language {
        target: Target::CiscoSb,
        restart: Some(Restart { arm: |minutes| format!("reload in {minutes}"), disarm: "reload cancel" }),
        ask_port: |port| format!("show interfaces status {port}"),
        ..POWERCONNECT
    },
    Language {
        target: Target::EdgeCore,
        shows: Shows::EveryPort,
        restart: Some(Restart { arm: |minutes| format!("reload in minute {minutes}"), disarm: "reload cancel" }),
        prepare: &["terminal length 0"],
        mark: |vlan, mark| database(vec![format!("vlan {vlan} name {mark} media ethernet state active")]),
        ..POWERCONNECT
    },
    COMWARE7,
    Language { target: Target::Comware5, ..COMWARE7 },
    Language { target: Target::Huawei, prepare: &["screen-length 0 temporary"], save: &["save"], ..COMWARE7 },
    Language {
        target: Target::Fastpath,
        login_suffix: "",
        privilege: Some("enable"),
        prepare: &["terminal length 0"],
        enter: &[],
        leave: &[],
        show: "show running-config",
        save: &["write memory"],
        restart: None,
        section_end: None,
        mark: |vlan, mark| database(vec![format!("vlan {vlan}"), format!("vlan name {vlan} {mark}")]),
        unmark: |vlan| database(vec![format!("no vlan {vlan}")]),
        questions: FASTPATH_ASKS,
        shows: Shows::Changes,
        ask_port: |port| format!("show port {port}"),
    },
    Language {
        target: Target::RouterOs,
        // Colours off, no guessing of the terminal, 1,024 columns.
        login_suffix: "+cet1024w",
        privilege: None,
        prepare: &[],
        enter: &[],
        leave: &[],
        show: "/export terse",
        save: &[],
        // It saves every change at once, so a restart takes nothing back.
        restart: None,
        section_end: None,
        mark: |_, mark| vec![format!("/system note set note={mark} show-at-login=no")],
        unmark: |_| Vec::new(),
        questions: &[],
        shows: Shows::Changes,
        ask_port: |port| format!(":if ([:len [/interface find name=\"{port}\"]] = 0) do={{:put \"no such item\"}}"),
    },
];

fn database(lines: Vec<String>) -> Vec<String> {
    let mut all = vec!["vlan database".to_owned()];
    all.extend(lines);
    all.push("exit".to_owned());
    all
}

fn view_mark(vlan: VlanId, mark: Mark) -> Vec<String> {
    vec![format!("vlan {vlan}"), format!("name {mark}"), "quit".to_owned()]
}

/// What of an answer says that the command was refused.
pub(super) fn refusal(lines: &[String]) -> Option<&str> {
    const WORDS: [&str; 20] = [
        "unrecognized command",
        "invalid input",
        "error:",
        "error -",
        "error!",
        "failed",
        "incomplete command",
        "ambiguous",
        "wrong parameter",
        "too many parameters",
        "bad command name",
        "bad parameter",
        "syntax error",
        "failure:",
        "expected ",
        "no such item",
        "input does not match",
        "invalid value",
        "does not exist",
        "cannot",
    ];
    let refused = |line: &&String| {
        let line = line.trim().to_lowercase();
        line.starts_with("% ") || WORDS.iter().any(|words| line.contains(words))
    };
    lines.iter().find(refused).map(|line| line.trim())
}
