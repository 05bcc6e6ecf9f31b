//! The planner: a pure, deterministic function from topology and policy to a complete plan.
#![forbid(unsafe_code)]
