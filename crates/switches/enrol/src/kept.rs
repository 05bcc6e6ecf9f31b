//! Ledgers: what a probe that broke off leaves for the one that cleans up after it.

use std::{collections::BTreeMap, net::SocketAddr};

use fabric::VlanId;
use serde::{Deserialize, Serialize};

use crate::{Ledger, Names};
use bridge_mib::PortList;
use switch_model::format::FormatError;

const FORMAT: &str = "espalier-probe";
const VERSION: u32 = 1;

/// A ledger, and the switch that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLedger {
    /// What the switch is called where credentials are looked up.
    pub switch: String,
    /// Where it answers.
    pub address: SocketAddr,
    /// What may be left on it.
    pub ledger: Ledger,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    switch: String,
    address: SocketAddr,
    nonce: u32,
    names: String,
    vlans: String,
    ports: Vec<u32>,
    pvids: BTreeMap<u32, u32>,
    pause: BTreeMap<u32, i32>,
    /// By VLAN: which of the ports are members, and which of them untagged ones.
    members: BTreeMap<u16, [Vec<u32>; 2]>,
    list_len: usize,
}

/// Writes a ledger.
pub fn write_ledger(kept: &KeptLedger) -> String {
    let KeptLedger { switch, address, ledger } = kept;
    let numbers = |list: &PortList| list.iter().collect::<Vec<u32>>();
    let members = ledger.members.iter().map(|(vlan, (all, untagged))| (vlan.get(), [numbers(all), numbers(untagged)]));
    let file = File {
        format: FORMAT.to_owned(),
        version: VERSION,
        switch: switch.clone(),
        address: *address,
        nonce: ledger.nonce,
        names: ledger.names.word().to_owned(),
        vlans: ledger.vlans.to_string(),
        ports: ledger.ports.clone(),
        pvids: ledger.pvids.clone(),
        pause: ledger.pause.clone(),
        members: members.collect(),
        list_len: ledger.list_len,
    };
    let mut text = serde_json::to_string_pretty(&file).expect("names and numbers are JSON");
    text.push('\n');
    text
}

/// Reads a ledger.
///
/// # Errors
/// [`FormatError`].
pub fn parse_ledger(text: &str) -> Result<KeptLedger, FormatError> {
    let file: File = serde_json::from_str(text)?;
    let content = |message: String| FormatError::Content(message);
    if file.format != FORMAT {
        return Err(content(format!("{:?} is not {FORMAT:?}", file.format)));
    }
    if file.version > VERSION {
        return Err(FormatError::Version { found: file.version, known: VERSION });
    }
    let names = Names::ALL.into_iter().find(|names| names.word() == file.names);
    let list = |ports: &[u32]| PortList::of(ports.iter().copied()).map_err(|error| content(error.to_string()));
    let members = file.members.iter().map(|(vlan, [all, untagged])| {
        let vlan = VlanId::new(*vlan).map_err(|error| content(error.to_string()))?;
        Ok((vlan, (list(all)?, list(untagged)?)))
    });
    let ledger = Ledger {
        nonce: file.nonce,
        names: names.ok_or_else(|| content(format!("names are unknown, kept or dropped, not {:?}", file.names)))?,
        vlans: file.vlans.parse().map_err(|error| content(format!("vlans: {error}")))?,
        members: members.collect::<Result<_, FormatError>>()?,
        ports: file.ports,
        pvids: file.pvids,
        pause: file.pause,
        list_len: file.list_len,
    };
    Ok(KeptLedger { switch: file.switch, address: file.address, ledger })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let vlan = |id| VlanId::new(id).expect("in range");
        let ports = |ports: &[u32]| PortList::of(ports.iter().copied()).expect("ports");
        let ledger = Ledger {
            nonce: u32::MAX,
            names: Names::Kept,
            vlans: [4090, 4091, 4093].map(vlan).into_iter().collect(),
            ports: vec![23, 24],
            pvids: [(23, 1), (24, 7)].into(),
            pause: [(100_023, 1)].into(),
            members: [(vlan(1), (ports(&[23, 24]), ports(&[23]))), (vlan(9), (ports(&[]), ports(&[])))].into(),
            list_len: 4,
        };
        let kept = KeptLedger { switch: "sw1".to_owned(), address: ([192, 0, 2, 1], 161).into(), ledger };
        let text = write_ledger(&kept);
        assert_eq!(parse_ledger(&text).expect("its own file"), kept);
        for (from, to) in
            [("4090-4091", "0-1"), ("\"kept\"", "\"lost\""), ("-probe", "-plan"), ("\"version\": 1", "\"version\": 2")]
        {
            assert!(text.contains(from), "{text}");
            assert!(parse_ledger(&text.replacen(from, to, 1)).is_err(), "{to}");
        }
    }
}
