//! Measures the storage engine and its peers: one program drives all of them, each by its native
//! interface, with the same data. `benchmarks/engine.py` runs it and compares.
//!
//! ```text
//! engine-bench --store rillbase|rocksdb|leveldb|lmdb --dir DIR --workload fillrandom,settle,readrandom
//!     [--num 1000000] [--reads 500000] [--value 100] [--threads 1] [--seed 1]
//!     [--cache-bytes N] [--memtable-bytes N] [--compression none|lz4] [--direct 0|1]
//!     [--sync-delay-us N]
//! engine-bench secondary --dir DIR [--documents 1000000] [--group 32] [--seed 1]
//!     [--systems none,composite,lazy,eager,rocksdb]
//! ```
//!
//! The second form is described in `secondary/mod.rs`, the workloads of the first in `workload.rs`. It
//! prints one line of JSON for each; for a store whose library is not installed, only
//! `{"missing": name}`.
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::secondary;
use crate::store::{Result, StoreSetup};
use crate::workload::{Bench, WorkloadSize};

/// `--name value` pairs.
pub(crate) struct Arguments(HashMap<String, String>);

impl Arguments {
    fn parse(words: &[String]) -> Self {
        let pairs = words.chunks_exact(2).filter_map(|pair| match pair {
            [name, value] => Some((name.trim_start_matches('-').to_owned(), value.clone())),
            _ => None,
        });
        Self(pairs.collect())
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str> {
        let given = self.0.get(name).map(String::as_str);
        given.ok_or_else(|| format!("--{name} is required").into())
    }

    pub(crate) fn count(&self, name: &str, otherwise: u64) -> Result<u64> {
        match self.0.get(name) {
            Some(text) => Ok(text.parse()?),
            None => Ok(otherwise),
        }
    }
}

/// Runs the program with its command-line arguments.
pub fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("secondary", rest)) = words
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        return secondary::main(&Arguments::parse(rest));
    }
    measure_stores(&Arguments::parse(&words))
}

fn measure_stores(arguments: &Arguments) -> Result<()> {
    let bytes = |name, otherwise| -> Result<usize> {
        Ok(usize::try_from(arguments.count(name, otherwise)?)?)
    };
    let setup = StoreSetup {
        cache_bytes: bytes("cache-bytes", 8 << 20)?,
        memtable_bytes: bytes("memtable-bytes", 16 << 20)?,
        lz4: arguments
            .text("compression")
            .is_ok_and(|name| name == "lz4"),
        direct: arguments.count("direct", 0)? != 0,
        sync_delay: Duration::from_micros(arguments.count("sync-delay-us", 0)?),
        clock: None,
    };
    let load = WorkloadSize {
        keys: arguments.count("num", 1_000_000)?,
        reads: arguments.count("reads", 500_000)?,
        threads: arguments.count("threads", 1)?,
        value_bytes: bytes("value", 100)?,
        seed: arguments.count("seed", 1)?,
    };
    let store = arguments.text("store")?;
    let dir = PathBuf::from(arguments.text("dir")?);
    let Some(mut bench) = Bench::open(store, dir, setup, load)? else {
        println!("{{\"missing\": \"{store}\"}}");
        return Ok(());
    };
    for name in arguments.text("workload")?.split(',') {
        println!("{}", bench.measure(name)?);
    }
    Ok(())
}
