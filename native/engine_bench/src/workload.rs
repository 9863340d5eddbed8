//! The workloads. All random numbers depend only on the seed, the workload and the thread, so that
//! every store receives the same data and must return the same results.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::process::{data_bytes, processor_seconds, read_calls, written_bytes};
use crate::store::{self, BenchStore, Result, StoreSetup};
use crate::stores;

const KEY_BYTES: usize = 16;
/// At or before every key; LMDB has no empty keys.
const FIRST: &[u8] = &[0];
/// Counters of `merge`.
const COUNTERS: u64 = 1000;
/// A store that has written nothing for this long has settled.
const SETTLED_AFTER: Duration = Duration::from_millis(300);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The number of entries that are read from each position of `seekrandom`.
const SEEK_ENTRIES: u64 = 10;

/// The size of a workload.
pub(crate) struct WorkloadSize {
    pub(crate) keys: u64,
    pub(crate) reads: u64,
    pub(crate) threads: u64,
    pub(crate) value_bytes: usize,
    pub(crate) seed: u64,
}

/// A fast pseudorandom number generator.
pub(crate) struct Xorshift(u64);

impl Xorshift {
    pub(crate) fn new(seed: u64, name: &str, thread: u64) -> Self {
        let text = name.bytes().fold(seed + 1, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mixed = (text + thread).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed | 1)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [b'0'; KEY_BYTES];
    for (slot, byte) in key.iter_mut().zip(number.to_be_bytes()) {
        *slot = byte;
    }
    key
}

/// A missing key between existing ones.
fn missing_key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = key(number);
    if let Some(last) = key.last_mut() {
        *last = b'.';
    }
    key
}

/// Reads a value as far as its length requires.
fn look(value: &[u8]) {
    std::hint::black_box(value.len());
}

/// A store under test.
pub(crate) struct Bench {
    name: String,
    dir: PathBuf,
    setup: StoreSetup,
    load: WorkloadSize,
    /// `None` only while it is recreated.
    store: Option<Box<dyn BenchStore>>,
    /// Values are slices of this; half of it is compressible.
    filling: Vec<u8>,
    /// Bytes of keys and values that were put since the store was created, and the system's count
    /// at that time.
    put_bytes: u64,
    written_before: u64,
}

impl Bench {
    /// `None` if the store's library is not installed.
    pub(crate) fn open(
        name: &str,
        dir: PathBuf,
        setup: StoreSetup,
        load: WorkloadSize,
    ) -> Result<Option<Self>> {
        let Some(store) = stores::open(name, &dir, &setup)? else {
            return Ok(None);
        };
        let mut dice = Xorshift::new(0, "filling", 0);
        let filling = (0..(1_usize << 20) + load.value_bytes).map(|at| {
            if at / 50 % 2 == 0 {
                b'x'
            } else {
                dice.roll().to_le_bytes().first().copied().unwrap_or(0)
            }
        });
        Ok(Some(Self {
            name: name.to_owned(),
            dir,
            setup,
            filling: filling.collect(),
            load,
            store: Some(store),
            put_bytes: 0,
            written_before: written_bytes()?,
        }))
    }

    fn store(&self) -> Result<&dyn BenchStore> {
        Ok(self.store.as_deref().ok_or("the store is closed")?)
    }

    /// Closes the store, removes it and creates an empty one.
    fn renew(&mut self) -> Result<()> {
        self.store = None;
        std::fs::remove_dir_all(&self.dir)?;
        self.store = stores::open(&self.name, &self.dir, &self.setup)?;
        self.put_bytes = 0;
        self.written_before = written_bytes()?;
        Ok(())
    }

    /// Runs one workload and returns its measurements in JSON.
    pub(crate) fn measure(&mut self, name: &str) -> Result<String> {
        if name == "settle" {
            return self.settle();
        }
        if name.starts_with("fill") || name == "merge" {
            self.renew()?;
        }
        let (processor, reads) = (processor_seconds()?, read_calls()?);
        let started = Instant::now();
        let (operations, entries) = self.run(name)?;
        let seconds = started.elapsed().as_secs_f64();
        let processor = processor_seconds()? - processor;
        let reads = read_calls()? - reads;
        Ok(format!(
            "{{\"workload\": \"{name}\", \"operations\": {operations}, \"found\": {entries}, \
             \"seconds\": {seconds:.6}, \"processor_seconds\": {processor:.2}, \
             \"read_calls\": {reads}}}"
        ))
    }

    fn value(&self, dice: &mut Xorshift) -> &[u8] {
        let at = usize::try_from(dice.roll() & 0xf_ffff).unwrap_or(0);
        let end = at + self.load.value_bytes;
        self.filling.get(at..end).unwrap_or_default()
    }

