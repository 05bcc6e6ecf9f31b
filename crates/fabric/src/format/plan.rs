//! Plan files: a whole plan as versioned JSON, the same bytes for the same plan.
//!
//! The file is meant for programs first, but a person can read it and `diff` two of them: every switch, link, host, tree
//! and device is a line of its own. Ports are called by name; hosts, links and channels by their number in the file, runs of
//! them as `"0-3,8"`. The digest is the SHA-256 of every byte after its own line, so that a file that was changed by hand
//! says so. How long an engine was allowed to search is not kept, since it does not change what is valid.
//!
//! Files of version 1 know neither a traffic matrix nor `max_channel_time`; they are read as if all links had one rate. Those
//! of versions 1 and 2 do not say what their models can do; they are read with what the models of the same name can now. Up
//! to version 3 a device states neither the class of its VLANs nor its ports' MTU: the trees' lanes and the policy do.
//! Files up to version 4 say nothing of floods: they are forwarded without a limit, and no model is known to block or limit
//! them; the class of untagged frames is that of the port's PVID, and every port has LLDP.
//! What is as a switch has it anyway is left out: an MTU of 1500, a filter at ingress, no spanning tree, no classes, floods
//! that are forwarded, LLDP, no storm control.
//!
//! ```text
//! {
//! "espalier_plan":5,
//! "digest":"5d41…",
//! "policy":{…},
//! "engine":"dor",
//! "models":[
//!   {"name":"generic","description":"any …","basis":"untested","max_vlans":4094,"static_macs":1048576,…}, …
//! ],
//! "topology":{"switches":[
//!   {"name":"s0","model":"generic","ports":["p1","p2"]}, …      (also "mgmt", "guid" and "id", where they are known)
//! ],"links":[
//!   {"a":"s0:p1","b":"s1:p1","rate_bps":1000000000}, …
//! ],"hosts":[
//!   {"name":"h0","mac":"02:00:00:00:00:01","port":"s0:p2","rate_bps":1000000000}, …
//! ],"management":{"vlan":4000,"controller":"s0:p9"}},             (only where switches are managed over data ports)
//! "traffic":[ {"source":0,"to":"1-3,8","demands":[5,5,2.5,1]}, … ],   (a line a sender; left out for all-to-all)
//! "trees":[ {"vlan":2,"lane":0,"links":"0-14"}, … ],
//! "assignment":{"by":"source","vlans":[2,3,…]},
//! "addresses":["10.0.0.1",…],
//! "devices":[
//!   {"switch":"s0","ports":[{"port":"p1","role":"link 0","admin":"up","tagged":"2-5","flow_control":"pause"},…],
//!    "fdb":[{"vlan":2,"to":{"p1":"1-3","p2":"0"}},…]}, …          (one line each)
//! ],
//! "certificate":{"ranks":[ [3,0,…], … ]},                         (a line a lane; null where routes have a cycle)
//! "bound":{"lengths":[1,1,…]},
//! "failover":{"switch_overs":[                                     (only where the policy has a "resilience")
//!   {"link":0,"hosts":[[0,2,12],[5,5,3]],"proof":"certificate"}, …  (first host, last host, VLAN)
//!   {"switch":3,"hosts":[[0,2,9]],"proof":"certificate"}, …         (where the policy says "resilience":"switch")
//! ],"numberings":[{"ranks":[ [3,0,…], … ]}, … ],"summary":{…}},
//! "paths":{"sets":[                                                (only where the policy has "paths_max")
//!   [[0,0,"2"],[1,5,"2,7-9"]], …                                   (first host, last host, VLANs)
//! ],"lengths":[ [1,1,…], … ],"worst":[3,2,…],"worst_lengths":[1,1,…]},
//! "summary":{…}
//! }
//! ```

mod digest;
mod drain;
mod failover;
mod json;
mod lines;
mod models;
mod numbering;
mod paths;
mod planes;
mod read;
mod rows;
mod runs;
mod write;

#[cfg(test)]
mod tests;

use thiserror::Error;

pub use self::{
    read::read_plan,
    write::{plan_digest, write_plan},
};

/// The version of plan files that this program writes.
pub const PLAN_VERSION: u64 = 5;
/// The oldest version that it reads.
pub const PLAN_VERSION_MIN: u64 = 1;
/// Largest plan file that is read, in bytes.
pub const PLAN_BYTES_MAX: usize = 1 << 30;

/// Whether a plan file may have been changed since it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// Its digest must fit.
    Strict,
    /// Its digest does not matter: for files that were changed by hand, on purpose.
    IgnoreDigest,
}

/// Why a text is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanFileError {
    /// The text is longer than any plan may be.
    #[error("the file has {bytes} bytes, and plans have at most {PLAN_BYTES_MAX}")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// The text is not JSON, or names a field twice.
    #[error("not a plan: {message}")]
    NotJson {
        /// What is wrong, with line and column.
        message: String,
    },
    /// The text is JSON, but no plan.
    #[error(
        "not a plan: it lacks the field espalier_plan, which a plan file begins with; `espalier plan -o FILE` writes one"
    )]
    NotAPlan,
    /// The file is of a version that this program does not know.
    #[error(
        "the plan file has version {found}, and this program reads versions {PLAN_VERSION_MIN} to {PLAN_VERSION}: use a newer espalier, or plan again"
    )]
    Version {
        /// Its version.
        found: u64,
    },
    /// The file is not as it was written.
    #[error(
        "the file was changed since it was written (its digest is {found}, and says {stated}): plan again, or, if the change is meant, read it without regard to the digest and check it"
    )]
    Changed {
        /// The digest that the file states.
        stated: String,
        /// The digest of its content.
        found: String,
    },
    /// A value is not what it must be.
    #[error("{path}: {message}")]
    Invalid {
        /// Where it stands, such as `devices[3].ports[2].pvid`.
        path: String,
        /// What is wrong with it.
        message: String,
    },
}

/// What stands between the beginning of a plan file and its digest.
fn header(version: u64) -> String {
    format!("{{\n\"espalier_plan\":{version},\n\"digest\":\"")
}

/// What stands between the digest and the bytes that it is of.
const DIGEST_END: &str = "\",\n";
