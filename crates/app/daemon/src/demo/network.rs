//! What the daemon of a demonstration watches: model switches on loopback addresses, or managed switches of the lab.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use fabric::{LinkId, Plan, SwitchId, Topology, TopologyBuilder, format::plan::write_plan};
use rack::{COMMUNITY, Rack, on_loopback};
use rustix::process::geteuid;

/// The community that may write, of switches in the lab.
const LAB_COMMUNITY: &str = "private";
/// The port of their agents.
const LAB_PORT: u16 = 161;
/// An address that no switch of a lab has.
const NOBODY: &str = "02:00:00:00:00:99";
/// The program that makes labs.
const ESPALIER: &str = "espalier";

/// Which switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switches {
    /// Models that answer SNMP and forward nothing.
    Models,
    /// Managed switches of the lab, on real kernels.
    Lab,
}

/// Switches that are watched, gone with this.
pub(super) enum Network {
    Models(Rack),
    Lab(Lab),
}

impl Network {
    /// Starts the switches of a plan, and gives the plan their addresses.
    ///
    /// # Errors
    /// A message, with the way out.
    pub(super) fn open(switches: Switches, plan: Plan) -> Result<(Self, Plan), String> {
        match switches {
            Switches::Models => {
                let plan = Plan { topology: on_loopback(&plan.topology), ..plan };
                let rack = Rack::open(&plan.topology).map_err(|error| format!("model switches: {error}"))?;
                Ok((Self::Models(rack), plan))
            }
            Switches::Lab => {
                let plan = Plan { topology: managed(&plan.topology)?, ..plan };
                Ok((Self::Lab(Lab::up(&plan)?), plan))
            }
        }
    }

    /// The UDP port of their agents, and the community that may write.
    pub(super) fn access(&self) -> (u16, &'static str) {
        match self {
            Self::Models(rack) => (rack.port(), COMMUNITY),
            Self::Lab(_) => (LAB_PORT, LAB_COMMUNITY),
        }
    }

    /// A command that runs a program where the switches are managed from.
    pub(super) fn command(&self, program: &Path) -> Command {
        match self {
            Self::Models(_) => Command::new(program),
            Self::Lab(lab) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &lab.manager()]).arg(program);
                command
            }
        }
    }

    /// What they are, in words.
    pub(super) fn words(&self, count: usize) -> String {
        match self {
            Self::Models(rack) => {
                format!("{count} model switches answer SNMP at 127.21.0.1 and on, port {}", rack.port())
            }
            Self::Lab(lab) => format!(
                "{count} managed switches of the lab {0} answer SNMP at 198.18.0.1 and on; their hosts: espalier lab --name {0} ping",
                lab.name
            ),
        }
    }

    /// Takes the carrier of a link away.
    pub(super) fn cut(&self, topology: &Topology, link: LinkId) -> Result<(), String> {
        match self {
            Self::Models(rack) => rack.cut(link),
            Self::Lab(lab) => lab.run(&["fail", &topology.link_label(link)])?,
        }
        Ok(())
    }

    /// Has a link lose all frames although it is up.
    pub(super) fn lose(&self, topology: &Topology, link: LinkId) -> Result<(), String> {
        match self {
            Self::Models(_) => Err("model switches forward no frames; begin with espalierd demo --lab".to_owned()),
            Self::Lab(lab) => lab.run(&["fail", &topology.link_label(link), "--silent"]),
        }
    }

    /// Has a link carry again.
    pub(super) fn mend(&self, topology: &Topology, link: LinkId) -> Result<(), String> {
        match self {
            Self::Models(rack) => rack.mend(link),
            Self::Lab(lab) => lab.run(&["heal", &topology.link_label(link)])?,
        }
        Ok(())
    }

    /// Switches a switch off. In the lab it keeps what it holds, loses its carriers and is not reached.
    pub(super) fn turn_off(&self, topology: &Topology, switch: SwitchId) -> Result<(), String> {
        match self {
            Self::Models(rack) => rack.turn_off(switch),
            Self::Lab(lab) => lab.turn_off(topology, switch)?,
        }
        Ok(())
    }

    /// Switches a switch on.
    pub(super) fn turn_on(&self, topology: &Topology, switch: SwitchId) -> Result<(), String> {
        match self {
            Self::Models(rack) => rack.turn_on(switch),
            Self::Lab(lab) => lab.turn_on(topology, switch)?,
        }
        Ok(())
    }
}

