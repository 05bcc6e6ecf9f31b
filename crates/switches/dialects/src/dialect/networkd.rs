//! A VLAN-aware Linux bridge as files of systemd-networkd, and a unit for its static entries.
//!
//! ```text
//!   10-espalier.netdev     the bridge            espalier.fdb           a batch for bridge(8)
//!   10-espalier.network    brings it up          espalier-fdb.service   runs it
//!   20-swp1.network        a port's VLANs                               and sets PAUSE
//!   10-lag3.netdev         a bond, a port of the bridge like others
//!   20-swp2.network        Bond=lag3: its member
//! ```
//! networkd's own `[BridgeFDB]` enters addresses as permanent (`NUD_PERMANENT` in its source), and to a Linux bridge a
//! permanent address is its own: frames for it would end there. Hence the unit. `EgressUntagged=` and `PVID=` imply
//! membership; a port's default PVID is the bridge's, which is none here. How a difference is written is said in
//! [`super::kept`]. `networkctl reload` reconfigures ports whose files are new or changed, and adds VLANs with their flags;
//! it takes none away before version 257, and leaves a PVID that no file names as it is from then on. It makes bonds that
//! files describe and puts ports into them, having taken them down; a bond that is there stays as it is, and one whose file is
//! gone stays too. LAGs: `systemd.netdev(5)` and `systemd.network(5)`.

use std::{fmt::Write as _, io};

use fabric::{Admin, Basis, FloodKind, FloodSet, FlowControlMode, VlanId};

use super::{
    Ability, Dialect, FileErrors, Full, Lags, Learns, Output, SnoopingWords, StormControl, TextFile, Traits, Untagged,
    bond::BondSettings,
    kept::{self, Extent, Keeper, Kept, Reading, base},
    kernel_bridge::Ports,
    linux_bridge::{is_device, learning_word},
    present,
};
use crate::text::{LineError, interpret, vlan, vlans};
use fabric::SpanningTree;
use switch_model::{LagMembership, PortConfig, PortLearning, SwitchConfig, change::Change};

/// The bridge device.
const BRIDGE: &str = "espalier";
/// The static entries.
const BATCH: &str = "espalier.fdb";
/// The unit that enters them.
const SERVICE: &str = "espalier-fdb.service";

/// The language.
pub(super) struct Networkd;

impl Dialect for Networkd {
    fn traits(&self) -> Traits {
        Traits {
            comment: Some("#"),
            extension: "d",
            untagged: Untagged::Many,
            pause: Ability::Has,
            priority_flow_control: Ability::Lacks,
            full: Full::AsState,
            learning: Learns::AsTold,
            blocks: FloodSet::NONE.with(FloodKind::UnknownUnicast).with(FloodKind::Multicast),
            storm_control: StormControl::Lacks,
            lags: Lags::Made,
            lldp: None,
            snooping: SnoopingWords::NONE,
            port_name: (is_device, "swp1, of at most 15 bytes"),
            basis: Basis::Untested,
        }
    }

    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        SwitchConfig::blank(ports)
    }

    fn write(&self, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
        kept::write(self, change, out)
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        kept::read(self, files, config)
    }
}

impl Keeper for Networkd {
    fn default_pvid(&self) -> Option<VlanId> {
        None
    }

    fn files(&self, config: &SwitchConfig, ports: usize) -> Vec<Kept> {
        let stp = if config.spanning_tree == SpanningTree::On { "yes" } else { "no" };
        let netdev = format!(
            "[NetDev]\nName={BRIDGE}\nKind=bridge\n[Bridge]\nVLANFiltering=yes\nDefaultPVID=none\nSTP={stp}\nMulticastSnooping=no\n"
        );
        let network = format!(
            "[Match]\nName={BRIDGE}\n[Link]\nActivationPolicy=up\nRequiredForOnline=no\n\
             [Network]\nLinkLocalAddressing=no\nConfigureWithoutCarrier=yes\n"
        );
        let ports: Vec<&PortConfig> = present(config, ports).collect();
        let mut files = vec![
            Kept { name: format!("10-{BRIDGE}.netdev"), text: netdev },
            Kept { name: format!("10-{BRIDGE}.network"), text: network },
        ];
        files.extend(ports.iter().filter(|port| port.lag_number().is_some()).map(|lag| bond_file(lag)));
        files.extend(ports.iter().map(|port| {
            let text = match port.lag {
                LagMembership::Of(lag) => member_file(port, &config.port(lag).name),
                LagMembership::Alone | LagMembership::Unsaid => port_file(port),
            };
            Kept { name: format!("20-{}.network", port.name), text }
        }));
        files.push(Kept { name: BATCH.to_owned(), text: kept::entries(config) });
        files.push(Kept { name: SERVICE.to_owned(), text: service(&ports) });
        files
    }

