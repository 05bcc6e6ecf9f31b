//! The judge: re-derives what happens to every frame from device state alone, and never calls the planner.
#![forbid(unsafe_code)]
