//! Compares the three stores, as the paper does.
//!
//! ```text
//! cargo run --release -p rillbase-pubsub --example pubsub_rate -- \
//!     --ops 480000 --mix 3:1 --systems dual,two,rep --rounds 3 --dir /tmp/pubsub
//! ```
//!
//! - `--mix S:P`: the ratio of subscriptions to publications.
//! - `--places`: `flat` (500 × 500 cells), `cells` (nodes of a quad tree of depth 5, smaller ones
//!   more often) or `circles` (five radii around points). With the last two, `fixed` and `variable`
//!   are systems that compare granularities of `DualDb`.
//! - `--radii`: the radii of the circles, in sides of a leaf. `--level`: the level of the nodes, 1
//!   to 5; 0 for all levels.
//! - `--systems`: a list of `dual`, `two`, `rep`, `variable`, `fixed`, `single`, and of the peers
//!   `rocksdb`, `leveldb` (with composite keys), `rocksdb-rewriting` and `leveldb-rewriting`, which
//!   support only flat cells.
//! - `--self-join`: operations also find records of their own kind. Not for `rep`.
//! - `--direct 1`: tables bypass the system's cache. `--block-bytes`: the block size of our tables.
//! - `--rate`: operations per second of the virtual clock. Records live for 10 and 20 such seconds,
//!   so this determines how many are alive; `--memory` (KiB for memtable and cache each) should be
//!   small in comparison. `--ops` should be at least forty times the rate. Otherwise most polls of
//!   `rep` never become due, and it appears cheaper than it is.
//!
//! All systems run the same operations in alternating parts, each on its own database. Ratios are
//! medians of seven pairs of parts per round. The last line is JSON. Earlier JSON lines have
//! interim results, in case the run is interrupted.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates, coordinates and dice"
)]

mod job;
mod ours;
mod peers;
mod report;
mod run;
mod workload;

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use job::System;
use run::RunMeasurement;
use workload::WorkloadSetup;

/// The command-line options.
struct RunOptions {
    setup: WorkloadSetup,
    systems: Vec<System>,
    rounds: usize,
    dir: PathBuf,
}

fn parse_arguments() -> Option<RunOptions> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let self_join = arguments.iter().any(|argument| argument == "--self-join");
    let named: Vec<&String> = arguments
        .iter()
        .filter(|argument| *argument != "--self-join")
        .collect();
    let mut values: HashMap<&str, &str> = HashMap::new();
    for pair in named.chunks(2) {
        let [name, value] = pair else { return None };
        values.insert(name.strip_prefix("--")?, value);
    }
    let mut take = |name, fallback| values.remove(name).unwrap_or(fallback);
    let (subscriptions, publications) = take("mix", "3:1").split_once(':')?;
    let places = take("places", "flat");
    let fallback = if places == "flat" {
        "dual,two,rep"
    } else {
        "variable,fixed"
    };
    let systems = take("systems", fallback).split(',').map(System::parse);
    let options = RunOptions {
        systems: systems.collect::<Option<_>>()?,
        setup: WorkloadSetup {
            operations: take("ops", "480000").parse().ok()?,
            subscriptions: subscriptions.parse().ok()?,
            publications: publications.parse().ok()?,
            places: workload::Places::parse(places)?,
            self_join,
            rate: take("rate", "12000").parse().ok()?,
            memory: take("memory", "4096").parse::<usize>().ok()? << 10,
            direct: take("direct", "0") == "1",
            block_bytes: take("block-bytes", "0").parse().ok()?,
            description: take("description", "140").parse().ok()?,
            level: take("level", "0").parse().ok()?,
            radii: take("radii", "4,2,1,0.5,0.25")
                .split(',')
                .map(|radius| radius.parse().ok())
                .collect::<Option<_>>()?,
        },
        rounds: take("rounds", "1").parse().ok()?,
        dir: take("dir", "/tmp/pubsub_rate").into(),
    };
    values.is_empty().then_some(options)
}

fn rounds(options: &mut RunOptions, out: &mut io::Stdout) -> io::Result<Vec<Vec<RunMeasurement>>> {
    let operations = workload::operations(&options.setup);
    let mut rounds: Vec<Vec<RunMeasurement>> = Vec::new();
    for round in 0..options.rounds {
        let dir: &Path = &options.dir;
        let (setup, before) = (&options.setup, &rounds);
        let mut interim = |systems: &[System], measurements: &[RunMeasurement]| {
            let known = [before.as_slice(), &[measurements.to_vec()]].concat();
            writeln!(io::stdout(), "{}", report::json(setup, systems, &known))
        };
        let work = (operations.as_slice(), dir);
        let measurements = run::run(&mut options.systems, setup, work, &mut interim)
            .map_err(|error| io::Error::other(error.to_string()))?;
        for (system, measurement) in options.systems.iter().zip(&measurements) {
            writeln!(
                out,
                "round {round} {:>8}: {}",
                system.name(),
                report::line(measurement)
            )?;
        }
        rounds.push(measurements);
    }
    Ok(rounds)
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    let Some(mut options) = parse_arguments() else {
        let what = "unknown or malformed option; the options are described in the source";
        return writeln!(out, "{what}");
    };
    let rounds = rounds(&mut options, &mut out)?;
    writeln!(
        out,
        "{}",
        report::json(&options.setup, &options.systems, &rounds)
    )
}
