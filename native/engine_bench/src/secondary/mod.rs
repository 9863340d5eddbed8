//! Secondary indexes of native collections by technique, and of `RocksDB` with composite keys: all
//! of them store the same tweets, in one process, by turns.
//!
//! The program reads requests from its standard input, one per line, and replies with a line of
//! JSON each (see `tweet_bench.rs`). The first line names the systems.

mod collection_store;
mod rocks_index;
mod tweet_bench;
mod tweet_store;
mod tweets;

use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::Duration;

use rillbase_collections::IndexTechnique;

use self::collection_store::CollectionStore;
use self::rocks_index::RocksTweets;
use self::tweet_bench::{MeasuredSystem, TweetBench};
use self::tweet_store::TweetStore;
use self::tweets::TweetSource;
use crate::command::Arguments;
use crate::store::{Result, StoreSetup};

/// Its collection has no index, so it is only written.
const WITHOUT_INDEX: &str = "none";
const ROCKSDB: &str = "rocksdb";
/// Of a tweet, roughly.
const TWEET_BYTES: u64 = 550;
const LEAST_MEMTABLE_BYTES: u64 = 256 << 10;

/// Runs the program.
pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let documents = arguments.count("documents", 1_000_000)?;
    // Tweets are five times as large as memtable and cache together.
    let memory = documents * TWEET_BYTES / 5;
    let setup = StoreSetup {
        cache_bytes: usize::try_from(memory / 3)?,
        memtable_bytes: usize::try_from((memory * 2 / 3).max(LEAST_MEMTABLE_BYTES))?,
        lz4: true,
        direct: false,
        sync_delay: Duration::ZERO,
        clock: None,
    };
    let dir = PathBuf::from(arguments.text("dir")?);
    let mut bench = TweetBench {
        systems: open(&dir, &setup)?,
        source: TweetSource::new(arguments.count("seed", 1)?, u32::try_from(documents)?),
        group: usize::try_from(arguments.count("group", 32)?)?,
        now_ms: 1_700_000_000_000,
    };
    println!("{}", bench.names());
    for line in std::io::stdin().lock().lines() {
        println!("{}", bench.answer(&line?)?);
    }
    Ok(())
}

fn open(dir: &std::path::Path, setup: &StoreSetup) -> Result<Vec<MeasuredSystem>> {
    let mut systems = Vec::new();
    let mut add = |name: &str, is_indexed: bool, store: Box<dyn TweetStore>| {
        systems.push(MeasuredSystem {
            name: name.to_owned(),
            is_indexed,
            store,
        });
    };
    let path = |name: &str| -> Result<PathBuf> {
        let path = dir.join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    };
    let plain = CollectionStore::open(&path(WITHOUT_INDEX)?, setup, None)?;
    add(WITHOUT_INDEX, false, Box::new(plain));
    for technique in IndexTechnique::ALL {
        let name = technique.name();
        let store = CollectionStore::open(&path(name)?, setup, Some(technique))?;
        add(name, true, Box::new(store));
    }
    if let Some(rocks) = RocksTweets::open(&path(ROCKSDB)?, setup)? {
        add(ROCKSDB, true, Box::new(rocks));
    }
    Ok(systems)
}
