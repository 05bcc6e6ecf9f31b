//! A switch's state as a file that people can read and compare: what `observe` writes and `check --observed` reads.
//!
//! ```text
//! { "format": "espalier-observed", "version": 1, "switch": "sw1", "taken_at": "2026-11-23T18:40:00Z",
//!   "state": { "spanning_tree": "off", "vlans": "2-5",
//!              "ports": [ { "name": "p1", "up": true, "pvid": 2, "tagged": "", "untagged": "2-5", … } ],
//!              "entries": { "2": { "02:00:00:00:00:01": "p1" } } } }
//! ```

use std::collections::BTreeMap;

use fabric::{Admin, FlowControlMode, LagNumber, Lldp, Mac, StormLimit, VlanId, VlanSet};
use serde::{Deserialize, Serialize};

use super::{FormatError, parse_moment, write_moment};
use crate::{Entries, LagMembership, PortConfig, PortLearning, Slot, StormLimits, SwitchConfig};
use fabric::{IngressFilter, SpanningTree};

const FORMAT: &str = "espalier-observed";
const VERSION: u32 = 1;
/// A membership that a switch does not tell.
const UNKNOWN: &str = "unknown";

/// What one switch said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Its name in the topology.
    pub switch: String,
    /// When it said so, in seconds since 1970-01-01 UTC; none if unknown. The file has it in RFC 3339.
    pub taken_at: Option<u64>,
    /// Who set it up last, if it bears a mark.
    pub mark: Option<String>,
    /// Its state.
    pub state: SwitchConfig,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    switch: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
    state: StateRecord,
}

/// The state of a switch as files have it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateRecord {
    spanning_tree: Switched,
    /// Left out where the switch does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lldp: Option<Switched>,
    /// Left out where none is on, or the switch does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    snooping: Vec<String>,
    vlans: String,
    ports: Vec<Port>,
    entries: BTreeMap<u16, BTreeMap<String, String>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Port {
    name: String,
    up: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pvid: Option<u16>,
    tagged: String,
    untagged: String,
    pause: Switched,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pfc_lanes: Option<u8>,
    ingress_filter: Switched,
    /// Left out where it always learns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learning: Option<Switched>,
    /// Left out where the switch does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtu_bytes: Option<u16>,
    /// Floods that do not leave by it. Left out where the switch does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocked: Option<String>,
    /// Storm control in percent: unknown unicast, multicast, broadcast. Left out where the switch does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    storm_limits: Option<[Option<u8>; 3]>,
    /// The LAG that it is a member of, or `unknown` where the switch does not say. Left out where it is a port of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lag: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Switched {
    On,
    Off,
}

/// Writes a file.
pub fn write_observed(observed: &Observed) -> String {
    let file = File {
        format: FORMAT.to_owned(),
        version: VERSION,
        switch: observed.switch.clone(),
        taken_at: observed.taken_at.map(write_moment),
        mark: observed.mark.clone(),
        state: StateRecord::of(&observed.state),
    };
    let mut text = serde_json::to_string_pretty(&file).expect("names and numbers are JSON");
    text.push('\n');
    text
}

/// Reads a file.
///
/// # Errors
/// [`FormatError`], naming line and column where it can.
pub fn parse_observed(text: &str) -> Result<Observed, FormatError> {
    let file: File = serde_json::from_str(text)?;
    if file.format != FORMAT {
        return Err(FormatError::Content(format!("{:?} is not {FORMAT:?}", file.format)));
    }
    if file.version > VERSION {
        return Err(FormatError::Version { found: file.version, known: VERSION });
    }
    // It may be empty: older programs did not know it.
    let told = file.taken_at.filter(|text| !text.is_empty());
    let moment = |text: String| {
        let wrong = || FormatError::Content(format!("taken_at: {text:?} is no moment such as 2026-11-23T18:40:00Z"));
        parse_moment(&text).ok_or_else(wrong)
    };
    let taken_at = told.map(moment).transpose()?;
    Ok(Observed { switch: file.switch, taken_at, mark: file.mark, state: file.state.parse()? })
}

