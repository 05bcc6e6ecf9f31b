//! The file that OpenSM's `file` routing engine loads.
//!
//! ```text
//! Unicast lids [0x0-0x0] of switch Lid 0 guid 0x0002c90200405a10 (leaf1):
//!   Lid  Out   Destination
//!        Port     Info
//! 0x0000 019 : (Channel Adapter portguid 0x0002c903000a0302: 'node03')
//! ```
//!
//! OpenSM gives out LIDs, and finds the current one of an entry by its GUID. Of a GUID that is not there it would take the
//! file's LID at its word, and write over the entry of whoever has it now. So every entry says LID 0, which nobody has.
//! The GUIDs also make the file independent of the order in which ports come up.
//!
//! Source: `opensm(8)`, "Modular Routing Engine"; `dump_lfts(8)`.

use std::io;

use fabric::Topology;

use crate::tables::{Destination, ForwardingTables};

/// Writes tables as `opensm -R file,no_fallback -U FILE` reads them.
///
/// # Errors
/// Those of `out`.
pub fn write_opensm(topology: &Topology, tables: &ForwardingTables, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "# Forwarding tables of {} switches; load with: opensm -R file,no_fallback -U FILE", {
        topology.switches().len()
    })?;
    for switch in topology.switch_ids() {
        let (name, guid) = (&topology.switch(switch).name, tables.guid(Destination::Switch(switch)));
        writeln!(out, "Unicast lids [0x0-0x0] of switch Lid 0 guid {guid} ({name}):")?;
        writeln!(out, "  Lid  Out   Destination\n       Port     Info")?;
        let mut entries = 0;
        for destination in tables.destinations() {
            let Some(port) = tables.port(topology, switch, destination) else { continue };
            let (kind, name) = match destination {
                Destination::Host(host) => ("Channel Adapter", &topology.host(host).name),
                Destination::Switch(switch) => ("Switch", &topology.switch(switch).name),
            };
            writeln!(out, "0x0000 {port:03} : ({kind} portguid {}: '{name}')", tables.guid(destination))?;
            entries += 1;
        }
        writeln!(out, "{entries} lids dumped")?;
    }
    Ok(())
}
