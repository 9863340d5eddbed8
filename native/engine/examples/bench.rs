//! Measures the engine by itself, without any binding.
//!
//! ```text
//! cargo run --release -p rillbase-engine --example bench -- \
//!     --workload fillseq,readrandom --num 1000000 --value 100 --threads 1 --dir /tmp/bench
//! ```
//!
//! Workloads: `fillseq`, `fillrandom`, `overwrite`, `readrandom`, `readmissing`, `seekrandom`
//! (a seek and ten entries), `scan`, `mixed` (nine reads to a write), `fillsync` (durable single
//! writes), `merge`, `compact`, `wait` (until no compaction is due). They run in the order given,
//! over one database, which a fill that comes first makes anew. One line each: operations a second.
//!
//! `--cache`, `--memtable` and `--base` are in MiB; `--compression` is `none`, `lz4` or `zstd`.
#![allow(
    clippy::cast_precision_loss,
    reason = "rates are printed with few digits"
)]

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rillbase_engine::{
    Batch, Compression, Db, Durability, Error, Keyspace, KeyspaceOptions, Merge, Options, Result,
};

/// Adds eight-byte numbers.
#[derive(Debug)]
struct Sum;

fn number(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk::<8>()
        .map_or(0, |raw| u64::from_le_bytes(*raw))
}

impl Merge for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        let start = below.map_or(0, number);
        let sum = operands
            .iter()
            .fold(start, |sum, bytes| sum.wrapping_add(number(bytes)));
        sum.to_le_bytes().to_vec()
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(self.full(key, None, operands))
    }
}

/// A fast generator whose numbers look random enough.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

struct Settings {
    named: HashMap<String, String>,
}

impl Settings {
    fn read() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let pairs = words.chunks_exact(2).filter_map(|pair| match pair {
            [name, value] => Some((name.trim_start_matches('-').to_owned(), value.clone())),
            _ => None,
        });
        Self {
            named: pairs.collect(),
        }
    }

    fn text<'a>(&'a self, name: &str, otherwise: &'a str) -> &'a str {
        self.named.get(name).map_or(otherwise, String::as_str)
    }

    fn count(&self, name: &str, otherwise: usize) -> usize {
        self.named
            .get(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(otherwise)
    }
}

/// One database and what is done to it.
struct Bench {
    db: Db,
    space: Keyspace,
    sums: Keyspace,
    num: u64,
    reads: u64,
    threads: u64,
    /// Values are pieces of this; half of it is compressible.
    filling: Vec<u8>,
    value_bytes: usize,
    begun: Instant,
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    for (slot, byte) in key.iter_mut().zip(number.to_be_bytes()) {
        *slot = byte;
    }
    key
}

impl Bench {
    fn open(settings: &Settings, dir: &Path) -> Result<Self> {
        let mib = |name: &str, otherwise| settings.count(name, otherwise) << 20;
        let compression = match settings.text("compression", "none") {
            "lz4" => vec![Compression::Lz4],
            "zstd" => vec![Compression::Lz4, Compression::Lz4, Compression::Zstd(3)],
            _ => vec![Compression::None],
        };
        let space = KeyspaceOptions {
            compression,
            memtable_bytes: mib("memtable", 64),
            base_bytes: mib("base", 256) as u64,
            ..KeyspaceOptions::default()
        };
        let sums = KeyspaceOptions {
            merge: Some(Arc::new(Sum)),
            ..space.clone()
        };
        let options = Options {
            cache_bytes: mib("cache", 8),
            background_threads: settings.count("background", 2),
            ..Options::default()
        };
        let options = options.keyspace("bench", space).keyspace("sums", sums);
        let db = Db::open(dir, options)?;
        let missing = || Error::InvalidArgument {
            what: "a keyspace is missing".into(),
        };
        let value_bytes = settings.count("value", 100);
        let mut dice = Dice(0x1234_5678);
        let filling = (0..(1_usize << 20) + value_bytes).map(|at| {
            if at / 50 % 2 == 0 {
                b'x'
            } else {
                (dice.roll() & 0xff) as u8
            }
        });
        Ok(Self {
            space: db.keyspace("bench").ok_or_else(missing)?,
            sums: db.keyspace("sums").ok_or_else(missing)?,
            db,
            num: settings.count("num", 1_000_000) as u64,
            reads: settings.count("reads", 500_000) as u64,
            threads: settings.count("threads", 1) as u64,
            filling: filling.collect(),
            value_bytes,
            begun: Instant::now(),
        })
    }

    fn value(&self, dice: &mut Dice) -> &[u8] {
        let at = usize::try_from(dice.roll() & 0xf_ffff).unwrap_or(0);
        self.filling
            .get(at..at + self.value_bytes)
            .unwrap_or_default()
    }

