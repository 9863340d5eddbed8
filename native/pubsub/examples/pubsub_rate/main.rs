//! Measures the three stores against one another, as the paper does.
//!
//! ```text
//! cargo run --release -p rillbase-pubsub --example pubsub_rate -- \
//!     --ops 480000 --mix 3:1 --systems dual,two,rep --rounds 3 --dir /tmp/pubsub
//! ```
//!
//! - `--mix S:P`: so many subscriptions to so many publications.
//! - `--places`: `flat` (500 × 500 cells), `cells` (nodes of a quad tree of depth 5, smaller ones
//!   more often) or `circles` (five radii around points). The last two compare granularities of
//!   `DualDb`: `fixed` and `variable` are systems there.
//! - `--radii`: of those circles, in sides of a leaf. `--level`: of those nodes, 1 to 5; 0: of all.
//! - `--systems`: of `dual`, `two`, `rep`, `variable`, `fixed`, `single`; and of the peers `rocksdb`,
//!   `leveldb` (by composite keys), `rocksdb-rewriting` and `leveldb-rewriting`, flat cells only.
//! - `--self-join`: operations also find their like. Not for `rep`.
//! - `--direct 1`: tables past the system's cache. `--block-bytes`: of our tables.
//! - `--rate`: operations in a second of the virtual clock. Records live for 10 and 20 such seconds,
//!   so this says how many are alive; `--memory` (KiB for memtable and cache each) is small beside
//!   them. `--ops` is forty times as much at least, or most polls of `rep` are never due and it looks
//!   cheaper than it is.
//!
//! All systems do the same operations, part by part in turn, over databases of their own. Ratios are
//! medians of seven such pairs a round. The last line is JSON; such a line comes earlier too, once
//! there is something to compare, for who cuts the run off.
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

/// What was asked for.
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
    let mut options: HashMap<&str, &str> = HashMap::new();
    for pair in named.chunks(2) {
        let [name, value] = pair else { return None };
        options.insert(name.strip_prefix("--")?, value);
    }
    let mut take = |name, fallback| options.remove(name).unwrap_or(fallback);
    let (subscriptions, publications) = take("mix", "3:1").split_once(':')?;
    let places = take("places", "flat");
    let fallback = if places == "flat" {
        "dual,two,rep"
    } else {
        "variable,fixed"
    };
    let systems = take("systems", fallback).split(',').map(System::parse);
    let asked = RunOptions {
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
    options.is_empty().then_some(asked)
}

fn rounds(asked: &mut RunOptions, out: &mut io::Stdout) -> io::Result<Vec<Vec<RunMeasurement>>> {
    let operations = workload::operations(&asked.setup);
    let mut rounds: Vec<Vec<RunMeasurement>> = Vec::new();
    for round in 0..asked.rounds {
        let dir: &Path = &asked.dir;
        let (setup, before) = (&asked.setup, &rounds);
        let mut interim = |systems: &[System], measured: &[RunMeasurement]| {
            let known = [before.as_slice(), &[measured.to_vec()]].concat();
            writeln!(io::stdout(), "{}", report::json(setup, systems, &known))
        };
        let work = (operations.as_slice(), dir);
        let measured = run::run(&mut asked.systems, setup, work, &mut interim)
            .map_err(|error| io::Error::other(error.to_string()))?;
        for (system, found) in asked.systems.iter().zip(&measured) {
            writeln!(
                out,
                "round {round} {:>8}: {}",
                system.name(),
                report::line(found)
            )?;
        }
        rounds.push(measured);
    }
    Ok(rounds)
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    let Some(mut asked) = parse_arguments() else {
        let what = "unknown or malformed option; the options are described in the source";
        return writeln!(out, "{what}");
    };
    let rounds = rounds(&mut asked, &mut out)?;
    writeln!(
        out,
        "{}",
        report::json(&asked.setup, &asked.systems, &rounds)
    )
}
