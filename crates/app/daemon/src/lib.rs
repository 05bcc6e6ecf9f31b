//! The controller of a fabric, as a service: it watches the switches, acts as the ladder says, and proposes the rest.
//!
//! ```text
//!   observe ─ compare ─ plan ─ judge ─ approve ─ execute ─ observe
//!   work      core      core    core    api       work
//!                     manager, over archive (records)
//! ```
#![forbid(unsafe_code)]

pub mod api;
pub mod archive;
pub mod config;
pub mod core;
pub mod demo;
pub mod history;
pub mod leader;
pub mod manager;
pub mod notify;
pub mod outcome;
pub mod progress;
pub mod service;
pub mod show;
pub mod work;

/// What the store keeps and the API shows.
pub use api_client::documents;
