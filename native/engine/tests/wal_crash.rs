//! The write-ahead log with power losses, failing disks and flipped bits.
//!
//! The contents of the log after each step are kept in a history. After a crash, the log must have
//! one of these states, and none older than the last one that was acknowledged as durable.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rillbase_engine::vfs::{Fault, FaultVfs, SeededRandom, Vfs};
use rillbase_engine::wal::{Durability, Wal, WalOptions, truncate_damaged, verify};
use rillbase_engine::{Error, Result};

const DIR: &str = "/db/log";

fn options() -> WalOptions {
    WalOptions {
        segment_bytes: 1024,
        preallocate_bytes: 512,
        spare_segments: 2,
        block_file_bytes: 512,
    }
}

fn open(vfs: &FaultVfs) -> Result<Wal> {
    Wal::open(Arc::new(vfs.clone()), Path::new(DIR), &options())
}

/// The index of the first record, and the records with the blocks they refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    first: u64,
    records: Vec<(Vec<u8>, Vec<u8>)>,
}

impl State {
    fn empty() -> Self {
        let records = Vec::new();
        Self { first: 1, records }
    }

    fn of(wal: &Wal) -> Result<Self> {
        let indexes = wal.indexes();
        let mut records = Vec::new();
        for record in wal.read(indexes.clone())? {
            let record = record?;
            let mut block = Vec::new();
            for reference in &record.references {
                block.extend(wal.read_block(reference)?);
            }
            records.push((record.body, block));
        }
        assert_eq!(records.len() as u64, indexes.end - indexes.start);
        let first = indexes.start;
        Ok(Self { first, records })
    }

    fn next(&self) -> u64 {
        self.first + self.records.len() as u64
    }
}

/// The states of the log. Those from `durable` on are allowed after a power loss, those from `done`
/// on after a crash of the process.
struct History {
    states: Vec<State>,
    durable: usize,
    done: usize,
}

impl History {
    fn from(state: State) -> Self {
        Self {
            states: vec![state],
            durable: 0,
            done: 0,
        }
    }

    fn newest(&self) -> State {
        self.states.last().unwrap().clone()
    }

    fn push(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.newest();
        change(&mut state);
        self.states.push(state);
    }

    fn acknowledge(&mut self, durability: Durability) {
        self.done = self.states.len() - 1;
        if durability == Durability::Sync {
            self.durable = self.done;
        }
    }

    fn check(&self, found: &State, oldest: usize, context: &str) {
        let allowed = self.states.get(oldest..).unwrap();
        assert!(
            allowed.contains(found),
            "{context}: found {} records from {}, allowed {:?}",
            found.records.len(),
            found.first,
            allowed
                .iter()
                .map(|state| (state.first, state.records.len()))
                .collect::<Vec<_>>(),
        );
    }
}

fn bytes(random: &mut SeededRandom, most: usize) -> Vec<u8> {
    let fill = u8::try_from(random.below(256)).unwrap();
    vec![fill; random.up_to(most)]
}

fn durability(random: &mut SeededRandom) -> Durability {
    if random.one_in(2) {
        return Durability::Sync;
    }
    Durability::Buffered
}

