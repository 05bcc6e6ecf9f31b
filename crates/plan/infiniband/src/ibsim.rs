//! A fabric for `ibsim`, the simulator of InfiniBand subnets.
//!
//! ```text
//! caguid=0x0200480000000000
//! Hca     1 "h0"
//! [1](0x0200480000000001) "s0"[3]
//!
//! switchguid=0x0200530000000001
//! Switch  3 "s0"
//! [1]     "s1"[2]
//! [3]     "h0"[1]
//! ```
//!
//! Where every cabled port is named by a number, ports keep it; else a switch's ports are numbered in its order. Devices
//! without a GUID get one that no vendor gives out (the "local" bit is set), so that any topology can be simulated. The
//! simulator gives the first port of an adapter the GUID after the adapter's own, whatever the file says.
//!
//! Source: the `README` and `net-examples` of Debian's `ibsim-utils`.

use std::io;

use fabric::{Attachment, Guid, PortId, SwitchId, Topology};

/// First GUIDs of switches and of host adapters; no fabric has 2³¹ of one kind.
const SWITCH_GUIDS: u64 = 0x0200_5300_0000_0001;
const ADAPTER_GUIDS: u64 = 0x0200_4800_0000_0000;

/// Writes a topology as `ibsim -s FILE` reads it, hosts first: the first is where tools attach by default.
///
/// # Errors
/// Those of `out`.
pub fn write_ibsim(topology: &Topology, out: &mut dyn io::Write) -> io::Result<()> {
    let numbered: Vec<Vec<u16>> = topology.switch_ids().map(|switch| port_numbers(topology, switch)).collect();
    let number = |port: PortId| {
        let switch = topology.port(port).switch;
        numbered[switch.index()][port.index() - topology.switch_ports(switch).start]
    };
    let name = |switch: SwitchId| &topology.switch(switch).name;
    for (index, host) in topology.hosts().iter().enumerate() {
        let guid = host.guid.map_or(ADAPTER_GUIDS + 2 * index as u64 + 1, Guid::get);
        writeln!(out, "caguid={:#018x}\nHca\t1 \"{}\"", guid - 1, host.name)?;
        writeln!(out, "[1]({guid:#018x})\t\"{}\"[{}]\n", name(topology.port(host.port).switch), number(host.port))?;
    }
    for switch in topology.switch_ids() {
        let guid = topology.switch(switch).guid.map_or(SWITCH_GUIDS + switch.index() as u64, Guid::get);
        let highest = numbered[switch.index()].iter().max().copied().unwrap_or(0).max(1);
        writeln!(out, "switchguid={guid:#018x}\nSwitch\t{highest} \"{}\"", name(switch))?;
        for port in topology.port_ids(switch) {
            match topology.port(port).attachment {
                Attachment::Nothing | Attachment::Member(_) => {}
                Attachment::Host(host) => {
                    writeln!(out, "[{}]\t\"{}\"[1]", number(port), topology.host(host).name)?;
                }
                Attachment::Link(link) => {
                    let fabric::Link { a, b, .. } = *topology.link(link);
                    let far = if a == port { b } else { a };
                    writeln!(out, "[{}]\t\"{}\"[{}]", number(port), name(topology.port(far).switch), number(far))?;
                }
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The numbers of a switch's ports, in its order.
fn port_numbers(topology: &Topology, switch: SwitchId) -> Vec<u16> {
    let named = (topology.port_ids(switch))
        .map(|port| topology.port(port).name.parse().ok().filter(|number| (1..=254).contains(number)));
    let numbers: Option<Vec<u16>> = named.collect();
    let distinct =
        |numbers: &Vec<u16>| numbers.iter().collect::<std::collections::BTreeSet<_>>().len() == numbers.len();
    numbers.filter(distinct).unwrap_or_else(|| (1..).take(topology.switch_ports(switch).len()).collect())
}
