//! NetBox: what its REST API answers, and files for its bulk import.
//!
//! ```text
//! /api/dcim/devices/        {"results": [{"id": 1, "name": "sw1", "role": {"slug": "leaf-switch"}, …}, …]}
//! /api/dcim/interfaces/     {"results": [{"id": 7, "device": {"id": 1}, "name": "swp1", "connected_endpoints": [{"id": 9}]}, …]}
//! /api/dcim/cables/         only for interfaces without connected_endpoints
//! /api/dcim/mac-addresses/, /api/ipam/ip-addresses/
//! ```
//!
//! Files may hold a page each, a list, or an object of both: `{"devices": [...], "interfaces": [...]}`. Devices whose role is
//! a switch's ([`ImportOptions::switch_roles`](crate::format::import_options::ImportOptions)) are switches, other devices with
//! a cable to one are machines. Cables are those between interfaces as NetBox traces them, through patch panels, in
//! `connected_endpoints`.
//!
//! Source: NetBox's documentation, "REST API Overview", "Populating Data" and the models of DCIM (netboxlabs.com/docs).

mod assemble;
mod fields;
mod media;
mod records;
mod write;

use super::{
    diagnostic::{Diagnostics, Source},
    import_options::ImportOptions,
};
use crate::Topology;

pub use write::{NetBoxFile, write_netbox};

pub(crate) fn read<'a>(
    sources: &'a [Source<'a>],
    options: &ImportOptions,
    diagnostics: &mut Diagnostics,
) -> Option<Topology> {
    let records = records::read(sources, diagnostics);
    let start = sources.first()?.at(super::diagnostic::TextSpan::START);
    assemble::assemble(&records, start, options, diagnostics)
}
