//! What a topology says and NetBox has no field of its own for: custom fields. Those of a host's port are whole numbers; groups
//! are names, separated by spaces, of a switch's device or of the interfaces at both ends of a link.
//!
//! ```text
//! REST API   {"name": "eth0", "custom_fields": {"espalier_weight": 8, "espalier_rail": null}, …}
//!            {"name": "sw1", "custom_fields": {"espalier_groups": "feed-a"}, …}
//! CSV        device,name,type,speed,cf_espalier_weight
//! ```
//!
//! Source: NetBox's documentation, "Custom Fields"; its import forms of DCIM and extras.

use std::{iter::zip, ops::RangeInclusive};

use crate::{ADDRESSES_MAX, Host, format::cabling::Device};

/// The custom field of devices and interfaces that names groups.
pub(super) const GROUPS: &str = "espalier_groups";

/// A custom field of interfaces.
pub(super) struct CustomField {
    /// Letters, digits and underscores.
    pub name: &'static str,
    /// What NetBox shows.
    pub label: &'static str,
    /// What it may hold.
    pub bounds: RangeInclusive<u64>,
    /// What it is for a host; none where it stays empty.
    pub of: fn(&Host) -> Option<u64>,
    set: fn(&mut Device<'_>, u64),
}

/// All of them.
pub(super) const FIELDS: [CustomField; 3] = [
    CustomField {
        name: "espalier_addresses_max",
        label: "Most addresses that are learned behind the port",
        bounds: 1..=ADDRESSES_MAX as u64 - 1,
        of: |host| host.learned_max.map(|most| most as u64),
        set: |device, most| device.learned_max = Some(most as usize),
    },
    CustomField {
        name: "espalier_rail",
        label: "Rail of the port",
        bounds: 0..=u8::MAX as u64,
        of: |host| host.rail.map(u64::from),
        set: |device, rail| device.rail = u8::try_from(rail).ok(),
    },
    CustomField {
        name: "espalier_weight",
        label: "Weight in all-to-all traffic",
        bounds: 0..=u8::MAX as u64,
        of: |host| (host.weight != 1).then_some(u64::from(host.weight)),
        set: |device, weight| device.weight = u8::try_from(weight).ok(),
    },
];

/// What an interface's custom fields hold, in the order of [`FIELDS`].
pub(super) type Values = [Option<u64>; FIELDS.len()];

/// Has a host's device take what the custom fields of its interface hold.
pub(super) fn take(values: &Values, device: &mut Device<'_>) {
    for (field, value) in zip(&FIELDS, values) {
        if let Some(value) = value {
            (field.set)(device, *value);
        }
    }
}