impl StateRecord {
    /// Puts a state down.
    pub fn of(config: &SwitchConfig) -> Self {
        let mut entries: BTreeMap<u16, BTreeMap<String, String>> = BTreeMap::new();
        for ((vlan, mac), slot) in &config.entries {
            entries.entry(vlan.get()).or_default().insert(mac.to_string(), config.port(*slot).name.clone());
        }
        let switched = |on: bool| if on { Switched::On } else { Switched::Off };
        let port = |port: &PortConfig| Port {
            name: port.name.clone(),
            up: port.admin == Admin::Up,
            pvid: port.pvid.map(VlanId::get),
            tagged: ranges(&port.tagged),
            untagged: ranges(&port.untagged),
            pause: switched(port.flow_control == FlowControlMode::Pause),
            pfc_lanes: match port.flow_control {
                FlowControlMode::Pfc { lanes } => Some(lanes),
                FlowControlMode::Off | FlowControlMode::Pause => None,
            },
            ingress_filter: switched(port.ingress_filter == IngressFilter::On),
            learning: match port.learning {
                PortLearning::On => Some(Switched::On),
                PortLearning::Off => Some(Switched::Off),
                PortLearning::Always => None,
            },
            mtu_bytes: port.mtu_bytes,
            blocked: port.blocked.map(|blocked| blocked.to_string()),
            storm_limits: port.storm_limits.map(|limits| limits.map(|limit| limit.map(StormLimit::percent))),
            lag: match port.lag {
                LagMembership::Alone => None,
                LagMembership::Of(lag) => Some(config.port(lag).name.clone()),
                LagMembership::Unsaid => Some(UNKNOWN.to_owned()),
            },
        };
        Self {
            spanning_tree: switched(config.spanning_tree == SpanningTree::On),
            lldp: config.lldp.map(|lldp| switched(lldp == Lldp::On)),
            snooping: config.snooping.iter().map(|snooping| snooping.name().to_owned()).collect(),
            vlans: ranges(&config.vlans),
            ports: config.ports.iter().map(port).collect(),
            entries,
        }
    }

    /// The state that was put down.
    ///
    /// # Errors
    /// [`FormatError`], if it is none that can be.
    pub fn parse(self) -> Result<SwitchConfig, FormatError> {
        let mut slots: BTreeMap<String, Slot> = BTreeMap::new();
        let mut ports = Vec::with_capacity(self.ports.len());
        let lags: Vec<Option<String>> = self.ports.iter().map(|port| port.lag.clone()).collect();
        for (index, port) in self.ports.into_iter().enumerate() {
            if slots.insert(port.name.clone(), Slot::new(index)).is_some() {
                return Err(FormatError::Content(format!("port {} is there twice", port.name)));
            }
            ports.push(PortConfig {
                admin: if port.up { Admin::Up } else { Admin::Down },
                pvid: port.pvid.map(vlan_id).transpose()?,
                tagged: parse_ranges(&port.tagged)?,
                untagged: parse_ranges(&port.untagged)?,
                flow_control: match (port.pause, port.pfc_lanes) {
                    (Switched::On, None) => FlowControlMode::Pause,
                    (Switched::Off, None) => FlowControlMode::Off,
                    (Switched::Off, Some(lanes)) => FlowControlMode::Pfc { lanes },
                    (Switched::On, Some(_)) => {
                        return Err(FormatError::Content(format!("port {} has PAUSE and lanes at once", port.name)));
                    }
                },
                ingress_filter: if port.ingress_filter == Switched::On {
                    IngressFilter::On
                } else {
                    IngressFilter::Off
                },
                learning: match port.learning {
                    Some(Switched::On) => PortLearning::On,
                    Some(Switched::Off) => PortLearning::Off,
                    None => PortLearning::Always,
                },
                mtu_bytes: port.mtu_bytes,
                blocked: port.blocked.map(|text| text.parse().map_err(FormatError::Content)).transpose()?,
                storm_limits: port.storm_limits.map(storm_limits).transpose()?,
                lag: LagMembership::Alone,
                name: port.name,
            });
        }
        for (port, lag) in ports.iter_mut().zip(lags) {
            port.lag = match lag.as_deref() {
                None => LagMembership::Alone,
                Some(UNKNOWN) => LagMembership::Unsaid,
                Some(name) => {
                    let lag = slots.get(name).filter(|_| LagNumber::of_port(name).is_some());
                    let wrong =
                        || FormatError::Content(format!("port {}: {name:?} is no LAG of the switch", port.name));
                    LagMembership::Of(*lag.ok_or_else(wrong)?)
                }
            };
        }
        let mut entries = Entries::new();
        for (vlan, rows) in self.entries {
            let vlan = vlan_id(vlan)?;
            for (mac, port) in rows {
                let mac: Mac =
                    mac.parse().map_err(|_| FormatError::Content(format!("{mac:?} is no Ethernet address")))?;
                let slot = slots.get(&port).ok_or_else(|| {
                    FormatError::Content(format!("the entry of {mac} in VLAN {vlan} leads to {port}, which is no port"))
                })?;
                entries.insert((vlan, mac), *slot);
            }
        }
        let spanning_tree = if self.spanning_tree == Switched::On { SpanningTree::On } else { SpanningTree::Off };
        let lldp = self.lldp.map(|lldp| if lldp == Switched::On { Lldp::On } else { Lldp::Off });
        let snooping = self.snooping.iter().map(|name| name.parse().map_err(FormatError::Content));
        let snooping = snooping.collect::<Result<_, _>>()?;
        Ok(SwitchConfig { ports, vlans: parse_ranges(&self.vlans)?, entries, spanning_tree, lldp, snooping })
    }
}

