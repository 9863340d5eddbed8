//! Measures how long opening takes after the kill of a process that had written 64 MiB to the log.
//!
//! `reopen [DIR]`; the directory is created and removed. It reports the median of five runs; the
//! last line of the output is JSON.
#![allow(clippy::print_stdout, reason = "the figures are the purpose")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rillbase_engine::{Db, DbOptions, Durability, Error, KeyspaceOptions, Result, WriteBatch};

const LOG_BYTES: u64 = 64 << 20;
const VALUE: [u8; 100] = [b'x'; 100];
const ROUNDS: u32 = 5;

fn open(dir: &Path) -> Result<Db> {
    let keyspace = KeyspaceOptions {
        memtable_bytes: 1 << 30,
        ..KeyspaceOptions::default()
    };
    let options = DbOptions {
        memtables_bytes: 1 << 30,
        ..DbOptions::default()
    };
    Db::open(dir, options.keyspace("space", keyspace))
}

/// Writes until the log has the given size, and exits without closing the database.
fn fill(dir: &Path) -> Result<()> {
    let db = open(dir)?;
    let space = db.create_keyspace("space", KeyspaceOptions::default())?;
    let mut number = 0_u64;
    while db.stats().log_bytes < LOG_BYTES {
        for _ in 0..1000 {
            let mut batch = WriteBatch::new();
            batch.put(
                &space,
                &number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes(),
                &VALUE,
            );
            db.write(batch, Durability::Buffered)?;
            number += 1;
        }
    }
    std::process::exit(0)
}

fn measure(dir: &Path) -> Result<f64> {
    let failed = |error| Error::io("start", dir, error);
    let program = std::env::current_exe().map_err(failed)?;
    let mut seconds = Vec::new();
    for _ in 0..ROUNDS {
        Command::new(&program)
            .arg("fill")
            .arg(dir)
            .status()
            .map_err(failed)?;
        let start = Instant::now();
        let db = open(dir)?;
        seconds.push(start.elapsed().as_secs_f64());
        println!("opened in {:.3} s", start.elapsed().as_secs_f64());
        drop(db);
        std::fs::remove_dir_all(dir).map_err(|error| Error::io("remove", dir, error))?;
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("fill"), Some(dir)) => fill(Path::new(&dir)),
        (dir, _) => {
            let default = || std::env::temp_dir().join("rillbase-reopen");
            let dir = dir.map_or_else(default, PathBuf::from);
            println!("{{\"reopen_seconds\":{:.3}}}", measure(&dir)?);
            Ok(())
        }
    }
}
