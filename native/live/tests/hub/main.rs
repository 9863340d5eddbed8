//! The frames to subscribers: one test for each guarantee, and random histories.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::format_push_string,
    clippy::needless_pass_by_value,
    reason = "what a test did not expect fails it, and short calls read best"
)]

#[path = "../common/mod.rs"]
mod common;
mod desk;

mod batches;
mod bounds;
mod forms;
mod healing;
mod histories;
mod memory;
mod moving;
mod resume;
mod rules;
mod trace;
mod windows;
mod writes;