/// A topology whose switches have the addresses that the lab gives them.
fn managed(topology: &Topology) -> Result<Topology, String> {
    let mut builder = TopologyBuilder::of(topology);
    for (number, switch) in (1_u16..).zip(topology.switch_ids()) {
        let [high, low] = number.to_be_bytes();
        let address = IpAddr::V4(Ipv4Addr::new(198, 18, high, low));
        builder.set_switch_mgmt(switch, address).map_err(|error| error.to_string())?;
    }
    Ok(builder.finish().expect("addresses change nothing else"))
}

/// A lab, taken down with this.
pub(super) struct Lab {
    espalier: PathBuf,
    name: String,
}

impl Lab {
    fn up(plan: &Plan) -> Result<Self, String> {
        if !geteuid().is_root() {
            return Err("--lab makes network namespaces: run it as root, or without --lab".to_owned());
        }
        let own = std::env::current_exe().map_err(|error| format!("this program's file: {error}"))?;
        let beside = own.with_file_name(ESPALIER);
        let espalier = if beside.is_file() { beside } else { PathBuf::from(ESPALIER) };
        let lab = Self { espalier, name: format!("demo{}", std::process::id()) };
        let file = std::env::temp_dir().join(format!("espalierd-{}.json", lab.name));
        let mut text = Vec::new();
        write_plan(plan, &mut text).map_err(|error| error.to_string())?;
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        let made = lab.run(&["up", "--factory", &file.display().to_string(), "--backend", "ebpf"]);
        let _ = fs::remove_file(&file);
        made.map(|()| lab)
    }

    /// The namespace that its switches are managed from.
    fn manager(&self) -> String {
        format!("esp-{}-mgmt", self.name)
    }

    fn run(&self, words: &[&str]) -> Result<(), String> {
        done(Command::new(&self.espalier).args(["lab", "--name", &self.name]).args(words))
    }

    fn turn_off(&self, topology: &Topology, switch: SwitchId) -> Result<(), String> {
        self.cables(topology, switch, "fail")?;
        // Frames to an address that nobody has are lost, as they are on the way to a switch that is off.
        self.neighbour(topology, switch, &["replace", "lladdr", NOBODY, "nud", "permanent"])
    }

    fn turn_on(&self, topology: &Topology, switch: SwitchId) -> Result<(), String> {
        self.neighbour(topology, switch, &["del"])?;
        self.cables(topology, switch, "heal")
    }

    fn cables(&self, topology: &Topology, switch: SwitchId, verb: &str) -> Result<(), String> {
        let is_of = |link: &LinkId| {
            let link = topology.link(*link);
            [link.a, link.b].iter().any(|port| topology.port(*port).switch == switch)
        };
        topology.link_ids().filter(is_of).try_for_each(|link| self.run(&[verb, &topology.link_label(link)]))
    }

    /// Changes what the manager knows of a switch's address.
    fn neighbour(&self, topology: &Topology, switch: SwitchId, what: &[&str]) -> Result<(), String> {
        let address = topology.switch(switch).mgmt.map(|address| address.to_string()).unwrap_or_default();
        let port = format!("m{}", switch.index());
        let (verb, further) = what.split_first().expect("a verb");
        let mut command = Command::new("ip");
        command.args(["-n", &self.manager(), "neigh", verb, &address, "dev", &port]).args(further);
        done(&mut command)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Err(why) = self.run(&["down"]) {
            eprintln!("espalierd: the lab {} is still there: {why}; espalier lab down {}", self.name, self.name);
        }
    }
}

/// Runs a program to its end.
fn done(command: &mut Command) -> Result<(), String> {
    let named = command.get_program().to_string_lossy().into_owned();
    let output: Output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{named}: {error}; install it beside espalierd"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{named}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
