//! The same workload on key-value stores, as an application would implement it.
//!
//! - Composite keys: an entry for each record, whose key consists of the cell, the kind, the time
//!   that lookups restrict (newest first) and a number. A lookup iterates over the list up to the
//!   first entry that is too old.
//! - Rewriting: a value for each list, which is read, stripped of expired records, extended and
//!   written again.
//!
//! Expired entries are dropped by compactions if the store supports it, and otherwise deleted when
//! they expire. Memory and compression are the same as for our stores.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rillbase_engine_bench::StoreSetup as Opened;
use rillbase_engine_bench::sorted::Sorted;

use crate::job::{BenchmarkJob, LIFE, Outcome, REACH, SystemStatistics};
use crate::workload::{Spot, WorkloadSetup};

const SUBSCRIPTIONS: u8 = 1;
const PUBLICATIONS: u8 = 2;

/// How lists are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListFormat {
    Composite,
    Rewriting,
}

struct Peer {
    store: Sorted,
    how: ListFormat,
    clock: Arc<AtomicU64>,
    self_join: bool,
    description: Vec<u8>,
    cell: Vec<u8>,
    number: u64,
    now: u64,
    /// Keys by their expiry, if they are not dropped otherwise. Entries of one kind have equal
    /// lifetimes, so they expire in order.
    ends: [VecDeque<(u64, Vec<u8>)>; 2],
}

/// A record: when it ends, when it starts, and its content.
#[derive(Clone, Copy)]
struct PeerRecord<'a> {
    until: u64,
    from: u64,
    rest: &'a [u8],
}

impl PeerRecord<'_> {
    fn encode(&self, number: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(24 + self.rest.len());
        for part in [self.until, self.from, number] {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        bytes.extend_from_slice(self.rest);
        bytes
    }
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>);
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Opens a peer; `None` if its library is not installed.
pub(crate) fn open(
    (name, how): (&str, ListFormat),
    setup: &WorkloadSetup,
    dir: &Path,
) -> Outcome<Option<Box<dyn BenchmarkJob>>> {
    let clock = Arc::new(AtomicU64::new(0));
    let opened = Opened {
        cache_bytes: setup.memory,
        memtable_bytes: setup.memory,
        lz4: true,
        direct: setup.direct,
        sync_delay: Duration::ZERO,
        clock: Some(Arc::clone(&clock)),
    };
    std::fs::create_dir_all(dir)?;
    let Some(store) = Sorted::open(name, dir, &opened)? else {
        return Ok(None);
    };
    Ok(Some(Box::new(Peer {
        store,
        how,
        clock,
        self_join: setup.self_join,
        description: vec![b'x'; setup.description],
        cell: Vec::new(),
        number: 0,
        now: 0,
        ends: [VecDeque::new(), VecDeque::new()],
    })))
}

impl Peer {
    fn list(&self, kind: u8) -> Vec<u8> {
        [&self.cell[..], &[0, kind]].concat()
    }

    /// Writes a record into a list, ordered by the time that lookups restrict.
    fn add(&mut self, kind: u8, record: PeerRecord<'_>) -> Outcome<()> {
        match self.how {
            ListFormat::Composite => {
                let time = if kind == PUBLICATIONS {
                    record.from
                } else {
                    record.until
                };
                let mut key = self.list(kind);
                key.extend_from_slice(&(!time).to_be_bytes());
                key.extend_from_slice(&(!self.number).to_be_bytes());
                self.store.put(&key, &record.encode(self.number))?;
                self.remember(kind, record.until, key);
            }
            ListFormat::Rewriting => {
                let key = self.list(kind);
                let added = record.encode(self.number);
                let found = self.store.get(&key)?.unwrap_or_default();
                // The end of the list's last record comes first, for compactions that drop it.
                let mut list = record.until.to_le_bytes().to_vec();
                list.extend_from_slice(&(added.len() as u64).to_le_bytes());
                list.extend_from_slice(&added);
                each(&found, |entry| {
                    if number_at(entry, 0) >= self.now {
                        list.extend_from_slice(&(entry.len() as u64).to_le_bytes());
                        list.extend_from_slice(entry);
                    }
                    true
                });
                self.store.put(&key, &list)?;
            }
        }
        Ok(())
    }

