//! A Linux bridge by a shell: iproute2's batches out, its JSON back.
//!
//! ```text
//!   ( set -eu; bridge -batch - <<'EOF' … EOF ) 2>&1 </dev/null; echo espalier-done $?
//!   ip -json -details link ; bridge -json vlan ; bridge -json fdb ; ethtool -a
//! ```
//! What a kernel holds is gone after a restart, so saving writes the whole state as a script, `/etc/espalier/switch.sh`, which
//! the machine is to run when it starts. The mark is the bridge's alias.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use fabric::{Admin, FloodKind, FlowControlMode, Mac, VlanId, VlanSet};
use serde_json::Value;

use super::{
    Arrived, Channel,
    backend::{Armed, CliBackend},
};
use crate::snmp::SaveMethod;
use dialects::{Memory, Target, write_full, write_transition};
use fabric::SpanningTree;
use switch_model::{
    PortConfig, PortLearning, SwitchConfig,
    driver::{Fault, Reading},
    mark::Mark,
    unmanaged::without_others,
};

/// Most bytes that one script may answer with.
const ANSWER_LEN_MAX: usize = 256 << 20;
/// Longest time that one script may take, whatever comes.
const SCRIPT_TIME_MAX: Duration = Duration::from_secs(600);
/// How long it may take to go back.
const RETURN_TIME_MAX: Duration = Duration::from_secs(60);
const BRIDGE: &str = "espalier";
/// What the shell says after every script, before the script's status.
const DONE: &str = "espalier-done";
/// What stands between the answers of one script; it must not look like its end, with which an answer may break off.
const PART: &str = "espalier-part";
/// Where the way back waits.
const RUN: &str = "/run/espalier";
/// Ends the process that would go back, and what it waits in. Whoever has the file's name first, it or that process, has
/// decided what happens.
const DISARM: &str = "mv /run/espalier/return.pid /run/espalier/disarmed.pid 2>/dev/null && \
    { kill -TERM -$(cat /run/espalier/disarmed.pid) || :; rm -f /run/espalier/disarmed.pid; }";
const MAKE: &str = "ip link show dev espalier >/dev/null 2>&1 || ip link add name espalier type bridge vlan_filtering 1 \
    vlan_default_pvid 0 stp_state 0 mcast_snooping 0\nip link set dev espalier up\n";

/// A machine with a bridge.
pub(super) struct Linux<D, C> {
    pub(super) dial: D,
    pub(super) shell: Option<C>,
    pub(super) names: Vec<String>,
    pub(super) save: SaveMethod,
    pub(super) patience: Duration,
}

impl<C: Channel, D: FnMut() -> Result<C, Fault> + Send> Linux<D, C> {
    /// Sees whether what is needed is there.
    pub(super) fn greet(&mut self) -> Result<(), Fault> {
        self.run("command -v ip >/dev/null && command -v bridge >/dev/null || { echo iproute2 is missing; exit 1; }")
            .map(drop)
    }

    /// Runs a script and returns what it prints. A conversation that fails is given up.
    fn run(&mut self, script: &str) -> Result<String, Fault> {
        let mut shell = match self.shell.take() {
            Some(shell) => shell,
            None => (self.dial)()?,
        };
        let text = format!("(\n{script}\n) 2>&1 </dev/null; printf '\\n{DONE} %s\\n' \"$?\"\n");
        if shell.send(text.as_bytes()).is_err() {
            return Err(shell.complaint());
        }
        let mut answer = Vec::new();
        let until = Instant::now() + SCRIPT_TIME_MAX;
        loop {
            match shell.receive(self.patience) {
                Ok(Arrived::Bytes(bytes)) => answer.extend(bytes),
                Ok(Arrived::Nothing) => return Err(Fault::Silent),
                Ok(Arrived::Closed) | Err(_) => return Err(shell.complaint()),
            }
            if answer.len() > ANSWER_LEN_MAX || Instant::now() > until {
                return Err(Fault::Refused("its answer does not end".to_owned()));
            }
            let Some((said, status)) = finished(&answer) else { continue };
            self.shell = Some(shell);
            return match status.as_str() {
                "0" => Ok(said),
                _ => {
                    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing").to_owned();
                    Err(Fault::Refused(format!("its shell ends with {status}: {last}")))
                }
            };
        }
    }
}

