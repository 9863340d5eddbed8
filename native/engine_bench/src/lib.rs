//! Benchmarked stores, each used through its native interface: the engine and its peers.
//!
//! `command.rs` is the program that `benchmarks/engine.py` runs. [`sorted`] offers the peers to
//! other benchmarks, which implement an application on them. `secondary` measures secondary indexes
//! for `benchmarks/secondary.py`.
#![allow(
    clippy::print_stdout,
    reason = "the figures are what the program is for"
)]
#![allow(clippy::missing_errors_doc, reason = "errors of a store are passed on")]

pub mod command;
mod engine_store;
mod library;
mod lmdb;
mod process;
mod rocks;
mod secondary;
mod slow;
pub mod sorted;
mod store;
mod stores;
mod workload;

pub use store::{Result, StoreSetup};
