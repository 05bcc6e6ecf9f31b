//! The file that remembers learned addresses from one run to the next, and for `status` and `check`.
//!
//! ```json
//! {"version": 1, "addresses": [{"mac": "52:54:00:00:00:01", "host": "vmhost2"}]}
//! ```

use std::collections::BTreeMap;

use fabric::{HostId, Mac, Topology};
use serde::{Deserialize, Serialize};

/// What a file says, against a topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Where each address was last.
    pub known: BTreeMap<Mac, HostId>,
    /// Addresses of hosts that the topology does not have, or at which it has no addresses learned.
    pub strange: Vec<(Mac, String)>,
}

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    addresses: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    mac: String,
    host: String,
}

/// Writes where addresses are, an address a line.
pub fn write_record(topology: &Topology, known: &BTreeMap<Mac, HostId>) -> String {
    let row = |(mac, host): (&Mac, &HostId)| {
        let row = Row { mac: mac.to_string(), host: topology.host(*host).name.clone() };
        serde_json::to_string(&row).expect("two texts")
    };
    let rows: Vec<String> = known.iter().map(row).collect();
    format!("{{\"version\":{VERSION},\"addresses\":[\n{}\n]}}\n", rows.join(",\n"))
}

/// Reads what [`write_record`] has written.
///
/// # Errors
/// What is wrong, in words.
pub fn parse_record(topology: &Topology, text: &str) -> Result<Record, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if file.version != VERSION {
        return Err(format!("version {} is not {VERSION}", file.version));
    }
    let names: BTreeMap<&str, HostId> =
        topology.learning_hosts().map(|host| (topology.host(host).name.as_str(), host)).collect();
    let mut record = Record::default();
    for Row { mac, host } in file.addresses {
        let mac: Mac = mac.parse().map_err(|error| format!("{mac} is {error}"))?;
        match names.get(host.as_str()) {
            Some(host) => {
                if record.known.insert(mac, *host).is_some() {
                    return Err(format!("{mac} is named twice"));
                }
            }
            None => record.strange.push((mac, host)),
        }
    }
    Ok(record)
}
