//! For those who deploy with Ansible: an inventory, a playbook and the files, which Espalier renders and Ansible loads.
//!
//! ```text
//!   inventory.yml   a group for each language, a host for each switch
//!   playbook.yml    a play for each language: drained files for real switches, scripts and units for Linux
//!   files/…         what `espalier render` writes
//! ```

use std::{fmt::Write as _, io};

use fabric::Plan;

use crate::{Folder, Part, Target, dialect::SWSSCONFIG};

/// How Ansible gets a language's files onto a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deployment {
    /// A module of a collection loads the file over the switch's command line.
    Module {
        /// `ansible_network_os`.
        network_os: &'static str,
        /// The module.
        module: &'static str,
    },
    /// The file is copied and a command run there.
    Command(&'static str),
    /// No collection knows the switch: the file is loaded by hand, by TFTP or at the console.
    ByHand,
}

impl Target {
    /// How Ansible gets this language's files onto a switch.
    pub const fn deployment(self) -> Deployment {
        match self {
            Self::LinuxBridge | Self::OpenVswitch => Deployment::Command("sh /etc/espalier/{{ file }}"),
            Self::Networkd => Deployment::Command(
                "sh -c 'cp -r /etc/espalier/{{ file }}/. /etc/systemd/network/ && \
                 mv /etc/systemd/network/espalier-fdb.service /etc/systemd/system/ && \
                 systemctl daemon-reload && networkctl reload && systemctl enable espalier-fdb && \
                 for try in 1 2 3 4 5 6; do systemctl restart espalier-fdb && exit; sleep 2; done; exit 1'",
            ),
            Self::Ifupdown2 => Deployment::Command(
                "sh -c 'cp /etc/espalier/{{ file }}/espalier.fdb /etc/network/ && \
                 cp /etc/espalier/{{ file }}/espalier.intf /etc/network/interfaces.d/ && ifreload -a'",
            ),
            Self::Sonic => Deployment::Command("config load -y /etc/espalier/{{ file }}"),
            Self::CiscoSb => {
                Deployment::Module { network_os: "community.ciscosmb.ciscosmb", module: "ansible.netcommon.cli_config" }
            }
            Self::RouterOs => {
                Deployment::Module { network_os: "community.routeros.routeros", module: "ansible.netcommon.cli_config" }
            }
            Self::Eos => Deployment::Module { network_os: "arista.eos.eos", module: "arista.eos.eos_config" },
            Self::Ios => Deployment::Module { network_os: "cisco.ios.ios", module: "cisco.ios.ios_config" },
            Self::Junos => Deployment::Module {
                network_os: "junipernetworks.junos.junos",
                module: "junipernetworks.junos.junos_config",
            },
            Self::PowerConnect
            | Self::EdgeCore
            | Self::Comware7
            | Self::Comware5
            | Self::Huawei
            | Self::Zyxel
            | Self::TpLink
            | Self::Fastpath => Deployment::ByHand,
        }
    }
}

/// Writes inventory and playbook for rendered files, which stand in `files/` beside them.
///
/// # Errors
/// Those of `folder`.
pub fn write_ansible(plan: &Plan, digest: &str, parts: &[Part], folder: &mut dyn Folder) -> io::Result<()> {
    let targets: Vec<Target> =
        Target::ALL.iter().copied().filter(|target| parts.iter().any(|part| part.target == *target)).collect();
    folder.begin("inventory.yml")?;
    writeln!(folder, "# Switches of plan {digest}\nall:\n  children:")?;
    for target in &targets {
        writeln!(folder, "    {}:\n      hosts:", group(*target))?;
        for part in parts.iter().filter(|part| part.target == *target) {
            let switch = plan.topology.find_switch(&part.switch).map(|switch| plan.topology.switch(switch));
            writeln!(folder, "        {}:", quoted(&part.switch))?;
            if let Some(address) = switch.and_then(|switch| switch.mgmt) {
                writeln!(folder, "          ansible_host: {}", quoted(&address.to_string()))?;
            }
            writeln!(folder, "          file: {}", quoted(&main_file(part)))?;
        }
        if let Deployment::Module { network_os, .. } = target.deployment() {
            writeln!(folder, "      vars:\n        ansible_connection: ansible.netcommon.network_cli")?;
            writeln!(folder, "        ansible_network_os: {network_os}")?;
        }
    }
    folder.begin("playbook.yml")?;
    writeln!(
        folder,
        "# Loads the full configuration of plan {digest}: ansible-playbook -i inventory.yml playbook.yml"
    )?;
    writeln!(
        folder,
        "# Switches come up with spanning tree off, so check the files first: espalier check PLAN --rendered files"
    )?;
    for target in &targets {
        folder.write_all(play(*target).as_bytes())?;
    }
    Ok(())
}

fn play(target: Target) -> String {
    let mut play = format!("- name: {target}\n  hosts: {}\n  gather_facts: false\n  tasks:\n", group(target));
    let text = match target.deployment() {
        Deployment::Module { module, .. } => {
            let source = if module == "ansible.netcommon.cli_config" {
                "config: \"{{ lookup('ansible.builtin.file', 'files/' + file) }}\""
            } else {
                "src: \"files/{{ file }}\""
            };
            format!("    - name: Load the configuration\n      {module}:\n        {source}\n")
        }
        Deployment::Command(command) => {
            let mut text = String::from(
                "    - name: Make the folder\n      become: true\n      ansible.builtin.file:\n        \
                 path: /etc/espalier\n        state: directory\n        mode: \"0755\"\n",
            );
            let _ = write!(
                text,
                "    - name: Copy the files\n      become: true\n      ansible.builtin.copy:\n        \
                 src: \"files/{{{{ file }}}}\"\n        dest: /etc/espalier/\n        mode: \"0644\"\n      register: copied\n    \
                 - name: Load the configuration\n      become: true\n      ansible.builtin.command: {}\n      \
                 when: copied.changed\n",
                quoted(command)
            );
            text
        }
        Deployment::ByHand => "    - name: Say what is to be done\n      ansible.builtin.debug:\n        \
             msg: \"No Ansible collection knows this switch: load files/{{ file }} by TFTP or at its console\"\n"
            .to_owned(),
    };
    play.push_str(&text);
    play
}

/// What is loaded: the folder of a language of many files, else the last file, which is the configuration itself, less
/// SONiC's static addresses.
fn main_file(part: &Part) -> String {
    let is_main = |file: &&String| !file.ends_with(SWSSCONFIG);
    let last = part.files.iter().rev().find(is_main).cloned().unwrap_or_default();
    match (part.target, last.rsplit_once('/')) {
        (Target::Networkd | Target::Ifupdown2, Some((folder, _))) => folder.to_owned(),
        _ => last,
    }
}

fn group(target: Target) -> String {
    target.name().replace('-', "_")
}

/// A YAML scalar in double quotes; names hold no quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