/// What a script has printed and its status, once the shell has said that it is done: in a line of its own, since a name
/// that somebody gave a device may look like it.
fn finished(answer: &[u8]) -> Option<(String, String)> {
    let last = answer.strip_suffix(b"\n")?;
    let at = last.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let status = std::str::from_utf8(&last[at..]).ok()?.strip_prefix(DONE)?.trim();
    let is_number = !status.is_empty() && status.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (String::from_utf8_lossy(&answer[..at]).into_owned(), status.to_owned()))
}

/// A name as one word of a shell, whatever is in it: the kernel lets a device be called `$(reboot)`.
fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\'', "'\\''"))
}

/// The script that leaves a mark.
fn marking(mark: Mark) -> String {
    format!("set -eu\n{MAKE}ip link set dev {BRIDGE} alias {mark}")
}

/// The scripts that lead from one state to another.
fn changing(before: &SwitchConfig, after: &SwitchConfig) -> Result<Vec<String>, Fault> {
    let mut memory = Memory::default();
    write_transition(Target::LinuxBridge, before, after, &mut memory)
        .map_err(|error| Fault::Refused(error.to_string()))?;
    Ok(memory.files.values().map(|text| format!("set -eu\n{MAKE}{}", String::from_utf8_lossy(text))).collect())
}

impl<C: Channel, D: FnMut() -> Result<C, Fault> + Send> CliBackend for Linux<D, C> {
    fn read(&mut self) -> Result<(SwitchConfig, Option<Mark>), Fault> {
        let mut script = format!(
            "ip -json -details link show\necho\necho {PART}\nbridge -json vlan show\necho\necho {PART}\n\
             if ip link show dev {BRIDGE} >/dev/null 2>&1; then bridge -json fdb show br {BRIDGE}; fi\necho\necho {PART}\n"
        );
        for name in &self.names {
            let name = quoted(name);
            script.push_str(&format!("echo port {name}; ethtool -a {name} 2>/dev/null || :\n"));
        }
        let answer = self.run(&script)?;
        let parts: Vec<&str> = answer.split(PART).collect();
        let [links, vlans, fdb, pause] = parts[..] else {
            return Err(Fault::Refused("its shell answers something else than was asked".to_owned()));
        };
        state(&self.names, [links, vlans, fdb, pause]).map_err(Fault::Refused)
    }

    fn include(&mut self, names: &[String]) {
        self.names.extend_from_slice(names);
    }

    fn mark(&mut self, mark: Mark) -> Result<(), Fault> {
        self.run(&marking(mark)).map(drop)
    }

    /// The way back waits in a process of its own; its shell is named by path, since a `setsid` of busybox would run
    /// busybox's own, and that busybox's own `ip`. It goes through all of its lines whatever is refused, since nobody knows
    /// how much of the change there is to take back.
    fn arm(&mut self, before: &Reading, after: &SwitchConfig, guard: Duration) -> Result<Option<Armed>, Fault> {
        let mut memory = Memory::default();
        write_transition(Target::LinuxBridge, after, &before.config, &mut memory)
            .map_err(|error| Fault::Refused(error.to_string()))?;
        let way: String = memory.files.values().map(|text| String::from_utf8_lossy(text)).collect();
        let way = way.replace(" -batch -", " -force -batch -").replace("set -eu\n", "");
        let mark = before.mark.map_or_else(String::new, |mark| mark.to_string());
        let seconds = guard.as_secs_f64().ceil();
        let script = format!(
            "set -eu\nmkdir -p {RUN}\n{DISARM} || :\ncat >{RUN}/return.sh <<'espalier-script'\n{way}\
             ip link set dev {BRIDGE} alias '{mark}'\nespalier-script\n\
             setsid /bin/sh -c 'sleep {seconds}; mv {RUN}/return.pid {RUN}/returning.pid || exit; \
             /bin/sh {RUN}/return.sh; rm -f {RUN}/returning.pid' </dev/null >/dev/null 2>&1 &\n\
             echo $! >{RUN}/return.pid"
        );
        self.run(&script)?;
        Ok(Some(Armed { after: Duration::from_secs_f64(seconds), takes_max: RETURN_TIME_MAX }))
    }