/// Runs a random operation on the log, whose possible results are added to the history first.
fn step(wal: &Wal, history: &mut History, random: &mut SeededRandom) -> Result<()> {
    match random.below(10) {
        0..4 => {
            let body = bytes(random, 200);
            history.push(|state| state.records.push((body.clone(), Vec::new())));
            let durability = durability(random);
            wal.append(&body, durability)?;
            history.acknowledge(durability);
        }
        4 => {
            let batch: Vec<_> = (0..random.below(4)).map(|_| bytes(random, 300)).collect();
            for body in &batch {
                history.push(|state| state.records.push((body.clone(), Vec::new())));
            }
            let parts: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
            wal.write(&parts)?;
            history.acknowledge(Durability::Buffered);
        }
        5 | 6 => {
            let (body, block) = (bytes(random, 50), bytes(random, 400));
            let reference = wal.append_block(&block)?;
            history.push(|state| state.records.push((body.clone(), block)));
            let durability = durability(random);
            wal.append_referring(&body, &[reference], durability)?;
            history.acknowledge(durability);
        }
        7 => {
            let newest = history.newest();
            let index = newest.first + random.below(newest.records.len() as u64 + 1);
            history.push(|state| {
                let count = usize::try_from(index - state.first).unwrap();
                state.records.drain(..count);
                state.first = index;
            });
            wal.truncate_front(index)?;
            if index > newest.first {
                history.acknowledge(Durability::Sync);
            }
        }
        8 => {
            let newest = history.newest();
            let index = newest.next() - random.below(newest.records.len().min(5) as u64 + 1);
            history.push(|state| {
                let kept = usize::try_from(index - state.first).unwrap();
                state.records.truncate(kept);
            });
            wal.truncate_back(index)?;
            history.acknowledge(Durability::Sync);
        }
        _ => {
            wal.sync()?;
            history.acknowledge(Durability::Sync);
        }
    }
    Ok(())
}

/// Runs operations on the log until one fails or `steps` are done; occasionally reopens it.
fn work(
    vfs: &FaultVfs,
    history: &mut History,
    random: &mut SeededRandom,
    steps: u64,
) -> Result<()> {
    let mut wal = open(vfs)?;
    for _ in 0..steps {
        if random.one_in(12) {
            if random.one_in(2) {
                wal.close()?;
                history.acknowledge(Durability::Sync);
            }
            wal = open(vfs)?;
            // Everything that opening recovered is durable.
            history.acknowledge(Durability::Sync);
            assert!(
                State::of(&wal)? == history.newest(),
                "reopening lost something"
            );
        }
        step(&wal, history, random)?;
    }
    wal.close()
}

/// Runs a log three times, each time until a power loss or a crash of the process at a random
/// operation. Some logs begin with segments of version 1.
fn survives(seed: u64) {
    let mut random = SeededRandom::new(seed ^ 0x5EED);
    let old = (seed % 4 == 3).then(|| image_of_version_1(random.one_in(2)));
    let vfs = made_of(&old.unwrap_or_default(), seed);
    let begun = open(&vfs).and_then(|wal| State::of(&wal)).unwrap();
    let mut history = History::from(begun);
    for round in 0..3 {
        let stop = vfs.sites() + random.below(120);
        vfs.fail_at(stop, Fault::Stop);
        let worked = work(&vfs, &mut history, &mut random, 60);
        assert_eq!(worked.is_err(), vfs.is_stopped(), "seed {seed}: {worked:?}");
        let power = random.one_in(2);
        if power {
            vfs.crash();
        } else {
            vfs.kill();
        }
        let wal = open(&vfs).unwrap_or_else(|error| panic!("seed {seed} life {round}: {error}"));
        let found = State::of(&wal).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let oldest = if power { history.durable } else { history.done };
        history.check(
            &found,
            oldest,
            &format!("seed {seed}, life {round}, power {power}"),
        );
        history = History::from(found);
        verify(&vfs, Path::new(DIR)).unwrap();
    }
}

#[test]
fn acknowledged_records_survive_and_no_record_is_partial() {
    (0..600).for_each(survives);
}

#[test]
#[ignore = "takes a minute: the long suite runs it"]
fn acknowledged_writes_survive_many_more_crashes() {
    (1_000..31_000).for_each(survives);
}

/// Injects a fault at one I/O operation of a fixed workload.
fn fails_soundly(seed: u64, site: u64, fault: Fault, power: bool) -> bool {
    let context = format!("seed {seed}, {fault:?} at {site}, power {power}");
    let vfs = FaultVfs::new(seed);
    let mut random = SeededRandom::new(seed);
    let mut history = History::from(State::empty());
    vfs.fail_at(site, fault);
    let worked = work(&vfs, &mut history, &mut random, 40);
    let reached = vfs.sites() > site;
    if let Err(error) = worked {
        let expected = ["io_error", "poisoned", "storage_full"];
        assert!(expected.contains(&error.code()), "{context}: {error}");
    } else {
        // Only background work may fail silently, and there is none.
        assert!(
            !reached || fault == Fault::NoSpace,
            "{context}: the error did not surface"
        );
    }
    vfs.clear();
    if power {
        vfs.crash();
    }
    let wal = open(&vfs).unwrap_or_else(|error| panic!("{context}: {error}"));
    let oldest = if power { history.durable } else { history.done };
    history.check(&State::of(&wal).unwrap(), oldest, &context);
    wal.append(b"goes on", Durability::Sync).unwrap();
    reached
}

