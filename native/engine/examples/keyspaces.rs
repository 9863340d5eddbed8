//! Measures what thousands of keyspaces cost: memory, writes spread over them, the log, opening.
//!
//! `keyspaces [COUNT [DIR]]`; the directory is created and removed. Single writes of 1 KiB go to
//! one keyspace, then to all in turn, with a budget of 64 MiB for the log and of 256 MiB for
//! memtables. The last line of the output is JSON.
#![allow(clippy::print_stdout, reason = "the figures are the purpose")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use rillbase_engine::{
    Db, DbOptions, Durability, Error, Keyspace, KeyspaceOptions, Result, WriteBatch,
};

const COUNT: usize = 10_000;
const LOG_BYTES: u64 = 64 << 20;
const WRITES: u64 = 250_000;
const VALUE: [u8; 1000] = [b'x'; 1000];
const CHECK_EVERY: u64 = 1_000;

/// Writes one after the other.
struct WriteFigures {
    per_second: f64,
    largest_log: u64,
    largest_memory: u64,
}

fn open(dir: &Path) -> Result<Db> {
    let options = DbOptions {
        log_bytes: LOG_BYTES,
        ..DbOptions::default()
    };
    Db::open(dir, options)
}

/// The resident memory of this process in bytes; 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.map_or(0, |number| number.parse::<u64>().unwrap_or(0) << 10)
}

fn write(db: &Db, spaces: &[Keyspace]) -> Result<WriteFigures> {
    let start = Instant::now();
    let (mut largest_log, mut largest_memory) = (0, 0);
    for (number, space) in (0..WRITES).zip(spaces.iter().cycle()) {
        let mut batch = WriteBatch::new();
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        batch.put(space, &key, &VALUE);
        db.write(batch, Durability::Buffered)?;
        if number % CHECK_EVERY == 0 {
            largest_log = largest_log.max(db.stats().log_bytes);
            largest_memory = largest_memory.max(resident_bytes());
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    let per_second = WRITES as f64 / start.elapsed().as_secs_f64();
    Ok(WriteFigures {
        per_second,
        largest_log,
        largest_memory,
    })
}

fn measure(dir: &Path, count: usize) -> Result<()> {
    let db = open(dir)?;
    let (before, start) = (resident_bytes(), Instant::now());
    let spaces: Result<Vec<Keyspace>> = (0..count)
        .map(|number| db.create_keyspace(&format!("space {number}"), KeyspaceOptions::default()))
        .collect();
    let spaces = spaces?;
    let idle = resident_bytes().saturating_sub(before) / count.max(1) as u64;
    let created = start.elapsed().as_secs_f64();
    println!("{count} keyspaces created in {created:.1} s, {idle} bytes each while idle");

    let alone = db.create_keyspace("alone", KeyspaceOptions::default())?;
    let one = write(&db, &[alone])?;
    println!("one keyspace: {:.0} writes/s", one.per_second);

    let all = write(&db, &spaces)?;
    let ratio = all.per_second / one.per_second;
    let megabytes = |bytes: u64| bytes >> 20;
    println!(
        "all in turn: {:.0} writes/s, {ratio:.2} of one; log up to {} MiB, memory up to {} MiB, {} flushes",
        all.per_second,
        megabytes(all.largest_log),
        megabytes(all.largest_memory),
        db.stats().flushes,
    );

    drop(spaces);
    let start = Instant::now();
    db.close()?;
    println!("closed in {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let db = open(dir)?;
    let opened = start.elapsed().as_secs_f64();
    println!("opened in {opened:.1} s");
    drop(db);
    println!(
        "{{\"keyspaces\":{count},\"idle_bytes\":{idle},\"writes_ratio\":{ratio:.3},\"log_mib\":{},\"memory_mib\":{},\"open_seconds\":{opened:.2}}}",
        megabytes(all.largest_log),
        megabytes(all.largest_memory),
    );
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().and_then(|count| count.parse().ok());
    let default = || std::env::temp_dir().join("rillbase-keyspaces");
    let dir = arguments.next().map_or_else(default, PathBuf::from);
    measure(&dir, count.unwrap_or(COUNT))?;
    std::fs::remove_dir_all(&dir).map_err(|error| Error::io("remove", &dir, error))
}