/// Storm control of each kind of flood.
fn storm_limits(percents: [Option<u8>; 3]) -> Result<StormLimits, FormatError> {
    let mut limits = StormLimits::default();
    for (limit, percent) in limits.iter_mut().zip(percents) {
        let Some(percent) = percent else { continue };
        let wrong = || FormatError::Content(format!("storm control of {percent} %: limits are 1 to 99 %"));
        *limit = Some(StormLimit::new(percent).ok_or_else(wrong)?);
    }
    Ok(limits)
}

fn vlan_id(id: u16) -> Result<VlanId, FormatError> {
    VlanId::new(id).map_err(|error| FormatError::Content(error.to_string()))
}

/// `2-5,9`.
fn ranges(set: &VlanSet) -> String {
    let run =
        |(first, last): (VlanId, VlanId)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    set.runs().into_iter().map(run).collect::<Vec<_>>().join(",")
}

fn parse_ranges(text: &str) -> Result<VlanSet, FormatError> {
    let mut set = VlanSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            let id = text.parse().map_err(|_| FormatError::Content(format!("{part:?} is no range of VLANs")))?;
            vlan_id(id)
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(FormatError::Content(format!("{part:?} ends before it begins")));
        }
        set.extend((first.get()..=last.get()).filter_map(|id| VlanId::new(id).ok()));
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snooping;

    fn observed() -> Observed {
        let mut state = SwitchConfig::blank(["p1".to_owned(), "p2".to_owned()]);
        let vlan = |id| VlanId::new(id).expect("in range");
        state.vlans = [2, 3, 4, 9].into_iter().map(vlan).collect();
        state.ports[0].untagged = [2, 3, 4].into_iter().map(vlan).collect();
        state.ports[0].pvid = Some(vlan(3));
        state.ports[1].tagged = [2, 3, 4, 9].into_iter().map(vlan).collect();
        state.ports[1].flow_control = FlowControlMode::Pfc { lanes: 4 };
        state.ports[1].mtu_bytes = Some(9216);
        state.snooping.insert(Snooping::Igmp);
        state.entries.insert((vlan(2), Mac::new([2, 0, 0, 0, 0, 1])), Slot::new(1));
        Observed { switch: "sw1".to_owned(), taken_at: Some(1_795_459_200), mark: Some("esp-1-0-0".to_owned()), state }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = write_observed(&observed());
        assert!(text.contains("\"2-4,9\"") && text.contains("\"02:00:00:00:00:01\": \"p2\""), "{text}");
        assert_eq!(parse_observed(&text).expect("its own file"), observed());
    }

    #[test]
    fn what_cannot_be_is_said() {
        let text = write_observed(&observed());
        let check = |from: &str, to: &str, expect: &str| {
            let error = parse_observed(&text.replace(from, to)).expect_err("damaged").to_string();
            assert!(error.contains(expect), "{error}");
        };
        check("\"2-4,9\"", "\"9-2\"", "ends before it begins");
        check("\"2-4,9\"", "\"2-5000\"", "5000");
        check("\"pvid\": 3", "\"pvid\": 0", "0");
        check("\"igmp\"", "\"icmp\"", "neither igmp nor mld");
        check(": \"p2\"\n", ": \"p7\"\n", "no port");
        check("\"version\": 1", "\"version\": 9", "newer");
        check("espalier-observed", "something", "is not");
        check("\"ports\": [", "\"ports\": {", "line");
    }
}
