//! The frames to subscribers: one test for each guarantee, and random histories.
#![allow(clippy::needless_pass_by_value, reason = "short calls read best")]

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