    /// Lets each thread do its share of `count` operations.
    fn share(&self, count: u64, work: impl Fn(&mut Dice, u64) -> Result<()> + Sync) -> Result<u64> {
        let failed = std::sync::Mutex::new(None);
        // No workload rolls the numbers of another, nor of an earlier run.
        let salt = u64::from(Instant::now().duration_since(self.begun).subsec_nanos());
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                let (work, failed) = (&work, &failed);
                scope.spawn(move || {
                    let mut dice = Dice(
                        (salt | 1)
                            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                            .wrapping_add(thread * 77_777),
                    );
                    let mut own = thread;
                    while own < count {
                        if let Err(error) = work(&mut dice, own) {
                            if let Ok(mut slot) = failed.lock() {
                                *slot = Some(error);
                            }
                            return;
                        }
                        own += self.threads;
                    }
                });
            }
        });
        match failed.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => Ok(count),
        }
    }

    fn put(&self, at: u64, dice: &mut Dice, durability: Durability) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(&self.space, &key(at), self.value(dice));
        self.db.write(batch, durability).map(|_| ())
    }

    fn scan(&self) -> Result<u64> {
        use std::ops::Bound::Unbounded;
        let mut scan = self.db.scan(&self.space, Unbounded, Unbounded, None)?;
        scan.first()?;
        let mut bytes = 0;
        let mut seen = 0;
        while scan.is_valid() {
            bytes += scan.key().len() + scan.value().len();
            seen += 1;
            scan.advance()?;
        }
        std::hint::black_box(bytes);
        Ok(seen)
    }

    fn seek(&self, dice: &mut Dice) -> Result<()> {
        use std::ops::Bound::Unbounded;
        let mut scan = self.db.scan(&self.space, Unbounded, Unbounded, None)?;
        scan.seek(&key(dice.roll() % self.num))?;
        for _ in 0..10 {
            std::hint::black_box(scan.value().len());
            scan.advance()?;
        }
        Ok(())
    }

    /// Asks for a key that lies between others.
    fn miss(&self, dice: &mut Dice) -> Result<()> {
        let mut key = key(dice.roll() % self.num);
        if let Some(last) = key.last_mut() {
            *last = b'.';
        }
        self.db
            .get(&self.space, &key)
            .map(|found| drop(std::hint::black_box(found)))
    }

    fn add(&self, dice: &mut Dice) -> Result<()> {
        let mut batch = Batch::new();
        batch.merge(&self.sums, &key(dice.roll() % 1000), &1_u64.to_le_bytes());
        self.db.write(batch, Durability::Buffered).map(|_| ())
    }

    /// Runs a workload; returns how many operations it did, and a note.
    fn run(&self, name: &str) -> Result<(u64, String)> {
        let (num, reads) = (self.num, self.reads);
        let buffered = Durability::Buffered;
        let found = AtomicU64::new(0);
        let get = |at: u64| {
            let hit = self.db.get(&self.space, &key(at))?.is_some();
            found.fetch_add(u64::from(hit), Ordering::Relaxed);
            Ok(())
        };
        let done = match name {
            "fillseq" => self.share(num, |dice, at| self.put(at, dice, buffered))?,
            "fillrandom" | "overwrite" => {
                self.share(num, |dice, _| self.put(dice.roll() % num, dice, buffered))?
            }
            "fillsync" => self.share(reads.min(num), |dice, _| {
                self.put(dice.roll() % num, dice, Durability::Sync)
            })?,
            "readrandom" => self.share(reads, |dice, _| get(dice.roll() % num))?,
            "readmissing" => self.share(reads, |dice, _| self.miss(dice))?,
            "seekrandom" => self.share(reads / 4, |dice, _| self.seek(dice))?,
            "mixed" => self.share(reads, |dice, at| match at % 10 {
                0 => self.put(dice.roll() % num, dice, buffered),
                _ => get(dice.roll() % num),
            })?,
            "merge" => self.share(num, |dice, _| self.add(dice))?,
            "scan" => self.scan()?,
            "compact" => self.db.compact(&self.space).map(|()| num)?,
            "wait" => self
                .db
                .flush()
                .and_then(|()| self.db.compact_due(&self.space))
                .map(|()| num)?,
            _ => {
                let what = format!("there is no workload {name:?}");
                return Err(Error::InvalidArgument { what });
            }
        };
        let found = found.into_inner();
        let note = if found > 0 {
            format!("{found} found")
        } else {
            String::new()
        };
        Ok((done, note))
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let settings = Settings::read();
    let dir = settings.text("dir", "/tmp/rillbase-bench");
    let workloads: Vec<&str> = settings
        .text("workload", "fillrandom,readrandom")
        .split(',')
        .collect();
    if workloads
        .first()
        .is_some_and(|first| first.starts_with("fill"))
        && Path::new(dir).exists()
    {
        std::fs::remove_dir_all(dir)?;
    }
    let bench = Bench::open(&settings, Path::new(dir))?;
    let mut out = io::stdout().lock();
    for name in workloads {
        let started = Instant::now();
        let (done, note) = bench.run(name)?;
        let seconds = started.elapsed().as_secs_f64();
        let rate = done as f64 / seconds;
        writeln!(
            out,
            "{name:<12} {rate:>12.0} ops/s {:>9.3} µs/op  {note}",
            1e6 / rate
        )?;
    }
    let stats = bench.db.stats();
    writeln!(
        out,
        "write amplification {:.2}, flushes {}, compactions {}, moves {}, slowed {} ms, stopped {} ms, waited {} ms",
        stats.write_amplification,
        stats.flushes,
        stats.compactions,
        stats.moves,
        stats.slowed_micros / 1000,
        stats.stopped_micros / 1000,
        stats.waited_micros / 1000,
    )?;
    for keyspace in stats.keyspaces {
        let levels: Vec<String> = keyspace
            .levels
            .iter()
            .map(|level| format!("{}/{}/{} MiB", level.runs, level.files, level.bytes >> 20))
            .collect();
        writeln!(out, "{}: {}", keyspace.name, levels.join(" "))?;
    }
    bench.db.close()?;
    Ok(())
}
