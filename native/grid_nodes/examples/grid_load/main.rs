//! Loads the grid and measures it: `benchmarks/grid.py` starts this beside a running grid.
//!
//! It registers queries, and reports that in a line on the standard output. For each line on the
//! standard input it appends writes at a steady rate, while another thread reads the notification
//! logs, and answers with a line of figures, as JSON. Latency is measured from the time when a write
//! was due to its notification, by one clock. A line may list write partitions, separated by
//! commas, whose writes and notifications are not counted, because their nodes are being killed.
//!
//! With `--tailing 1` there is no grid: this process follows the write streams.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

mod clock;
mod grouped_documents;
mod notification_reader;
mod options;
mod registering;
mod tailing;
mod workload;
mod writing;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rillbase_grid_nodes::server::ValkeyServer;

use crate::notification_reader::NotificationReader;
use crate::options::LoadOptions;
use crate::tailing::Tails;
use crate::workload::GridWorkload;
use crate::writing::{WriteSummary, Writer};

pub(crate) type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How long to wait for outstanding notifications after the last write.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Fallible<()> {
    let options = options::read()?;
    let server = ValkeyServer::parse(&options.url)?;
    let workload = Arc::new(GridWorkload::make(&options));
    let mut reader = NotificationReader::open(&server, &options, Arc::clone(&workload))?;
    let began = Instant::now();
    let tails = if options.tailing {
        Some(Tails::start(&server, &options, &workload)?)
    } else {
        registering::register(&server, &options, &workload, &mut reader)?;
        None
    };
    let registered_s = began.elapsed().as_secs_f64();
    println!("registered");
    let mut writer = Writer::open(&server, &options, &workload)?;
    for line in io::stdin().lines() {
        let uncounted = partitions(&line?)?;
        let (sent, latencies) = measure(&mut writer, &mut reader, &uncounted)?;
        report(&options, registered_s, &sent, latencies);
    }
    if let Some(tails) = tails {
        tails.stop()?;
    }
    Ok(())
}

fn partitions(line: &str) -> Fallible<Vec<u16>> {
    let names = line.split(',').filter(|name| !name.is_empty());
    Ok(names.map(str::parse).collect::<Result<_, _>>()?)
}

/// Writes, and reads the notification logs in another thread.
fn measure(
    writer: &mut Writer<'_>,
    reader: &mut NotificationReader,
    uncounted: &[u16],
) -> Fallible<(WriteSummary, Vec<u64>)> {
    let (done, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|threads| {
        let reading = threads.spawn(|| reader.measure(uncounted, &done, &stop));
        let sent = writer.write(uncounted);
        done.store(true, Ordering::Relaxed);
        let until = Instant::now() + DRAIN_TIMEOUT;
        while !reading.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        let latencies = reading.join().map_err(|_| "the reader panicked")??;
        Ok((sent?, latencies))
    })
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures for people"
)]
fn report(
    options: &LoadOptions,
    registered_s: f64,
    sent: &WriteSummary,
    mut latencies_us: Vec<u64>,
) {
    latencies_us.sort_unstable();
    let ms = |share: f64| {
        let place = (share * latencies_us.len() as f64) as usize;
        let last = latencies_us.len().saturating_sub(1);
        latencies_us
            .get(place.min(last))
            .map_or(0.0, |&us| us as f64 / 1_000.0)
    };
    let total: u64 = latencies_us.iter().sum();
    let average_ms = total as f64 / 1_000.0 / latencies_us.len().max(1) as f64;
    println!(
        "{{\"registered_per_s\":{:.0},\"writes\":{},\"writes_per_s\":{:.1},\"expected\":{},\
         \"delivered\":{},\"average_ms\":{average_ms:.3},\"p50_ms\":{:.3},\"p95_ms\":{:.3},\
         \"p99_ms\":{:.3},\"max_ms\":{:.3}}}",
        options.queries as f64 / registered_s,
        sent.writes,
        sent.writes as f64 / sent.seconds,
        sent.expected,
        latencies_us.len(),
        ms(0.5),
        ms(0.95),
        ms(0.99),
        ms(1.0),
    );
}