    fn has_returned(&mut self) -> Result<bool, Fault> {
        let said = self.run(&format!("[ -e {RUN}/return.pid ] || [ -e {RUN}/returning.pid ] || echo at rest"))?;
        Ok(said.contains("at rest"))
    }

    fn disarm(&mut self) -> Result<(), Fault> {
        self.run(&format!("set -eu\n{DISARM} || {{ echo it has gone back already; exit 1; }}")).map(drop)
    }

    fn write(&mut self, before: &SwitchConfig, after: &SwitchConfig) -> Result<(), Fault> {
        changing(before, after)?.iter().try_for_each(|script| self.run(script).map(drop))
    }

    fn rehearse(&self, before: &SwitchConfig, after: &SwitchConfig, mark: Option<Mark>) -> Result<Vec<String>, Fault> {
        let scripts: Vec<String> = mark.map(marking).into_iter().chain(changing(before, after)?).collect();
        Ok(scripts.iter().flat_map(|script| script.lines().map(str::to_owned)).collect())
    }

    fn save(&mut self) -> Result<(), Fault> {
        if self.save == SaveMethod::ByHand {
            return Ok(());
        }
        let (whole, mark) = self.read()?;
        let config = without_others(whole, self.names.len());
        let mut memory = Memory::default();
        write_full(Target::LinuxBridge, &config, &mut memory).map_err(|error| Fault::Refused(error.to_string()))?;
        let mut script: String = memory.files.values().map(|text| String::from_utf8_lossy(text)).collect();
        if let Some(mark) = mark {
            script.push_str(&format!("ip link set dev {BRIDGE} alias {mark}\n"));
        }
        self.run(&format!(
            "set -eu\nmkdir -p /etc/espalier\ncat >/etc/espalier/switch.sh.new <<'espalier-script'\n{script}espalier-script\n\
             sync\nmv /etc/espalier/switch.sh.new /etc/espalier/switch.sh\nsync"
        ))
        .map(drop)
    }
}

/// What iproute2 and ethtool say, as a state: of these ports, and behind them of any others of the bridge.
pub(super) fn state(
    names: &[String],
    [links, vlans, fdb, pause]: [&str; 4],
) -> Result<(SwitchConfig, Option<Mark>), String> {
    let links = json("ip link", links)?;
    let name = |value: &Value| value["ifname"].as_str().unwrap_or("").to_owned();
    let known: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let others = links.iter().filter(|link| link["master"] == BRIDGE).map(name);
    // One that nobody can name cannot be written to either.
    let foreign = |name: &String| !known.contains(name.as_str()) && !name.contains(char::is_control);
    let others: BTreeSet<String> = others.filter(foreign).collect();
    let names: Vec<String> = names.iter().cloned().chain(others).collect();
    let mut config = SwitchConfig::blank(names.iter().cloned());
    let position: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let bridge = links.iter().find(|link| name(link) == BRIDGE);
    let options = bridge.map(|bridge| &bridge["linkinfo"]["info_data"]);
    if options.is_some_and(|options| options["vlan_filtering"].as_u64() != Some(1)) {
        return Err(format!(
            "its bridge {BRIDGE} does not filter VLANs: ip link set dev {BRIDGE} type bridge vlan_filtering 1"
        ));
    }
    if options.is_some_and(|options| options["stp_state"].as_u64().unwrap_or(0) != 0) {
        config.spanning_tree = SpanningTree::On;
    }
    let mark = bridge.and_then(|bridge| bridge["ifalias"].as_str()).and_then(|alias| alias.parse().ok());
    let mut there = vec![false; names.len()];
    for link in &links {
        let Some(&at) = position.get(name(link).as_str()) else { continue };
        there[at] = true;
        let up = link["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag == "UP"));
        config.ports[at].admin = if up { Admin::Up } else { Admin::Down };
        config.ports[at].mtu_bytes = link["mtu"].as_u64().map(|mtu| u16::try_from(mtu).unwrap_or(u16::MAX));
        if link["master"] == BRIDGE {
            // An iproute2 that does not say so lets them out.
            let slave = &link["linkinfo"]["info_slave_data"];
            let words = [
                (FloodKind::UnknownUnicast, "flood"),
                (FloodKind::Multicast, "mcast_flood"),
                (FloodKind::Broadcast, "bcast_flood"),
            ];
            let blocked = words.into_iter().filter(|(_, word)| slave[*word] == false).map(|(kind, _)| kind);
            config.ports[at].blocked = Some(blocked.collect());
        }
        match link["master"].as_str() {
            Some(BRIDGE) if link["linkinfo"]["info_slave_data"]["learning"] == true => {
                config.ports[at].learning = PortLearning::On;
            }
            None | Some(BRIDGE) => {}
            Some(other) => return Err(format!("port {} belongs to {other}; take it out first", names[at])),
        }
    }
    if let Some(at) = there.iter().position(|there| !there) {
        return Err(format!("it has no port named {}", names[at]));
    }
    let ours = |value: &Value| links.iter().any(|link| name(link) == name(value) && link["master"] == BRIDGE);
    for entry in &json("bridge vlan", vlans)? {
        let Some(&at) = position.get(name(entry).as_str()).filter(|_| ours(entry)) else { continue };
        for vlan in entry["vlans"].as_array().into_iter().flatten() {
            members(&mut config.ports[at], vlan)?;
        }
    }
    for entry in &json("bridge fdb", fdb)? {
        let Some(&at) = position.get(name(entry).as_str()) else { continue };
        let (Some("static"), Some(number)) = (entry["state"].as_str(), entry["vlan"].as_u64()) else { continue };
        let mac: Mac = entry["mac"].as_str().unwrap_or("").parse().map_err(|error| format!("bridge fdb: {error}"))?;
        config.entries.insert((vlan_id(number)?, mac), switch_model::Slot::new(at));
    }
    let mut at = None;
    let mut both = [false; 2];
    for line in pause.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["port", name] => (at, both) = (position.get(name).copied(), [false; 2]),
            ["RX:", "on"] => both[0] = true,
            ["TX:", "on"] => both[1] = true,
            _ => {}
        }
        if let Some(at) = at.filter(|_| both == [true; 2]) {
            config.ports[at].flow_control = FlowControlMode::Pause;
        }
    }
    config.vlans = config.memberships();
    config.vlans.remove(VlanId::MIN);
    Ok((config, mark))
}

