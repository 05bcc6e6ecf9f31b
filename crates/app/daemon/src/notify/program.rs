//! A program that is run for each delivery, which it reads from its standard input.

use std::time::Duration;

use controller::run_program;

use super::NotDelivered;
use crate::documents::Delivery;

/// Runs a program, which accepts the delivery by exiting with 0 in time.
pub(super) fn run(words: &[String], delivery: &Delivery, timeout: Duration) -> Result<(), NotDelivered> {
    run_program(words, &delivery.body, timeout, &|| false).map_err(|fault| NotDelivered::now(fault.to_string()))
}
