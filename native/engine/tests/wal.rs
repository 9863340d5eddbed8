//! The write-ahead log in everyday use.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use rillbase_engine::vfs::{Fault, FaultVfs, MemoryVfs, Vfs};
use rillbase_engine::wal::{Durability, Wal, WalOptions, verify};

const DIR: &str = "/log";

fn small() -> WalOptions {
    WalOptions {
        segment_bytes: 1024,
        preallocate_bytes: 512,
        spare_segments: 2,
        block_file_bytes: 256,
    }
}

fn open(vfs: &MemoryVfs) -> Wal {
    Wal::open(Arc::new(vfs.clone()), Path::new(DIR), &small()).unwrap()
}

fn bodies(wal: &Wal) -> Vec<Vec<u8>> {
    let records = wal.read(wal.indexes()).unwrap();
    records.map(|record| record.unwrap().body).collect()
}

fn files(vfs: &MemoryVfs, kind: &str) -> usize {
    let names = vfs.list(Path::new(DIR)).unwrap();
    names.iter().filter(|name| name.ends_with(kind)).count()
}

#[test]
fn records_are_recovered_in_order_with_or_without_a_close() {
    for closed in [true, false] {
        let vfs = MemoryVfs::new();
        let wal = open(&vfs);
        assert_eq!(wal.append(b"one", Durability::Sync).unwrap(), 1);
        assert_eq!(wal.append(b"", Durability::Buffered).unwrap(), 2);
        let written = wal.write(&[b"three", b"four"]).unwrap();
        assert_eq!(written.indexes, 3..5);
        wal.sync_through(&written).unwrap();
        if closed {
            wal.close().unwrap();
        }
        let wal = open(&vfs);
        assert_eq!(wal.recovery().clean, closed);
        assert_eq!(wal.recovery().cut, None);
        assert_eq!(wal.indexes(), 1..5);
        assert_eq!(bodies(&wal), [&b"one"[..], b"", b"three", b"four"]);
        assert_eq!(wal.append(b"five", Durability::Sync).unwrap(), 5);
    }
}

#[test]
fn a_range_is_read_across_segments() {
    let vfs = MemoryVfs::new();
    let wal = open(&vfs);
    for number in 1..=200_u64 {
        let body = vec![b'x'; usize::try_from(number).unwrap()];
        assert_eq!(wal.append(&body, Durability::Buffered).unwrap(), number);
    }
    assert!(files(&vfs, ".wal") > 10);
    let part: Vec<_> = wal.read(90..110).unwrap().map(Result::unwrap).collect();
    assert_eq!(part.len(), 20);
    for (record, index) in part.iter().zip(90..) {
        assert_eq!(record.index, index);
        assert_eq!(record.body.len() as u64, index);
    }
    assert_eq!(wal.read(190..1000).unwrap().count(), 11);
    assert_eq!(wal.read(500..1000).unwrap().count(), 0);
}

#[test]
fn a_record_may_be_larger_than_a_segment() {
    let vfs = MemoryVfs::new();
    let wal = open(&vfs);
    let large = vec![7; 100_000];
    wal.append(b"before", Durability::Sync).unwrap();
    wal.append(&large, Durability::Sync).unwrap();
    wal.append(b"after", Durability::Sync).unwrap();
    drop(wal);
    let expected: [&[u8]; 3] = [b"before", &large, b"after"];
    assert_eq!(bodies(&open(&vfs)), expected);
}

#[test]
fn dropped_records_stay_dropped_and_their_segments_are_used_again() {
    let vfs = MemoryVfs::new();
    let wal = open(&vfs);
    for round in 0..20_u64 {
        for _ in 0..100 {
            wal.append(&[1; 50], Durability::Buffered).unwrap();
        }
        wal.truncate_front(round * 100 + 90).unwrap();
        assert!(files(&vfs, ".wal") < 16, "{} files", files(&vfs, ".wal"));
    }
    let kept = wal.indexes();
    assert_eq!(kept, 1990..2001);
    assert_eq!(wal.read(1989..2001).unwrap_err().code(), "invalid_argument");
    drop(wal);
    let wal = open(&vfs);
    assert_eq!(wal.indexes(), kept);
    assert_eq!(bodies(&wal).len(), 11);
}

