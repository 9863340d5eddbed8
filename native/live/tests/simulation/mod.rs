//! Simulated histories with failures: nodes, streams, database and clients, step by step, from a
//! seed.
//!
//! Everything that can go wrong between them goes wrong at random: publishers are late or never
//! publish, the relay pauses, nodes are killed, or paused until another holder has their lease and
//! then resumed; streams are trimmed before they are read; the event layer loses everything; clocks
//! are ahead. After every step each client that claims to be live is compared with the database. At
//! the end all faults stop, and every client must become live with the query's result.
//!
//! A history that fails is shortened by leaving out operations, and printed with its seed.
#![allow(
    clippy::print_stderr,
    clippy::cast_precision_loss,
    reason = "a rate is for people"
)]
#![allow(clippy::doc_markdown, reason = "PostgreSQL is a name, not code")]
#![allow(
    clippy::struct_field_names,
    reason = "a version has a version, as everywhere"
)]

mod client;
mod database;
mod demands;
mod nodes;
mod operations;
mod outbox;
mod process;
mod queries;
mod random;
mod relay;
mod valkey;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use operations::{Operation, history, restless_history};
use world::{restart_filter_node, run};

const COLLECTION: [u8; 16] = [7; 16];

/// Runs a history; a panic is a failure as well.
fn outcome(operations: &[Operation]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| run(operations)))
        .unwrap_or_else(|_| Err("a machine panicked".to_owned()))
}

/// Removes operations that are not needed for the failure.
fn shorten(mut operations: Vec<Operation>) -> Vec<Operation> {
    let mut size = operations.len() / 2;
    while size > 0 {
        let mut start = 0;
        while start < operations.len() {
            let mut fewer = operations.clone();
            fewer.drain(start..(start + size).min(fewer.len()));
            if outcome(&fewer).is_err() {
                operations = fewer;
            } else {
                start += size;
            }
        }
        size /= 2;
    }
    operations
}

fn simulate(of: impl Fn(u64, usize) -> Vec<Operation>, seeds: std::ops::Range<u64>, length: usize) {
    let began = Instant::now();
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let operations = of(seed, length);
        if let Err(first) = outcome(&operations) {
            let short = shorten(operations);
            let last = outcome(&short).err().unwrap_or_default();
            panic!("seed {seed}: {first}\nshortened: {last}\n{short:?}");
        }
    }
    let steps = count * length as u64;
    let per_minute = steps as f64 / began.elapsed().as_secs_f64() * 60.0;
    eprintln!("{count} histories, {steps} operations, {per_minute:.0} a minute");
}

#[test]
fn a_live_subscriber_has_the_current_result_through_thousands_of_histories() {
    simulate(history, 0..2_000, 150);
}

#[test]
fn no_batch_is_shown_in_part_though_queries_are_registered_again_and_again() {
    simulate(restless_history, 0..700, 150);
}

/// Appending blocks the server. If a node reported all its queries in one call, the other nodes
/// would lose their leases, rebuild, and block the server again, so the grid would not recover.
#[test]
fn the_restart_of_a_node_costs_no_other_node_its_lease() {
    let report_us = 200_000;
    assert_eq!(restart_filter_node(2, report_us), Ok(0));
    assert!(restart_filter_node(usize::MAX, report_us).is_err());
}

/// `SEED` and `HISTORIES` select the histories, to repeat one or to continue elsewhere.
fn given_seeds() -> std::ops::Range<u64> {
    let given = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first: u64 = given("SEED").unwrap_or(1_000_000);
    first..first + given("HISTORIES").unwrap_or(2_500)
}

#[test]
#[ignore = "takes minutes"]
fn a_live_subscriber_has_the_current_result_through_a_million_operations() {
    simulate(history, given_seeds(), 400);
}

#[test]
#[ignore = "takes minutes"]
fn no_batch_is_shown_in_part_through_a_million_operations_with_many_registrations() {
    simulate(restless_history, given_seeds(), 400);
}