    fn remember(&mut self, kind: u8, until: u64, key: Vec<u8>) {
        if !self.store.forgets()
            && let Some(ends) = self.ends.get_mut(usize::from(kind == PUBLICATIONS))
        {
            ends.push_back((until, key));
        }
    }

    /// Counts the live records of a list that satisfy `counts`, from the newest to the first that
    /// is older than `oldest`.
    fn count_live(&self, kind: u8, oldest: u64, counts: impl Fn(u64) -> bool) -> Outcome<u64> {
        let list = self.list(kind);
        let mut found = 0;
        let mut take = |until: u64, from: u64| {
            let time = if kind == PUBLICATIONS { from } else { until };
            if time < oldest {
                return false;
            }
            found += u64::from(until >= self.now && counts(from));
            true
        };
        match self.how {
            ListFormat::Composite => self.store.range(&list, &mut |key, value| {
                key.starts_with(&list) && take(number_at(value, 0), number_at(value, 8))
            })?,
            ListFormat::Rewriting => {
                let value = self.store.get(&list)?.unwrap_or_default();
                each(&value, |entry| {
                    take(number_at(entry, 0), number_at(entry, 8))
                });
            }
        }
        Ok(found)
    }

    fn publications(&self) -> Outcome<u64> {
        self.count_live(PUBLICATIONS, self.now - REACH, |_| true)
    }

    fn subscriptions(&self) -> Outcome<u64> {
        self.count_live(SUBSCRIPTIONS, self.now, |from| from <= self.now)
    }
}

/// Passes the entries of a list that is a single value to `visit`.
fn each(list: &[u8], mut visit: impl FnMut(&[u8]) -> bool) {
    let mut rest = list.get(8..).unwrap_or_default();
    while let Some((length, behind)) = rest.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some(entry) = behind.get(..length) else {
            return;
        };
        if !visit(entry) {
            return;
        }
        rest = behind.get(length..).unwrap_or_default();
    }
}

impl BenchmarkJob for Peer {
    fn prepare(&mut self, number: u64, spot: &Spot, now: u64) -> Outcome<()> {
        let Spot::Id(id) = spot else {
            return Err("peers support only flat cells".into());
        };
        self.cell = id.as_bytes().to_vec();
        (self.number, self.now) = (number, now);
        self.clock.store(now, Ordering::Relaxed);
        Ok(())
    }

    fn publish(&mut self) -> Outcome<u64> {
        let met = self.subscriptions()?;
        if self.self_join {
            std::hint::black_box(self.publications()?);
        }
        let rest = std::mem::take(&mut self.description);
        let (until, from) = (self.now + LIFE, self.now);
        let record = PeerRecord {
            until,
            from,
            rest: &rest,
        };
        let added = self.add(PUBLICATIONS, record);
        self.description = rest;
        added.map(|()| met)
    }

    fn subscribe(&mut self) -> Outcome<u64> {
        let met = self.publications()?;
        if self.self_join {
            std::hint::black_box(self.subscriptions()?);
        }
        let user = (self.number % 100_000).to_le_bytes();
        let record = PeerRecord {
            until: self.now + REACH,
            from: self.now - REACH,
            rest: &user,
        };
        self.add(SUBSCRIPTIONS, record)?;
        Ok(met)
    }

    fn due(&mut self) -> Outcome<u64> {
        for ends in &mut self.ends {
            while ends.front().is_some_and(|(until, _)| *until < self.now) {
                if let Some((_, key)) = ends.pop_front() {
                    self.store.delete(&key)?;
                }
            }
        }
        Ok(0)
    }

    fn statistics(&self) -> SystemStatistics {
        SystemStatistics::default()
    }
}