    /// Distributes `count` operations over the threads; returns the sum of their results.
    fn share(
        &self,
        name: &str,
        count: u64,
        work: impl Fn(&dyn BenchStore, &mut Xorshift, u64) -> Result<u64> + Sync,
    ) -> Result<u64> {
        let store = self.store()?;
        let failed = Mutex::new(Ok(()));
        let sum = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..self.load.threads {
                let (work, failed, sum) = (&work, &failed, &sum);
                scope.spawn(move || {
                    let mut dice = Xorshift::new(self.load.seed, name, thread);
                    let step = usize::try_from(self.load.threads).unwrap_or(1);
                    let done: Result<u64> = (thread..count)
                        .step_by(step)
                        .try_fold(0, |sum, at| Ok(sum + work(store, &mut dice, at)?));
                    match (done, failed.lock()) {
                        (Ok(own), _) => drop(sum.fetch_add(own, Ordering::Relaxed)),
                        (Err(error), Ok(mut slot)) => *slot = Err(error),
                        (Err(_), Err(_)) => {}
                    }
                });
            }
        });
        failed.into_inner().map_err(|_| "a thread panicked")??;
        Ok(sum.into_inner())
    }

    fn put(&self, name: &str, count: u64, in_order: bool, durable: bool) -> Result<u64> {
        let keys = self.load.keys;
        self.share(name, count, |store, dice, at| {
            let at = if in_order { at } else { dice.roll() % keys };
            store.put(&key(at), self.value(dice), durable).map(|()| 0)
        })
    }

    /// Runs a workload; returns the number of operations and of entries found.
    fn run(&mut self, name: &str) -> Result<(u64, u64)> {
        let (keys, reads) = (self.load.keys, self.load.reads);
        let mut puts = 0;
        let mut operations = reads;
        let entries = match name {
            "fillseq" | "fillrandom" | "overwrite" => {
                (operations, puts) = (keys, keys);
                self.put(name, keys, name == "fillseq", false)?
            }
            "fillsync" => {
                puts = reads;
                self.put(name, reads, false, true)?
            }
            "readrandom" => self.share(name, reads, |store, dice, _| {
                let key = key(dice.roll() % keys);
                store.get(&key, &mut look).map(u64::from)
            })?,
            "readmissing" => self.share(name, reads, |store, dice, _| {
                store
                    .get(&missing_key(dice.roll() % keys), &mut |_| ())
                    .map(u64::from)
            })?,
            "seekrandom" => {
                operations = reads / 4;
                self.share(name, operations, |store, dice, _| {
                    store.walk(&key(dice.roll() % keys), SEEK_ENTRIES)
                })?
            }
            "mixed" => {
                puts = reads / 10;
                self.share(name, reads, |store, dice, at| {
                    let key = key(dice.roll() % keys);
                    if at % 10 == 0 {
                        return store.put(&key, self.value(dice), false).map(|()| 0);
                    }
                    store.get(&key, &mut look)?;
                    Ok(0)
                })?
            }
            "scan" => {
                let entries = self.store()?.walk(FIRST, u64::MAX)?;
                operations = entries;
                entries
            }
            "merge" => self.merge(name)?,
            _ => return Err(format!("unknown workload {name:?}").into()),
        };
        self.put_bytes += puts * (KEY_BYTES + self.load.value_bytes) as u64;
        Ok((operations, entries))
    }

    /// Increments counters and returns their sum, which must equal the number of increments.
    fn merge(&self, name: &str) -> Result<u64> {
        self.share(name, self.load.reads, |store, dice, _| {
            store.add(&key(dice.roll() % COUNTERS)).map(|()| 0)
        })?;
        let mut sum = 0;
        for counter in 0..COUNTERS {
            self.store()?
                .get(&key(counter), &mut |value| sum += store::number(value))?;
        }
        Ok(sum)
    }

    /// Waits until the store has finished its background writes; returns what it has written and
    /// its size.
    fn settle(&self) -> Result<String> {
        let started = Instant::now();
        self.store()?.flush()?;
        let mut last = written_bytes()?;
        let mut since = Instant::now();
        while since.elapsed() < SETTLED_AFTER {
            std::thread::sleep(LOOK_AGAIN);
            let now = written_bytes()?;
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        let seconds = since.duration_since(started).as_secs_f64();
        let live =
            self.store()?.walk(FIRST, u64::MAX)? * (KEY_BYTES + self.load.value_bytes) as u64;
        let written = last - self.written_before;
        let (put, data) = (self.put_bytes, data_bytes(&self.dir)?);
        let runs = self.store()?.runs()?.unwrap_or(0);
        Ok(format!(
            "{{\"workload\": \"settle\", \"seconds\": {seconds:.6}, \"written_bytes\": {written}, \
             \"put_bytes\": {put}, \"data_bytes\": {data}, \"live_bytes\": {live}, \
             \"runs\": {runs}}}"
        ))
    }
}