fn members(port: &mut PortConfig, value: &Value) -> Result<(), String> {
    let first = value["vlan"].as_u64().ok_or("bridge vlan: a VLAN without a number")?;
    let last = value["vlanEnd"].as_u64().unwrap_or(first);
    let has = |flag: &str| value["flags"].as_array().is_some_and(|flags| flags.iter().any(|there| there == flag));
    let range: VlanSet = (vlan_id(first)?.get()..=vlan_id(last)?.get()).filter_map(|id| VlanId::new(id).ok()).collect();
    let to = if has("Egress Untagged") { &mut port.untagged } else { &mut port.tagged };
    to.extend(range.iter());
    if has("PVID") {
        port.pvid = Some(vlan_id(first)?);
    }
    Ok(())
}

fn vlan_id(number: u64) -> Result<VlanId, String> {
    let id = u16::try_from(number).ok().and_then(|id| VlanId::new(id).ok());
    id.ok_or_else(|| format!("it says VLAN {number}, which is none"))
}

fn json(what: &str, text: &str) -> Result<Vec<Value>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(text).map_err(|_| {
        let first = text.lines().next().unwrap_or_default();
        format!("{what} says {first:?}, which is no JSON; its iproute2 is too old, or refuses")
    })
}

#[cfg(test)]
mod tests {
    use fabric::FloodSet;

    use super::*;

    #[test]
    fn a_script_is_done_when_its_shell_says_so_and_not_a_device_s_name() {
        let done = |text: &str| finished(text.as_bytes());
        assert_eq!(done("a\n\nespalier-done 0\n"), Some(("a\n\n".to_owned(), "0".to_owned())));
        assert_eq!(done("espalier-done 17\n"), Some((String::new(), "17".to_owned())));
        for text in [
            "",
            "\n",
            "espalier-done 0",
            "\nespalier-done \n",
            "\"ifalias\":\"espalier-done 0\"}]\n",
            "x espalier-done 0\n",
        ] {
            assert_eq!(done(text), None, "{text:?}");
        }
    }

