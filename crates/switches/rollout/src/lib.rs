//! What happens to a whole fabric of managed switches, as state machines: discovery, the survey before a change,
//! deployment and its way back, diagnosis, and answers to links that fail.
//!
//! ```text
//!   discover   cables and hosts from what switches hear
//!   survey     whether the switches and cables are those of the plan
//!   deploy     from the state that the switches are in to the one that a plan wants, and back if anything goes wrong
//!   diagnose   what is wrong with a fabric that runs, and where
//!   addresses  where the addresses are that are learned at ports
//!   standby    the stored answer to a link that has failed
//! ```
//! They say what to ask and take the answers; [`deploy::run()`] asks real switches, with a thread for each.
#![forbid(unsafe_code)]

pub mod addresses;
pub mod bonds;
pub mod deploy;
pub mod diagnose;
pub mod discover;
pub mod journal;
pub mod standby;
pub mod survey;
