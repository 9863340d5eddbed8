//! The node's metrics, for Prometheus and INFO.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::health::WriteAvailability;
use crate::metrics::{Figure, number};
use crate::node::NodeCore;

fn of_node(node: &NodeCore) -> Vec<Figure> {
    let pushed = number(node.live.pushed.load(Ordering::Relaxed));
    let clients = number(node.clients.count() as u64);
    let listeners = number(node.live.count() as u64);
    let uptime = node.metrics.started.elapsed().as_secs_f64();
    let mut figures = node.metrics.counters();
    figures.extend([
        (
            "pushed_total",
            "counter",
            "Publications pushed to listeners.",
            pushed,
        ),
        ("clients", "gauge", "Connections.", clients),
        (
            "in_flight_bytes",
            "gauge",
            "Bytes of requests and replies in memory.",
            number(node.in_flight.bytes() as u64),
        ),
        (
            "listeners",
            "gauge",
            "Subscriptions that connections listen to.",
            listeners,
        ),
        (
            "watches",
            "gauge",
            "Queries of aggregates that connections watch.",
            number(node.watches.count() as u64),
        ),
        (
            "uptime_seconds",
            "gauge",
            "Seconds since the start.",
            uptime,
        ),
    ]);
    figures
}

fn of_engine(node: &NodeCore) -> Vec<Figure> {
    let stats = node.db.stats();
    let levels = || stats.keyspaces.iter().flat_map(|keyspace| &keyspace.levels);
    let table_bytes = levels().map(|level| level.bytes).sum();
    let runs = levels().map(|level| level.runs as u64).sum();
    let memtable_bytes: usize = stats
        .keyspaces
        .iter()
        .map(|keyspace| keyspace.memtable_bytes)
        .sum();
    let stalled = number(stats.slowed_micros + stats.stopped_micros + stats.waited_micros) / 1e6;
    vec![
        (
            "engine_sequence",
            "gauge",
            "The newest visible sequence.",
            number(stats.sequence),
        ),
        (
            "engine_table_bytes",
            "gauge",
            "Bytes of tables.",
            number(table_bytes),
        ),
        (
            "engine_runs",
            "gauge",
            "Sorted runs that a read may have to search.",
            number(runs),
        ),
        (
            "engine_memtable_bytes",
            "gauge",
            "Bytes that are not in tables yet.",
            number(memtable_bytes as u64),
        ),
        (
            "engine_log_bytes",
            "gauge",
            "Bytes of the log.",
            number(stats.log_bytes),
        ),
        (
            "engine_log_syncs_total",
            "counter",
            "Syncs of the log, each for all writes that waited for one.",
            number(stats.log_syncs),
        ),
        (
            "engine_written_bytes_total",
            "counter",
            "Bytes of batches written.",
            number(stats.batch_bytes),
        ),
        (
            "engine_write_amplification",
            "gauge",
            "Bytes written altogether, divided by the bytes of batches.",
            stats.write_amplification,
        ),
        (
            "engine_flushes_total",
            "counter",
            "Flushes.",
            number(stats.flushes),
        ),
        (
            "engine_compactions_total",
            "counter",
            "Compactions.",
            number(stats.compactions),
        ),
        (
            "engine_stalled_seconds_total",
            "counter",
            "Time that writers were slowed or stopped.",
            stalled,
        ),
        (
            "engine_cache_hits_total",
            "counter",
            "Blocks found in the cache.",
            number(stats.cache_hits),
        ),
        (
            "engine_cache_misses_total",
            "counter",
            "Blocks that had to be read.",
            number(stats.cache_misses),
        ),
        (
            "engine_snapshots",
            "gauge",
            "Snapshots held.",
            number(stats.snapshots as u64),
        ),
    ]
}

fn of_health(node: &NodeCore) -> Vec<Figure> {
    let health = node.health();
    let is = |other| number(u64::from(health == other));
    vec![
        (
            "engine_poisoned",
            "gauge",
            "1 once writes are no longer possible; the node stops.",
            is(WriteAvailability::Failed),
        ),
        (
            "engine_full",
            "gauge",
            "1 while writes are rejected because the disk is full.",
            is(WriteAvailability::Full),
        ),
    ]
}

/// All figures.
fn figures(node: &NodeCore) -> Vec<Figure> {
    let mut figures = of_node(node);
    figures.extend(of_health(node));
    figures.extend(of_engine(node));
    figures
}

/// The page that Prometheus reads.
pub(crate) fn page(node: &NodeCore) -> String {
    let mut page = String::new();
    for (name, kind, about, value) in figures(node) {
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "# HELP rillbase_node_{name} {about}\n# TYPE rillbase_node_{name} {kind}\nrillbase_node_{name} {value}"
        );
    }
    page
}

/// The same as lines of INFO.
pub(crate) fn lines(node: &NodeCore) -> String {
    let mut lines = String::new();
    for (name, _, _, value) in figures(node) {
        let _ = write!(lines, "{name}:{value}\r\n");
    }
    lines
}
