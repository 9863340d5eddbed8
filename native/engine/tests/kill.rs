//! A process that writes durably from several threads is killed: nothing acknowledged is lost.
//!
//! The victim is this test program itself, started again to run nothing but `victim`.

use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use rillbase_engine::vfs::SeededRandom;
use rillbase_engine::{Db, DbOptions, Durability, KeyspaceOptions, WriteBatch};

const DIR: &str = "RILLBASE_VICTIM_DIR";
const ROUND: &str = "RILLBASE_VICTIM_ROUND";
const THREADS: u64 = 4;

/// Small memtables, so that flushes and compactions are in progress when the process is killed.
fn open(dir: &Path) -> Db {
    let keyspace = KeyspaceOptions {
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        base_bytes: 256 << 10,
        ..KeyspaceOptions::default()
    };
    let options = DbOptions::default()
        .keyspace("left", keyspace.clone())
        .keyspace("right", keyspace);
    Db::open(dir, options).unwrap()
}

fn key(round: u64, thread: u64, number: u64) -> Vec<u8> {
    format!("{round:04}/{thread}/{number:08}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(20)
}

/// Writes forever, and reports after each write which one is durable.
#[test]
#[ignore = "only what `survives` starts runs this"]
fn victim() {
    let Ok(dir) = env::var(DIR) else {
        return;
    };
    let round: u64 = env::var(ROUND).unwrap().parse().unwrap();
    let db = open(Path::new(&dir));
    let (left, right) = (db.keyspace("left").unwrap(), db.keyspace("right").unwrap());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, left, right) = (&db, &left, &right);
            scope.spawn(move || {
                for number in 0.. {
                    let key = key(round, thread, number);
                    let mut batch = WriteBatch::new();
                    batch.put(left, &key, &value(number));
                    batch.put(right, &key, &value(number));
                    db.write(batch, Durability::Sync).unwrap();
                    let line = format!("durable {thread} {number}\n");
                    stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

fn start(dir: &Path, round: u64) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "kill::victim", "--ignored", "--nocapture"]);
    command.env(DIR, dir).env(ROUND, round.to_string());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// The number of writes of each thread that the victim reported as durable before it was killed.
fn run_and_kill(dir: &Path, round: u64, lines: u64) -> [u64; 4] {
    let mut child = start(dir, round);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut durable = [0; 4];
    let (mut line, mut seen) = (String::new(), 0);
    while output.read_line(&mut line).unwrap() > 0 {
        let words: Vec<&str> = line.trim_end().split(' ').collect();
        if let (["durable", thread, number], true) = (&words[..], line.ends_with('\n')) {
            durable[thread.parse::<usize>().unwrap()] = number.parse::<u64>().unwrap() + 1;
            seen += 1;
            if seen == lines {
                child.kill().unwrap();
            }
        }
        line.clear();
    }
    child.wait().unwrap();
    assert!(seen >= lines, "the victim ended by itself");
    durable
}

fn check(db: &Db, round: u64, durable: [u64; 4]) {
    let (left, right) = (db.keyspace("left").unwrap(), db.keyspace("right").unwrap());
    for (thread, durable) in (0..).zip(durable) {
        // At most one write of each thread was pending; it is present as a whole or not at all.
        for number in 0..durable + 2 {
            let key = key(round, thread, number);
            let found = db.get(&left, &key).unwrap();
            assert_eq!(
                found,
                db.get(&right, &key).unwrap(),
                "batch {number} is not whole"
            );
            assert!(
                found.is_some() || number >= durable,
                "write {number} of {durable} is lost"
            );
            assert!(found.is_none_or(|found| *found == *value(number)));
        }
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn survives(name: &str, rounds: u64) {
    let name = format!("rillbase-kill-{name}-{}", std::process::id());
    let folder = Folder(env::temp_dir().join(name));
    let mut random = SeededRandom::new(rounds);
    let mut history = Vec::new();
    for round in 0..rounds {
        let durable = run_and_kill(&folder.0, round, 1 + random.below(2000));
        history.push(durable);
        let db = open(&folder.0);
        check(&db, round, durable);
        let earlier = random.below(round + 1);
        check(&db, earlier, history[usize::try_from(earlier).unwrap()]);
        db.close().unwrap();
    }
}

#[test]
fn no_acknowledged_write_is_lost_when_the_process_is_killed() {
    survives("everyday", 6);
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn no_acknowledged_write_is_lost_in_two_hundred_kills() {
    survives("long", 200);
}