    fn place(&self, name: &str) -> &'static str {
        if name == SERVICE { "/etc/systemd/system/" } else { "/etc/systemd/network/" }
    }

    fn told(&self, name: &str) -> Option<&'static str> {
        match name {
            BATCH => None,
            SERVICE => Some("systemctl daemon-reload"),
            _ => Some("networkctl reload"),
        }
    }

    fn guard(&self) -> Option<&'static str> {
        None
    }

    fn read(&self, read: &Reading<'_>, config: &mut SwitchConfig) -> Result<(), FileErrors> {
        let mut errors: FileErrors = Vec::new();
        let known = read.extent == Extent::Part;
        let mut seen = Seen { filtering: known, service: known, wanted: known };
        let mut ports = Ports::new(true, None, config);
        for name in read.removed.iter().filter_map(|name| name.strip_prefix("20-")?.strip_suffix(".network")) {
            let removed = ports.leave_bridge(name).and_then(|()| ports.slot(name));
            match removed {
                Ok(slot) => ports.config.ports[slot.index()].admin = Admin::Down,
                Err(message) => errors.push((0, LineError { line: 1, message })),
            }
        }
        let is_batch = |file: &TextFile<'_>| file.name.ends_with(".fdb");
        let is_device = |file: &TextFile<'_>| file.name.ends_with(".netdev");
        // Devices are made before ports join them; entries come last, as the unit that enters them does.
        let (batches, units): (Vec<_>, Vec<_>) = read.files.iter().copied().partition(|(_, file)| is_batch(file));
        let (devices, units): (Vec<_>, Vec<_>) = units.into_iter().partition(|(_, file)| is_device(file));
        for (index, file) in devices.into_iter().chain(units) {
            if let Err(found) = read_unit(&file, &mut ports, &mut seen) {
                errors.extend(found.into_iter().map(|error| (index, error)));
            }
        }
        for name in read.removed.iter().filter_map(|name| name.strip_prefix("10-")?.strip_suffix(".netdev")) {
            if let Err(message) = ports.remove_bond(name) {
                errors.push((0, LineError { line: 1, message }));
            }
        }
        let mut whole = |message: &str| errors.push((0, LineError { line: 1, message: message.to_owned() }));
        if !seen.filtering {
            whole("no .netdev makes a bridge with VLANFiltering=yes, so none knows VLANs");
        }
        if !batches.is_empty() && !seen.service {
            whole("no service runs the batch of static entries when the machine starts");
        }
        for (index, file) in batches {
            if let Err(found) = kept::read_entries(file.text, &mut ports) {
                errors.extend(found.into_iter().map(|error| (index, error)));
            }
        }
        ports.finish();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// What says that floods of a kind leave by a port. For broadcasts there is no word.
const FLOODS: [(FloodKind, &str); 2] =
    [(FloodKind::UnknownUnicast, "UnicastFlood"), (FloodKind::Multicast, "MulticastFlood")];

/// A LAG, without its members and VLANs.
fn bond_file(lag: &PortConfig) -> Kept {
    let name = &lag.name;
    let text = format!(
        "[NetDev]\nName={name}\nKind=bond\n[Bond]\nMode=802.3ad\nMIIMonitorSec=100ms\nLACPTransmitRate=fast\n\
         TransmitHashPolicy=layer2+3\n"
    );
    Kept { name: format!("10-{name}.netdev"), text }
}

/// Which port a file is about, whether it is up, and the device that it is a port of: the bridge or a bond.
fn joined(port: &PortConfig, device: &str) -> String {
    let policy = if port.admin == Admin::Up { "up" } else { "always-down" };
    format!(
        "[Match]\nName={}\n[Link]\nActivationPolicy={policy}\nRequiredForOnline=no\n\
         [Network]\n{device}\nLinkLocalAddressing=no\nConfigureWithoutCarrier=yes\n",
        port.name
    )
}

/// A member of a LAG.
fn member_file(port: &PortConfig, lag: &str) -> String {
    joined(port, &format!("Bond={lag}"))
}

/// A port, its VLANs and its PVID.
fn port_file(port: &PortConfig) -> String {
    let learning = if learning_word(port.learning) == "on" { "yes" } else { "no" };
    let mut text = joined(port, &format!("Bridge={BRIDGE}")) + &format!("[Bridge]\nLearning={learning}\n");
    for (kind, key) in FLOODS {
        if port.blocked.unwrap_or_default().contains(kind) {
            let _ = writeln!(text, "{key}=no");
        }
    }
    if !port.members().is_empty() {
        text.push_str("[BridgeVLAN]\n");
    }
    for (set, key) in [(&port.tagged, "VLAN"), (&port.untagged, "EgressUntagged")] {
        for (first, last) in set.runs() {
            let _ =
                if first == last { writeln!(text, "{key}={first}") } else { writeln!(text, "{key}={first}-{last}") };
        }
    }
    if let Some(pvid) = port.pvid {
        let _ = writeln!(text, "PVID={pvid}");
    }
    text
}

/// The unit that enters static entries and sets PAUSE.
fn service(ports: &[&PortConfig]) -> String {
    let mut text = format!(
        "[Unit]\nDescription=Static entries of the bridge {BRIDGE}\nAfter=systemd-networkd.service\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nRestart=on-failure\nRestartSec=1\n\
         ExecStart=bridge -batch /etc/systemd/network/{BATCH}\n"
    );
    let pauses = |port: &&&PortConfig| port.flow_control == FlowControlMode::Pause && port.lag_number().is_none();
    for port in ports.iter().filter(pauses) {
        // A card that refuses PAUSE is no reason to do without the entries.
        let _ = writeln!(text, "ExecStart=-ethtool -A {} rx on tx on", port.name);
    }
    text + "[Install]\nWantedBy=multi-user.target\n"
}

struct Seen {
    filtering: bool,
    /// Whether a unit runs the batch of entries, and whether it is started with the machine.
    service: bool,
    wanted: bool,
}

/// Reads one file in the form of systemd's units, as what it is for.
fn read_unit(file: &TextFile<'_>, ports: &mut Ports<'_>, seen: &mut Seen) -> Result<(), Vec<LineError>> {
    let mut section = String::new();
    let (mut name, mut default_pvid) = (String::new(), Some(VlanId::MIN));
    let kind = base(file.name).rsplit_once('.').map_or("", |(_, kind)| kind);
    let (mut enslaved, mut bond) = (false, None::<BondSettings>);
    if kind == "service" {
        (seen.service, seen.wanted) = (false, false);
        // The unit names the ports that have PAUSE.
        ports.config.ports.iter_mut().for_each(|port| port.flow_control = FlowControlMode::Off);
    }
    interpret(file.text, "#", |words| {
        let line = words.join(" ");
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            header.clone_into(&mut section);
            return Ok(());
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(format!("{line:?} is neither section nor setting"));
        };
        let unknown = || Err(format!("{key}= means nothing here in [{section}]"));
        match (kind, section.as_str(), key) {
            ("service", "Service", "ExecStart") => {
                let command: Vec<&str> = value.trim_start_matches('-').split(' ').collect();
                match &command[..] {
                    ["bridge", "-batch", file] => seen.service |= file.ends_with(&format!("/{BRIDGE}.fdb")),
                    ["ethtool", "-A", rest @ ..] => ports.pause(rest)?,
                    _ => return Err(format!("{value:?} is no command that this reader knows")),
                }
            }
            ("service", "Install", "WantedBy") => seen.wanted = value == "multi-user.target",
            ("service", ..) => {}
            (_, "NetDev" | "Match", "Name") => {
                value.clone_into(&mut name);
                if name != BRIDGE {
                    let slot = ports.slot(&name)?;
                    let is_lag = ports.config.port(slot).lag_number().is_some();
                    if kind == "network" && is_lag && !ports.bonds.contains(&slot) {
                        return Err(format!("no .netdev makes {name}"));
                    }
                    if kind == "network" {
                        // The file says all there is of a port but for PAUSE.
                        let port = &mut ports.config.ports[slot.index()];
                        let flow_control = port.flow_control.clone();
                        *port = PortConfig { admin: Admin::Up, flow_control, ..PortConfig::blank(name.clone()) };
                    }
                }
            }
            ("netdev", "NetDev", "Kind") if name != BRIDGE && value == "bond" => bond = Some(BondSettings::default()),
            ("netdev", "NetDev", "Kind") if name == BRIDGE && value == "bridge" => {}
            ("netdev", "Bond", key) => {
                let Some(bond) = &mut bond else { return unknown() };
                match key {
                    "Mode" => bond.mode(value),
                    "MIIMonitorSec" => {
                        bond.miimon(value.strip_suffix("ms").or(value.strip_suffix('s')).unwrap_or(value))
                    }
                    "LACPTransmitRate" => BondSettings::lacp_rate(value, &["slow", "fast"])?,
                    "TransmitHashPolicy" => BondSettings::hash_policy(value)?,
                    _ => return unknown(),
                }
            }
            ("netdev", ..) if bond.is_some() => return unknown(),
            ("netdev", "Bridge", "VLANFiltering") => seen.filtering = value == "yes",
            ("netdev", "Bridge", "DefaultPVID") => {
                default_pvid = if value == "none" { None } else { Some(vlan(value)?) };
            }
            ("netdev", "Bridge", "STP") => {
                ports.config.spanning_tree = if value == "yes" { SpanningTree::On } else { SpanningTree::Off };
            }
            ("netdev", "Bridge", "MulticastSnooping") if value == "no" => {}
            ("network", "Link", "RequiredForOnline") => {}
            ("network", "Network", "LinkLocalAddressing" | "ConfigureWithoutCarrier") => {}
            ("network", "Link", "ActivationPolicy") if name == BRIDGE => {}
            ("network", _, _) if name == BRIDGE => return unknown(),
            ("network", section, key) => {
                let slot = ports.slot(&name)?;
                let port = &mut ports.config.ports[slot.index()];
                match (section, key) {
                    ("Link", "ActivationPolicy") => {
                        port.admin = match value {
                            "up" | "always-up" => Admin::Up,
                            "down" | "always-down" => Admin::Down,
                            _ => return unknown(),
                        };
                    }
                    ("Network", "Bond") if !enslaved => {
                        let lag = ports.bond_of(slot, value)?;
                        ports.leave_bridge(&name)?;
                        ports.config.ports[slot.index()].lag = LagMembership::Of(lag);
                        enslaved = true;
                    }
                    _ if matches!(port.lag, LagMembership::Of(_)) && section != "Link" => return unknown(),
                    // A port learns until it is told not to.
                    ("Network", "Bridge") if value == BRIDGE => {
                        port.learning = PortLearning::On;
                        enslaved = true;
                    }
                    ("Bridge", "Learning") => {
                        port.learning = match value {
                            "yes" => PortLearning::On,
                            "no" => PortLearning::Off,
                            _ => return unknown(),
                        };
                    }
                    ("Bridge", "UnicastFlood" | "MulticastFlood") => {
                        let out = match value {
                            "yes" => true,
                            "no" => false,
                            _ => return unknown(),
                        };
                        let found = FLOODS.iter().find(|(_, word)| *word == key);
                        let Some((kind, _)) = found else { return unknown() };
                        let others = port.blocked.unwrap_or_default().without(FloodSet::NONE.with(*kind));
                        port.blocked = Some(if out { others } else { others.with(*kind) });
                    }
                    ("BridgeVLAN", "VLAN") => {
                        let new = vlans(value)?;
                        port.tagged
                            .extend(new.iter().filter(|vlan| !port.untagged.contains(*vlan)).collect::<Vec<_>>());
                    }
                    ("BridgeVLAN", "EgressUntagged") => {
                        for vlan in vlans(value)?.iter() {
                            port.tagged.remove(vlan);
                            port.untagged.insert(vlan);
                        }
                    }
                    ("BridgeVLAN", "PVID") => {
                        let pvid = vlan(value)?;
                        if !port.is_member(pvid) {
                            port.tagged.insert(pvid);
                        }
                        port.pvid = Some(pvid);
                    }
                    _ => return unknown(),
                }
            }
            _ => return unknown(),
        }
        Ok(())
    })?;
    let wrong = |message: &str| Err(vec![LineError { line: 1, message: message.to_owned() }]);
    match kind {
        "netdev" if bond.is_some() => {
            let made = bond.unwrap_or_default().check(&name).and_then(|()| ports.add_bond(&name));
            made.map(|_| ()).map_err(|message| vec![LineError { line: 1, message }])
        }
        "netdev" if default_pvid.is_some() => wrong("without DefaultPVID=none every port joins VLAN 1"),
        "network" if name != BRIDGE && !enslaved => {
            wrong("without Bridge=espalier or Bond= the port is none of the bridge or of a LAG")
        }
        "service" if !(seen.service && seen.wanted) => wrong("the unit does not run the batch when the machine starts"),
        _ => Ok(()),
    }
}
