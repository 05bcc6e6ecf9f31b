//! What a vendor's command line wants beside the dialect: how to get in, what to ask, how to save, where marks go.
//!
//! Sources are those of the dialects; what is said of pagers, saving and the shape of running configurations is believed,
//! as the vendors' guides show it, and has been tried against scripted command lines only.

use fabric::VlanId;

use crate::{Target, deploy::Mark};

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
    /// What section of the running configuration a line begins.
    pub(super) section: for<'a> fn(&[&'a str]) -> Section<'a>,
}

/// A restart that is put off, by which a switch takes back what was not saved.
pub(super) struct Restart {
    /// In so many minutes.
    pub(super) arm: fn(u64) -> String,
    /// Not any more.
    pub(super) disarm: &'static str,
}

/// A section of the running configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section<'a> {
    /// A physical port of this name.
    Port(&'a str),
    /// Something that is no business of ours, to its end.
    Foreign,
    /// No section, or one that the dialect's reader knows.
    Other,
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
    section: view_section,
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
    section: |words| match *words {
        ["interface", "ethernet", name] => Section::Port(name),
        ["interface", "vlan", _] => Section::Other,
        ["interface" | "line", ..] => Section::Foreign,
        _ => Section::Other,
    },
};

const LANGUAGES: [Language; 8] = [
    POWERCONNECT,
    Language {
        target: Target::CiscoSb,
        restart: Some(Restart { arm: |minutes| format!("reload in {minutes}"), disarm: "reload cancel" }),
        section: |words| match *words {
            ["interface", "vlan", _] => Section::Other,
            ["interface", name] if ["gi", "fa", "te"].iter().any(|kind| name.starts_with(kind)) => Section::Port(name),
            ["interface" | "line", ..] => Section::Foreign,
            _ => Section::Other,
        },
        ..POWERCONNECT
    },
    Language {
        target: Target::EdgeCore,
        restart: Some(Restart { arm: |minutes| format!("reload in minute {minutes}"), disarm: "reload cancel" }),
        prepare: &["terminal length 0"],
        mark: |vlan, mark| database(vec![format!("vlan {vlan} name {mark} media ethernet state active")]),
        section: |words| match *words {
            ["interface", "ethernet", name] => Section::Port(name),
            ["interface" | "line", ..] => Section::Foreign,
            _ => Section::Other,
        },
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
        section: |words| match *words {
            ["interface", name] if name.starts_with(|c: char| c.is_ascii_digit()) => Section::Port(name),
            ["interface" | "line", ..] => Section::Foreign,
            _ => Section::Other,
        },
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
        section: |_| Section::Other,
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

/// Ports of Comware and VRP, less those for management.
fn view_section<'a>(words: &[&'a str]) -> Section<'a> {
    const KINDS: [&str; 8] = [
        "GigabitEthernet",
        "Ten-GigabitEthernet",
        "Twenty-FiveGigE",
        "FortyGigE",
        "HundredGigE",
        "XGigabitEthernet",
        "40GE",
        "Ethernet",
    ];
    match *words {
        ["interface", name] if KINDS.iter().any(|kind| name.starts_with(kind)) => Section::Port(name),
        ["interface" | "line" | "user-interface", ..] => Section::Foreign,
        _ => Section::Other,
    }
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
