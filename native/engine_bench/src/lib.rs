//! Stores to be measured, each by its native interface: the engine, and what people use instead.
//!
//! `command.rs` is the program that `benchmarks/engine.py` runs. [`sorted`] lends the peers to other
//! benchmarks, which do a whole job on them.
#![allow(
    clippy::print_stdout,
    reason = "the figures are what the program is for"
)]
#![allow(
    clippy::missing_errors_doc,
    reason = "whatever a store says is passed on"
)]

pub mod command;
mod engine_store;
mod library;
mod lmdb;
mod process;
mod rocks;
mod slow;
pub mod sorted;
mod store;
mod workload;

pub use store::{Result, StoreSetup};
