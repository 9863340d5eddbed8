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
use std::path::{Path, PathBuf};
use std::time::Duration;

use rillbase_collections::IndexTechnique;

use self::collection_store::CollectionStore;
use self::rocks_index::RocksTweets;
use self::tweet_bench::{MeasuredSystem, TweetBench};
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
        systems: open(&dir, &setup, arguments.text("systems").ok())?,
        source: TweetSource::new(arguments.count("seed", 1)?, u32::try_from(documents)?),
        group: usize::try_from(arguments.count("group", 32)?)?,
        now_ms: 1_700_000_000_000,
        only: None,
    };
    println!("{}", bench.names());
    for line in std::io::stdin().lock().lines() {
        println!("{}", bench.answer(&line?)?);
    }
    Ok(())
}

/// Opens all systems, or those of a list.
fn open(dir: &Path, setup: &StoreSetup, chosen: Option<&str>) -> Result<Vec<MeasuredSystem>> {
    let mut systems = Vec::new();
    let techniques = IndexTechnique::ALL.map(|technique| (technique.name(), Some(technique)));
    let collections = [(WITHOUT_INDEX, None)].into_iter().chain(techniques);
    let is_chosen =
        |name: &str| chosen.is_none_or(|chosen| chosen.split(',').any(|one| one == name));
    for (name, technique) in collections.filter(|(name, _)| is_chosen(name)) {
        let store = CollectionStore::open(&created(dir, name)?, setup, technique)?;
        systems.push(MeasuredSystem {
            name: name.to_owned(),
            is_indexed: technique.is_some(),
            store: Box::new(store),
        });
    }
    if is_chosen(ROCKSDB)
        && let Some(store) = RocksTweets::open(&created(dir, ROCKSDB)?, setup)?
    {
        systems.push(MeasuredSystem {
            name: ROCKSDB.to_owned(),
            is_indexed: true,
            store: Box::new(store),
        });
    }
    Ok(systems)
}

fn created(dir: &Path, name: &str) -> Result<PathBuf> {
    let path = dir.join(name);
    std::fs::create_dir_all(&path)?;
    Ok(path)
}
