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
//! - `--radii`: of those circles, in sides of a leaf.
//! - `--self-join`: operations also find their like. Not for `rep`.
//! - `--rate`: operations in a second of the virtual clock. Records live for 10 and 20 such seconds,
//!   so this says how many are alive; `--memory` (KiB for memtable and cache each) is small beside
//!   them. `--ops` is forty times as much at least, or most polls of `rep` are never due and it looks
//!   cheaper than it is.
//!
//! Each round runs all systems in turn, over databases of their own and the same operations. Ratios
//! are medians over rounds. The last line is JSON.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates, coordinates and dice"
)]

mod run;
mod workload;

use std::collections::HashMap;
use std::io::{self, Write as _};

use run::{Measured, System};
use workload::Setup;

/// What was asked for.
struct Asked {
    setup: Setup,
    systems: Vec<System>,
    rounds: usize,
    dir: String,
}

fn asked() -> Option<Asked> {
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
    let asked = Asked {
        systems: systems.collect::<Option<_>>()?,
        setup: Setup {
            operations: take("ops", "480000").parse().ok()?,
            subscriptions: subscriptions.parse().ok()?,
            publications: publications.parse().ok()?,
            places: workload::Places::parse(places)?,
            self_join,
            rate: take("rate", "12000").parse().ok()?,
            memory: take("memory", "4096").parse::<usize>().ok()? << 10,
            description: take("description", "140").parse().ok()?,
            radii: take("radii", "4,2,1,0.5,0.25")
                .split(',')
                .map(|radius| radius.parse().ok())
                .collect::<Option<_>>()?,
        },
        rounds: take("rounds", "3").parse().ok()?,
        dir: take("dir", "/tmp/pubsub_rate").to_owned(),
    };
    options.is_empty().then_some(asked)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// Medians over rounds of one system.
fn summary(system: System, rounds: &[Vec<Measured>], at: usize) -> String {
    let of = |figure: fn(&Measured) -> f64| {
        median(
            rounds
                .iter()
                .filter_map(|round| round.get(at))
                .map(figure)
                .collect(),
        )
    };
    let course = rounds.iter().filter_map(|round| round.get(at)).next_back();
    let course = course.map_or(&[][..], |measured| &measured.course_us);
    let course: Vec<String> = course.iter().map(|mean| format!("{mean:.3}")).collect();
    let course = course.join(",");
    format!(
        "{{\"system\":\"{}\",\"mean_us\":{:.3},\"publish_us\":{:.3},\"subscribe_us\":{:.3},\"pairs\":{:.0},\
         \"entries_read\":{:.0},\"lists_left_early\":{:.0},\"live_bytes\":{:.0},\"runs\":{:.0},\"stalled_ms\":{:.0},\"delay_ms\":{:.1},\"course_us\":[{course}]}}",
        system.name(),
        of(Measured::mean_us),
        of(Measured::publish_us),
        of(Measured::subscribe_us),
        of(|measured| measured.pairs as f64),
        of(|measured| measured.cost.entries as f64),
        of(|measured| measured.cost.early_stops as f64),
        of(|measured| measured.live_bytes as f64),
        of(|measured| measured.runs as f64),
        of(|measured| measured.stalled_ms as f64),
        of(|measured| measured.delay_ms),
    )
}

/// How much longer the others take than the first.
fn ratios(systems: &[System], rounds: &[Vec<Measured>]) -> String {
    let ratio = |at: usize| {
        let of_round = |round: &Vec<Measured>| {
            let (first, other) = (round.first()?, round.get(at)?);
            Some(other.mean_us() / first.mean_us())
        };
        median(rounds.iter().filter_map(of_round).collect())
    };
    let others = systems.iter().enumerate().skip(1);
    let named = others.map(|(at, system)| format!("\"{}\":{:.3}", system.name(), ratio(at)));
    named.collect::<Vec<_>>().join(",")
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    let Some(asked) = asked() else {
        writeln!(
            out,
            "unknown or malformed option; the options are described in the source"
        )?;
        return Ok(());
    };
    let operations = workload::operations(&asked.setup);
    let mut rounds: Vec<Vec<Measured>> = Vec::new();
    for round in 0..asked.rounds {
        let mut measured = Vec::new();
        for system in &asked.systems {
            let found = run::run(*system, &asked.setup, &operations, &asked.dir)
                .map_err(|error| io::Error::other(error.to_string()))?;
            writeln!(
                out,
                "round {round} {:>8}: {:8.2} µs/op, publish {:8.2}, subscribe {:8.2}, {} pairs, {:.1} MB alive",
                system.name(),
                found.mean_us(),
                found.publish_us(),
                found.subscribe_us(),
                found.pairs,
                found.live_bytes as f64 / 1e6,
            )?;
            measured.push(found);
        }
        rounds.push(measured);
    }
    let (wishes, news) = (
        asked.setup.subscriptions as f64,
        asked.setup.publications as f64,
    );
    // An instant store reads once an operation; a polled subscription reads once and then ten times.
    let ceiling = wishes * 11.0 / (wishes + news);
    let systems: Vec<String> = (asked.systems.iter().enumerate())
        .map(|(at, system)| summary(*system, &rounds, at))
        .collect();
    writeln!(
        out,
        "{{\"mix\":\"{wishes}:{news}\",\"operations\":{},\"self_join\":{},\"polling_ceiling\":{ceiling:.2},\
         \"slower_than_first\":{{{}}},\"systems\":[{}]}}",
        asked.setup.operations,
        asked.setup.self_join,
        ratios(&asked.systems, &rounds),
        systems.join(","),
    )
}
