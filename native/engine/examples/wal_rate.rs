//! Measures how many durable records per second one thread and many threads append.
//!
//! `wal_rate [DIR [SECONDS]]`; the directory is created and emptied. Runs of one and of many
//! threads alternate, and the median of three is reported. The last line of the output is JSON.
#![allow(clippy::print_stdout, reason = "the figures are the purpose")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rillbase_engine::vfs::RealVfs;
use rillbase_engine::wal::{Durability, Wal, WalOptions};
use rillbase_engine::{Error, Result};

const THREADS: [u32; 4] = [1, 2, 8, 32];
const BODY: [u8; 116] = [b'x'; 116];
const ROUNDS: usize = 3;

/// Appends from several threads for `run`; returns records per second.
fn rate(wal: &Wal, threads: u32, run: Duration, durability: Durability) -> Result<f64> {
    let stop = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let start = Instant::now();
    let worker = || -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            wal.append(&BODY, durability)?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        thread::sleep(run);
        stop.store(true, Ordering::Relaxed);
        let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended.into_iter().try_for_each(|end| {
            let why = "a thread panicked".to_owned();
            end.unwrap_or(Err(Error::Poisoned { why }))
        })
    })?;
    let seconds = start.elapsed().as_secs_f64();
    wal.truncate_front(u64::MAX)?;
    let done = u32::try_from(done.into_inner()).unwrap_or(u32::MAX);
    Ok(f64::from(done) / seconds)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().map_or_else(
        || std::env::temp_dir().join("rillbase-wal-rate"),
        PathBuf::from,
    );
    let seconds = arguments.next().and_then(|text| text.parse().ok());
    let run = Duration::from_secs_f64(seconds.unwrap_or(2.0));
    let figures = measure(&dir, run);
    std::fs::remove_dir_all(&dir).map_err(|error| Error::io("remove", &dir, error))?;
    println!("{}", figures?);
    Ok(())
}

fn measure(dir: &Path, run: Duration) -> Result<String> {
    let wal = Wal::open(Arc::new(RealVfs), dir, &WalOptions::default())?;
    rate(&wal, 1, run, Durability::Buffered)?;
    let mut synced = vec![Vec::new(); THREADS.len()];
    let mut buffered = Vec::new();
    for _ in 0..ROUNDS {
        for (threads, rates) in THREADS.iter().zip(&mut synced) {
            rates.push(rate(&wal, *threads, run, Durability::Sync)?);
        }
        buffered.push(rate(&wal, 1, run, Durability::Buffered)?);
    }
    wal.close()?;
    let mut figures = Vec::new();
    let rates: Vec<f64> = synced.into_iter().map(median).collect();
    for (threads, rate) in THREADS.iter().zip(&rates) {
        println!("{threads:>2} threads, synced: {rate:>9.0} records/s");
        figures.push(format!("\"synced_{threads}\":{rate:.0}"));
    }
    let buffered = median(buffered);
    println!(" 1 thread, buffered: {buffered:>9.0} records/s");
    figures.push(format!("\"buffered_1\":{buffered:.0}"));
    let one = rates.first().copied().unwrap_or(f64::NAN);
    let ratio = rates.last().copied().unwrap_or(f64::NAN) / one;
    figures.push(format!("\"ratio\":{ratio:.1}"));
    Ok(format!("{{{}}}", figures.join(",")))
}
