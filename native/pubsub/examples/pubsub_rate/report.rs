//! Prints the results, for people and for programs.

use crate::job::System;
use crate::run::RunMeasurement;
use crate::workload::WorkloadSetup;

/// Formats the results of one system in a round.
pub(crate) fn line(measurement: &RunMeasurement) -> String {
    format!(
        "{:8.2} µs/op, publish {:8.2}, subscribe {:8.2}, processor {:8.2}, {} pairs, {:.1} MB alive, {} blocks read",
        measurement.mean_us(),
        measurement.publish_us(),
        measurement.subscribe_us(),
        measurement.processor_us(),
        measurement.pairs,
        measurement.live_bytes as f64 / 1e6,
        measurement.statistics.blocks_read,
    )
}

/// The median. Durations too short for the clock are ignored.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.retain(|number| number.is_finite());
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// Extracts a figure.
type Figure = fn(&RunMeasurement) -> f64;

/// The medians of one system over all rounds.
fn summary(system: System, rounds: &[Vec<RunMeasurement>], at: usize) -> String {
    let measurement: Vec<&RunMeasurement> =
        rounds.iter().filter_map(|round| round.get(at)).collect();
    let of = |figure: fn(&RunMeasurement) -> f64| {
        median(measurement.iter().map(|one| figure(one)).collect())
    };
    let figures: [(&str, Figure); 16] = [
        ("done", RunMeasurement::done),
        ("parts", |one| one.planned() as f64),
        ("mean_us", RunMeasurement::mean_us),
        ("publish_us", RunMeasurement::publish_us),
        ("subscribe_us", RunMeasurement::subscribe_us),
        ("processor_us", RunMeasurement::processor_us),
        ("pairs", |one| one.pairs as f64),
        ("entries_read", |one| one.statistics.entries as f64),
        ("lists_left_early", |one| one.statistics.early_stops as f64),
        ("seeks", |one| one.statistics.seeks as f64),
        ("blocks_read", |one| one.statistics.blocks_read as f64),
        ("live_bytes", |one| one.live_bytes as f64),
        ("write_amplification", |one| {
            one.statistics.write_amplification
        }),
        ("runs", |one| one.statistics.runs as f64),
        ("stalled_ms", |one| one.statistics.stalled_ms as f64),
        ("delay_ms", |one| one.statistics.delay_ms),
    ];
    let figures = figures.map(|(name, figure)| format!("\"{name}\":{:.3}", of(figure)));
    let course = measurement
        .last()
        .map(|one| one.course_us())
        .unwrap_or_default();
    let course: Vec<String> = course.iter().map(|mean| format!("{mean:.3}")).collect();
    format!(
        "{{\"system\":\"{}\",{},\"course_us\":[{}]}}",
        system.name(),
        figures.join(","),
        course.join(",")
    )
}

/// The slowdown of the others relative to the first: medians over all pairs.
fn ratios(
    systems: &[System],
    rounds: &[Vec<RunMeasurement>],
    of: fn(&(f64, f64)) -> f64,
) -> String {
    let ratio = |at: usize| {
        let pairs = rounds.iter().filter_map(|round| {
            let (first, other) = (round.first()?, round.get(at)?);
            Some(other.by(first))
        });
        median(pairs.flatten().map(|pair| of(&pair)).collect())
    };
    let others = systems.iter().enumerate().skip(1);
    let named = others.map(|(at, system)| format!("\"{}\":{:.3}", system.name(), ratio(at)));
    named.collect::<Vec<_>>().join(",")
}

/// All results, for programs.
pub(crate) fn json(
    setup: &WorkloadSetup,
    systems: &[System],
    rounds: &[Vec<RunMeasurement>],
) -> String {
    let (subscriptions, publication) = (setup.subscriptions as f64, setup.publications as f64);
    // A store with immediate matching reads once per operation; a polled subscription reads eleven
    // times.
    let ceiling = subscriptions * 11.0 / (subscriptions + publication);
    let summaries = systems.iter().enumerate();
    let summaries: Vec<String> = summaries
        .map(|(at, system)| summary(*system, rounds, at))
        .collect();
    format!(
        "{{\"mix\":\"{subscriptions}:{publication}\",\"operations\":{},\"self_join\":{},\"direct\":{},\"polling_ceiling\":{ceiling:.2},\
         \"slower_than_first\":{{{}}},\"processor_by_first\":{{{}}},\"systems\":[{}]}}",
        setup.operations,
        setup.self_join,
        setup.direct,
        ratios(systems, rounds, |pair| pair.0),
        ratios(systems, rounds, |pair| pair.1),
        summaries.join(","),
    )
}