#[test]
fn the_end_may_be_dropped_and_rewritten() {
    let vfs = MemoryVfs::new();
    let wal = open(&vfs);
    for body in ["a", "b", "c", "d"] {
        wal.append(body.as_bytes(), Durability::Sync).unwrap();
    }
    wal.truncate_back(3).unwrap();
    assert_eq!(wal.append(b"C", Durability::Sync).unwrap(), 3);
    assert_eq!(bodies(&wal), [b"a", b"b", b"C"]);
    assert_eq!(wal.truncate_back(5).unwrap_err().code(), "invalid_argument");
    wal.truncate_back(4).unwrap();
    drop(wal);
    assert_eq!(bodies(&open(&vfs)), [b"a", b"b", b"C"]);
}

#[test]
fn blocks_live_as_long_as_a_record_refers_to_them() {
    let vfs = MemoryVfs::new();
    let wal = open(&vfs);
    let mut references = Vec::new();
    for number in 0..10_u8 {
        let block = wal.append_block(&[number; 100]).unwrap();
        let body = [number];
        wal.append_referring(&body, &[block], Durability::Sync)
            .unwrap();
        references.push(block);
    }
    drop(wal);
    let wal = open(&vfs);
    for (record, block) in wal.read(wal.indexes()).unwrap().zip(&references) {
        let record = record.unwrap();
        assert_eq!(record.references, [*block]);
        assert_eq!(wal.read_block(block).unwrap(), vec![record.body[0]; 100]);
    }
    assert_eq!(verify(&vfs, Path::new(DIR)).unwrap().blocks, 10);
    wal.truncate_front(9).unwrap();
    assert_eq!(files(&vfs, ".blk"), 2, "three blocks fill a file");
    assert!(wal.read_block(&references[9]).is_ok());
    assert_eq!(
        wal.read_block(&references[0]).unwrap_err().code(),
        "corruption"
    );
}

#[test]
fn a_checkpoint_is_a_log_of_its_own() {
    let vfs = MemoryVfs::new();
    let wal = open(&vfs);
    for number in 0..100_u8 {
        let block = wal.append_block(&[number; 30]).unwrap();
        wal.append_referring(&[number], &[block], Durability::Buffered)
            .unwrap();
    }
    let copy = Path::new("/copy");
    vfs.create_dir_all(copy).unwrap();
    wal.checkpoint(copy).unwrap();
    wal.append(b"later", Durability::Sync).unwrap();
    wal.truncate_front(101).unwrap();
    for number in 0..100_u8 {
        wal.append(&[number; 90], Durability::Buffered).unwrap();
    }
    let checked = verify(&vfs, copy).unwrap();
    assert_eq!((checked.records, checked.blocks), (100, 100));
    let wal = Wal::open(Arc::new(vfs), copy, &small()).unwrap();
    assert_eq!(wal.indexes(), 1..101);
}

#[test]
fn many_threads_share_syncs_and_each_record_is_there_once() {
    let vfs = FaultVfs::new(1);
    let wal = Arc::new(Wal::open(Arc::new(vfs.clone()), Path::new(DIR), &small()).unwrap());
    let before = vfs.sites();
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let wal = &wal;
            scope.spawn(move || {
                for number in 0..50_u8 {
                    wal.append(&[thread, number], Durability::Sync).unwrap();
                }
            });
        }
    });
    assert!(vfs.sites() - before < 400 * 4);
    let mut seen: Vec<_> = wal
        .read(1..401)
        .unwrap()
        .map(|record| record.unwrap().body)
        .collect();
    let in_order: Vec<_> = seen
        .iter()
        .filter(|body| body[0] == 3)
        .map(|body| body[1])
        .collect();
    assert!(in_order.is_sorted(), "one thread's records stay in order");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 400);
}