#[test]
fn a_fault_at_each_io_operation_surfaces_and_leaves_a_sound_log() {
    for seed in 0..2 {
        for fault in [Fault::Error, Fault::NoSpace] {
            for power in [false, true] {
                let mut site = 0;
                while fails_soundly(seed, site, fault, power) {
                    site += 1;
                }
                assert!(site > 50, "only {site} sites");
            }
        }
    }
}

#[test]
fn after_a_fault_an_open_log_only_reports_that_it_is_poisoned() {
    let vfs = FaultVfs::new(7);
    let wal = open(&vfs).unwrap();
    wal.append(b"first", Durability::Sync).unwrap();
    vfs.fail_at(vfs.sites(), Fault::Error);
    let error = wal.append(b"second", Durability::Buffered).unwrap_err();
    assert_eq!(error.code(), "io_error");
    vfs.clear();
    let error = wal.append(b"third", Durability::Sync).unwrap_err();
    assert_eq!(error.code(), "poisoned");
    assert!(error.to_string().contains("Input/output"), "{error}");
    assert_eq!(
        wal.read(1..2).unwrap().count(),
        1,
        "what was there can be read"
    );
}

#[test]
fn a_full_log_rejects_records_and_continues_without_them_once_there_is_space() {
    for power in [false, true] {
        let vfs = FaultVfs::new(8);
        let wal = open(&vfs).unwrap();
        wal.append(b"first", Durability::Sync).unwrap();
        vfs.fail_at(vfs.sites(), Fault::NoSpace);
        let refused = wal.append(b"refused", Durability::Sync).unwrap_err();
        assert_eq!(refused.code(), "storage_full");
        let refused = wal.append(b"refused too", Durability::Buffered);
        assert_eq!(refused.unwrap_err().code(), "storage_full");
        assert_eq!(wal.resume(b"too early").unwrap_err().code(), "storage_full");
        assert_eq!(wal.read(1..9).unwrap().count(), 1, "reads go on");

        vfs.clear();
        wal.resume(b"resumed").unwrap();
        wal.append(b"second", Durability::Sync).unwrap();
        drop(wal);
        if power {
            vfs.crash();
        }
        let wal = open(&vfs).unwrap();
        let records = wal.read(wal.indexes()).unwrap();
        let bodies: Vec<_> = records.map(|record| record.unwrap().body).collect();
        assert_eq!(bodies, [&b"first"[..], b"resumed", b"second"]);
    }
}

/// A log with several segments, dropped records and blocks.
fn sample(close: bool) -> (FaultVfs, State) {
    let vfs = FaultVfs::new(11);
    let wal = open(&vfs).unwrap();
    for number in 0..20_u8 {
        let block = wal.append_block(&[number; 40]).unwrap();
        let body = vec![number; 100 + usize::from(number)];
        wal.append_referring(&body, &[block], Durability::Sync)
            .unwrap();
        wal.append(&[number; 30], Durability::Buffered).unwrap();
    }
    wal.truncate_front(15).unwrap();
    wal.truncate_back(39).unwrap();
    wal.append(b"last", Durability::Sync).unwrap();
    let state = State::of(&wal).unwrap();
    if close {
        wal.close().unwrap();
    }
    (vfs, state)
}