    /// The shell says a quoted name as it is, whatever it would do with the name alone.
    #[test]
    fn names_are_one_word_of_a_shell() {
        for name in ["p1", "$(exit 7)", ";exit 7", "a'b", "`exit 7`", "a\"b", "-n", "x&y", "*"] {
            let script = format!("printf '%s' {}", quoted(name));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
            assert_eq!((String::from_utf8_lossy(&output.stdout).as_ref(), output.status.code()), (name, Some(0)));
        }
        // What is written refuses them: their names stand in batches, between lines.
        for name in ["$(reboot)", ";reboot;", "-p1", "sixteen-letters-", "a b", "espalier"] {
            let before = SwitchConfig::blank([name.to_owned()]);
            let mut after = before.clone();
            after.ports[0].admin = Admin::Up;
            assert!(matches!(changing(&before, &after), Err(Fault::Refused(_))), "{name}");
        }
    }

    #[test]
    fn ports_of_the_bridge_that_nobody_named_come_behind_the_others() {
        let links = r#"[{"ifname":"p1","flags":["UP"]},{"ifname":"x9","flags":["UP"],"master":"espalier"},{"ifname":"y","master":"br0"}]"#;
        let vlans = r#"[{"ifname":"x9","vlans":[{"vlan":7,"flags":["PVID"]}]}]"#;
        let (config, _) = state(&["p1".to_owned()], [links, vlans, "", ""]).expect("understood");
        assert_eq!(config.ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(), ["p1", "x9"]);
        assert_eq!((config.ports[1].pvid.map(VlanId::get), config.ports[1].admin), (Some(7), Admin::Up));
    }

    #[test]
    fn what_iproute2_says_is_a_state() {
        let names = ["p1".to_owned(), "p2".to_owned()];
        let links = r#"[{"ifname":"lo","flags":["UP"]},
            {"ifname":"espalier","ifalias":"esp-1-00000001-00000002","linkinfo":{"info_data":{"vlan_filtering":1,"stp_state":0}}},
            {"ifname":"p1","flags":["BROADCAST","UP"],"mtu":9000,"master":"espalier","linkinfo":{"info_slave_data":{"learning":true,"flood":false,"mcast_flood":true,"bcast_flood":false}}},
            {"ifname":"p2","flags":[]}]"#;
        let vlans = r#"[{"ifname":"p1","vlans":[{"vlan":2,"vlanEnd":3,"flags":["Egress Untagged"]},{"vlan":4,"flags":["PVID","Egress Untagged"]},{"vlan":9}]},
            {"ifname":"p2","vlans":[{"vlan":1,"flags":["PVID"]}]}]"#;
        let fdb = r#"[{"mac":"02:00:00:00:00:01","ifname":"p1","vlan":2,"master":"espalier","state":"static"},
            {"mac":"02:00:00:00:00:09","ifname":"p1","vlan":2,"master":"espalier","state":"permanent"}]"#;
        let pause = "port p1\nPause parameters for p1:\nAutonegotiate:\toff\nRX:\ton\nTX:\ton\nport p2\n";
        let (config, mark) = state(&names, [links, vlans, fdb, pause]).expect("understood");
        let port = &config.ports[0];
        assert_eq!((port.tagged.to_string(), port.untagged.to_string()), ("9".into(), "2-4".into()));
        assert_eq!((port.pvid.map(VlanId::get), port.admin), (Some(4), Admin::Up));
        assert_eq!(port.flow_control, FlowControlMode::Pause);
        assert_eq!([port.learning, config.ports[1].learning], [PortLearning::On, PortLearning::Off]);
        let blocked = FloodSet::NONE.with(FloodKind::UnknownUnicast).with(FloodKind::Broadcast);
        assert_eq!([port.blocked, config.ports[1].blocked], [Some(blocked), Some(FloodSet::NONE)]);
        assert_eq!([port.mtu_bytes, config.ports[1].mtu_bytes], [Some(9000), None]);
        assert_eq!((config.ports[1].members().is_empty(), config.entries.len()), (true, 1));
        assert!(mark.is_some());
        let other = links.replace("\"master\":\"espalier\"", "\"master\":\"br0\"");
        assert!(state(&names, [&other, vlans, fdb, pause]).is_err_and(|error| error.contains("br0")));
        assert!(state(&names, ["sh: ip: not found", "", "", ""]).is_err());
    }
}
