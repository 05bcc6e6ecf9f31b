//! Files for systemd-networkd, and one for systemd-sysctl, which sets what networkd has no word for.
//!
//! Source: systemd.network(5), sysctl.d(5).

use std::{fmt::Write as _, net::IpAddr};

use crate::{HostSetup, Nic, PARAMETERS, PARAMETERS_NOTE, SetupFile};

impl HostSetup<'_> {
    /// A `.network` file for each port, for `/etc/systemd/network`, and a file for `/etc/sysctl.d`.
    pub fn networkd(&self) -> Vec<SetupFile> {
        let network = |nic: &Nic| SetupFile {
            name: format!("network/50-espalier-{}.network", nic.device),
            text: format!("# {}.\n# {}\n{}", self.origin(), nic.label(), section(nic)),
        };
        let mut files: Vec<SetupFile> = self.nics.iter().map(network).collect();
        if self.has_ipv4() {
            files.push(SetupFile { name: "sysctl.d/50-espalier.conf".to_owned(), text: self.parameters() });
        }
        files
    }

    fn parameters(&self) -> String {
        let mut text = format!("# {}.\n", self.origin());
        for (parameter, value, why) in PARAMETERS {
            let _ = writeln!(text, "# {parameter} {value}: {why}");
        }
        let _ = writeln!(text, "# {PARAMETERS_NOTE} (Documentation/networking/ip-sysctl.rst)");
        for Nic { device, .. } in self.nics.iter().filter(|nic| nic.address.is_ipv4()) {
            for (parameter, value, _) in PARAMETERS {
                let _ = writeln!(text, "net/ipv4/conf/{device}/{parameter} = {value}");
            }
        }
        text
    }
}

fn section(nic: &Nic) -> String {
    let Nic { device, mac, address, prefix_bits, mtu_bytes, table, .. } = nic;
    let source = match address {
        IpAddr::V4(_) => format!("Scope=link\nPreferredSource={address}\n"),
        IpAddr::V6(_) => String::new(),
    };
    format!(
        "[Match]\nName={device}\nMACAddress={mac}\n\n[Link]\nMTUBytes={mtu_bytes}\n\n[Address]\nAddress={address}/{prefix_bits}\n\n\
         [Route]\nDestination={}\n{source}Table={table}\n\n[RoutingPolicyRule]\nFrom={address}\nTable={table}\nPriority={table}\n",
        nic.network()
    )
}