/// Checks the allowed results of opening a damaged log: all of it, a reported truncation of its
/// end, or an error that names the damaged file.
fn check_damaged(vfs: &FaultVfs, original: &State, damaged: &Path, close: bool, context: &str) {
    let names_it = |error: &Error| match error {
        Error::Corruption { file, .. } => assert_eq!(file, damaged, "{context}: {error}"),
        other => panic!("{context}: {other}"),
    };
    if let Err(error) = verify(vfs, Path::new(DIR)) {
        names_it(&error);
        return check_truncated(vfs, original, context);
    }
    let wal = match open(vfs) {
        Ok(wal) => wal,
        Err(error) => return names_it(&error),
    };
    let found = match State::of(&wal) {
        Ok(found) => found,
        Err(error) => return names_it(&error),
    };
    assert_eq!(found.first, original.first, "{context}");
    assert!(original.records.starts_with(&found.records), "{context}");
    if found != *original {
        assert!(!close, "{context}: everything was known to be synced");
        let cut = wal.recovery().cut.clone().unwrap();
        assert_eq!(cut.file, damaged, "{context}");
        // Each record states that those before it are synced, so only the last one may be lost.
        assert_eq!(found.records.len() + 1, original.records.len(), "{context}");
    }
}

/// Checks that a damaged log can be truncated, and then opened: its records are those that it had
/// before, up to some index, and a copy of the damaged file remains.
fn check_truncated(vfs: &FaultVfs, original: &State, context: &str) {
    let Some(truncated) = truncate_damaged(vfs, Path::new(DIR)).unwrap() else {
        // The damage is where no record depends on it.
        return assert_eq!(
            &State::of(&open(vfs).unwrap()).unwrap(),
            original,
            "{context}"
        );
    };
    for copy in &truncated.copies {
        assert!(vfs.open_read(copy).unwrap().len().is_ok(), "{context}");
    }
    assert_eq!(
        truncate_damaged(vfs, Path::new(DIR)).unwrap(),
        None,
        "{context}"
    );
    let wal = open(vfs).unwrap();
    let reopened = State::of(&wal).unwrap();
    assert_eq!(
        truncated.records,
        reopened.records.len() as u64,
        "{context}"
    );
    // The sample has truncated its end there and appended another record.
    let last = original.next() - 1;
    for (index, record) in (reopened.first..last).zip(&reopened.records) {
        if let Some(offset) = index.checked_sub(original.first) {
            let expected = &original.records[usize::try_from(offset).unwrap()];
            assert_eq!(record, expected, "{context}: record {index}");
        }
    }
    let next = wal.append(b"continued", Durability::Sync).unwrap();
    assert_eq!(next, reopened.next(), "{context}");
    drop(wal);
    let continued = State::of(&open(vfs).unwrap()).unwrap();
    assert_eq!(continued.next(), next + 1, "{context}");
}

/// Files with their bytes.
type Image = Vec<(PathBuf, Vec<u8>)>;

/// The files of a log, from which it can be recreated.
fn image_of(vfs: &FaultVfs) -> Image {
    let read = |(path, size): (PathBuf, u64)| {
        let mut bytes = vec![0; usize::try_from(size).unwrap()];
        let file = vfs.open_read(&path).unwrap();
        file.read_exact_at(0, &mut bytes).unwrap();
        (path, bytes)
    };
    vfs.files().into_iter().map(read).collect()
}

/// A log of version 1 with the same operations as `sample`.
fn image_of_version_1(close: bool) -> Image {
    let name = if close { "log_closed" } else { "log_open" };
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/version_1")
        .join(name);
    let files = std::fs::read_dir(dir).unwrap().map(|file| {
        let file = file.unwrap();
        let bytes = std::fs::read(file.path()).unwrap();
        (Path::new(DIR).join(file.file_name()), bytes)
    });
    let mut image: Vec<_> = files.collect();
    image.sort();
    image
}

/// A disk with these files, durably.
fn made_of(image: &[(PathBuf, Vec<u8>)], seed: u64) -> FaultVfs {
    let vfs = FaultVfs::new(seed);
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    for (path, bytes) in image {
        let mut file = vfs.create(path).unwrap();
        file.append(bytes).unwrap();
        file.sync().unwrap();
    }
    for dir in Path::new(DIR).ancestors() {
        vfs.sync_dir(dir).unwrap();
    }
    vfs
}

/// The files of a log, and their contents.
struct Sample {
    image: Image,
    original: State,
    close: bool,
    /// The distance between flipped bits, in bytes.
    step: usize,
}