#[test]
fn a_failed_sync_poisons_the_log_with_a_reason() {
    let vfs = FaultVfs::new(1);
    let wal = Wal::open(Arc::new(vfs.clone()), Path::new(DIR), &small()).unwrap();
    wal.append(b"kept", Durability::Sync).unwrap();
    let written = wal.write(&[b"lost"]).unwrap();
    vfs.fail_at(vfs.sites(), Fault::Error);
    assert_eq!(wal.sync_through(&written).unwrap_err().code(), "io_error");
    assert!(wal.poisoned().unwrap().contains("sync"));
    for _ in 0..2 {
        assert_eq!(wal.sync_through(&written).unwrap_err().code(), "poisoned");
        assert_eq!(
            wal.append(b"more", Durability::Buffered)
                .unwrap_err()
                .code(),
            "poisoned"
        );
    }
    vfs.crash();
    let wal = Wal::open(Arc::new(vfs), Path::new(DIR), &small()).unwrap();
    assert_eq!(
        wal.read(1..2).unwrap().next().unwrap().unwrap().body,
        b"kept"
    );
}

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<u8>, bool),
    Batch(Vec<Vec<u8>>),
    Refer(Vec<u8>),
    Front(usize),
    Back(usize),
    Reopen(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let body = || prop::collection::vec(any::<u8>(), 0..300);
    let step = prop_oneof![
        6 => (body(), any::<bool>()).prop_map(|(body, sync)| Step::Append(body, sync)),
        2 => prop::collection::vec(body(), 0..5).prop_map(Step::Batch),
        2 => body().prop_map(Step::Refer),
        1 => (0..50_usize).prop_map(Step::Front),
        1 => (0..50_usize).prop_map(Step::Back),
        1 => any::<bool>().prop_map(Step::Reopen),
    ];
    prop::collection::vec(step, 0..60)
}

/// The model of a log: a list with appends at the end and drops at both ends.
#[derive(Default)]
struct Model {
    first: usize,
    records: Vec<Vec<u8>>,
}

fn check(wal: &Wal, model: &Model) {
    let indexes = wal.indexes();
    assert_eq!(indexes.start, model.first as u64 + 1);
    assert_eq!(indexes.end, (model.first + model.records.len()) as u64 + 1);
    assert_eq!(bodies(wal), model.records);
    let middle = indexes.start + (indexes.end - indexes.start) / 2;
    let after: Vec<_> = wal
        .read(middle..indexes.end)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        after.first().map(|record| record.index),
        (middle < indexes.end).then_some(middle)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_is_a_list_that_survives_reopening(steps in steps()) {
        let vfs = MemoryVfs::new();
        let mut wal = open(&vfs);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Append(body, sync) => {
                    let durability = if sync { Durability::Sync } else { Durability::Buffered };
                    wal.append(&body, durability).unwrap();
                    model.records.push(body);
                }
                Step::Batch(batch) => {
                    let parts: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
                    wal.write(&parts).unwrap();
                    model.records.extend(batch);
                }
                Step::Refer(body) => {
                    let block = wal.append_block(&body).unwrap();
                    wal.append_referring(&body, &[block], Durability::Buffered).unwrap();
                    prop_assert_eq!(wal.read_block(&block).unwrap(), &body[..]);
                    model.records.push(body);
                }
                Step::Front(count) => {
                    let count = count.min(model.records.len());
                    wal.truncate_front((model.first + count) as u64 + 1).unwrap();
                    model.records.drain(..count);
                    model.first += count;
                }
                Step::Back(count) => {
                    let kept = model.records.len().saturating_sub(count);
                    wal.truncate_back((model.first + kept) as u64 + 1).unwrap();
                    model.records.truncate(kept);
                }
                Step::Reopen(close) => {
                    if close { wal.close().unwrap(); } else { drop(wal); }
                    verify(&vfs, Path::new(DIR)).unwrap();
                    wal = open(&vfs);
                    prop_assert_eq!(wal.recovery().clean, close);
                    prop_assert_eq!(&wal.recovery().cut, &None);
                }
            }
            check(&wal, &model);
        }
    }
}
