//! A shell script of `sysctl` and `ip` commands, which may be run again: what it sets replaces what it has set before.

use std::{fmt::Write as _, net::IpAddr};

use crate::{HostSetup, Nic, PARAMETERS, PARAMETERS_NOTE};

/// Refuses to touch a port that is not the plan's: switches have a static entry for its Ethernet address.
const CHECK: &str = r#"# Switches have a static entry for the Ethernet address of each port: nothing is set unless all are as planned.
check() {
    if ! found=$(cat "/sys/class/net/$1/address"); then
        echo "$0: there is no network device $1; is this the script of this machine?" >&2
        exit 1
    fi
    if [ "$found" != "$2" ]; then
        echo "$0: $1 has the Ethernet address $found, and the plan says $2; run the script of this machine, or correct mac: in the topology and plan again" >&2
        exit 1
    fi
}
"#;

impl HostSetup<'_> {
    /// The script. It takes effect at once and is gone with the next start of the machine.
    pub fn script(&self) -> String {
        let mut text = format!(
            "#!/bin/sh\n# {}.\n# Run it as root at every start of the machine, and after a port was down; running it again changes nothing.\n\
             set -eu\n\n{CHECK}",
            self.origin()
        );
        for Nic { device, mac, .. } in &self.nics {
            let _ = writeln!(text, "check '{device}' '{mac}'");
        }
        if self.has_ipv4() {
            text.push('\n');
            for (parameter, value, why) in PARAMETERS {
                let _ = writeln!(text, "# {parameter} {value}: {why}");
            }
            let _ = writeln!(text, "# {PARAMETERS_NOTE} (Documentation/networking/ip-sysctl.rst)");
            for Nic { device, .. } in self.nics.iter().filter(|nic| nic.address.is_ipv4()) {
                let set =
                    PARAMETERS.map(|(parameter, value, _)| format!("'net/ipv4/conf/{device}/{parameter}={value}'"));
                let _ = writeln!(text, "sysctl -q -w {}", set.join(" "));
            }
        }
        text.push_str(
            "\n# Each port has a routing table of its own, and a rule that has packets from its address use it. Destinations\n\
             # outside the subnet are not in the table, so the main table's routes hold for them.\n",
        );
        self.nics.iter().for_each(|nic| port(&mut text, nic));
        text
    }
}

fn port(text: &mut String, nic: &Nic) {
    let Nic { device, address, prefix_bits, mtu_bytes, table, .. } = nic;
    let (family, broadcast, source) = match address {
        IpAddr::V4(_) => ("-4", " broadcast +", format!(" scope link src {address}")),
        IpAddr::V6(_) => ("-6", "", String::new()),
    };
    let _ = write!(
        text,
        "\n# {}\n\
         ip link set dev '{device}' mtu {mtu_bytes} up\n\
         ip {family} address replace {address}/{prefix_bits}{broadcast} dev '{device}'\n\
         for family in -4 -6; do\n    \
             while ip $family rule del table {table} 2>/dev/null; do :; done\n    \
             ip $family route flush table {table} 2>/dev/null || :\n\
         done\n\
         ip {family} route replace {} dev '{device}' table {table}{source}\n\
         ip {family} rule add from {address} table {table} priority {table}\n",
        nic.label(),
        nic.network(),
    );
}