/// Logs of both versions, closed and not.
fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for close in [true, false] {
        let (vfs, original) = sample(close);
        for (image, step) in [(image_of(&vfs), 1), (image_of_version_1(close), 3)] {
            samples.push(Sample {
                image,
                step,
                original: original.clone(),
                close,
            });
        }
    }
    samples
}

#[test]
fn logs_of_both_versions_hold_the_same() {
    for sample in samples() {
        let (image, original, close) = (&sample.image, &sample.original, sample.close);
        let wal = open(&made_of(image, 1)).unwrap();
        assert_eq!(&State::of(&wal).unwrap(), original);
        assert_eq!(wal.recovery().clean, close);
    }
}

#[test]
fn a_flipped_bit_anywhere_is_named_or_harmless() {
    for sample in samples() {
        let (image, original, close) = (&sample.image, &sample.original, sample.close);
        for (path, bytes) in image {
            for offset in (0..bytes.len()).step_by(sample.step) {
                let vfs = made_of(image, 1);
                vfs.damage(path, |bytes| bytes[offset] ^= 1 << (offset % 8))
                    .unwrap();
                let context = format!("{} at {offset}, closed {close}", path.display());
                check_damaged(&vfs, original, path, close, &context);
            }
        }
    }
}

#[test]
fn a_log_is_truncated_at_the_first_damaged_record() {
    let vfs = FaultVfs::new(1);
    let wal = open(&vfs).unwrap();
    let bodies: Vec<Vec<u8>> = (0..40_u8).map(|number| vec![number + 1; 90]).collect();
    for body in &bodies {
        wal.append(body, Durability::Sync).unwrap();
    }
    wal.close().unwrap();
    let image = image_of(&vfs);
    for (number, body) in bodies.iter().enumerate() {
        let contains = |bytes: &[u8]| bytes.windows(body.len()).position(|part| part == body);
        let (path, offset) = image
            .iter()
            .find_map(|(path, bytes)| contains(bytes).map(|offset| (path, offset)))
            .unwrap();
        let vfs = made_of(&image, 1);
        vfs.damage(path, |bytes| bytes[offset + 45] ^= 1).unwrap();
        let truncated = truncate_damaged(&vfs, Path::new(DIR)).unwrap().unwrap();
        assert_eq!(&truncated.damage.file, path);
        assert!(truncated.damage.offset <= offset as u64);
        // The mark of the clean close is a record.
        assert_eq!(truncated.damage.records, (bodies.len() - number) as u64);
        let records = State::of(&open(&vfs).unwrap()).unwrap().records;
        let contents: Vec<_> = records.into_iter().map(|(body, _)| body).collect();
        assert_eq!(contents, bodies[..number], "record {number}");
    }
}

#[test]
fn a_segment_or_block_file_that_is_short_or_missing_is_named() {
    for sample in samples() {
        let (image, original, close) = (&sample.image, &sample.original, sample.close);
        let newest = image
            .iter()
            .rposition(|(path, _)| path.extension().unwrap() == "wal");
        for (number, (path, bytes)) in image.iter().enumerate() {
            for length in (0..bytes.len()).step_by(7) {
                let vfs = made_of(image, 1);
                vfs.damage(path, |bytes| bytes.truncate(length)).unwrap();
                let context = format!("{} to {length}, closed {close}", path.display());
                check_shortened(&vfs, original, path, Some(number) == newest, &context);
            }
            let vfs = made_of(image, 1);
            vfs.remove(path).unwrap();
            check_shortened(&vfs, original, path, Some(number) == newest, "missing");
        }
    }
}

/// A log whose newest segment ends early looks like one without its last writes; for any other
/// file, the damage is detected.
fn check_shortened(vfs: &FaultVfs, original: &State, damaged: &Path, newest: bool, context: &str) {
    match open(vfs).and_then(|wal| State::of(&wal)) {
        Ok(found) => assert!(newest || found == *original, "{context}"),
        Err(Error::Corruption { file, .. }) => assert_eq!(file, damaged, "{context}"),
        Err(other) => panic!("{context}: {other}"),
    }
}
