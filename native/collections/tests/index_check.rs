//! Checks of indexes find what is wrong, and nothing while collections are written.

use rillbase_collections::{CandidatePosition, CheckedPart, EntryFault, NativeIndex};
use rillbase_documents::id::key;
use rillbase_engine::vfs::SeededRandom;
use rillbase_engine::{Durability, WriteBatch};
use rillbase_query::bson::ValueRef;

use crate::index_builds::{indexes, random_writes};
use crate::opened::{OpenedCollections, definition};

fn opened() -> OpenedCollections {
    let opened = OpenedCollections::new();
    let ready = indexes().into_iter().map(|index| NativeIndex {
        is_ready: true,
        ..index
    });
    let definition = definition(1, ready.collect());
    opened.collections.define(1, definition).unwrap();
    opened
}

/// All faults, read in parts of a size, and how much was examined.
fn check(opened: &OpenedCollections, most: usize) -> (Vec<EntryFault>, usize) {
    let (mut faults, mut examined) = (Vec::new(), 0);
    for index in 0..=6 {
        let mut after: Option<CandidatePosition> = None;
        loop {
            let part = part(opened, index, after.take(), most);
            assert!(part.examined <= most);
            faults.extend(part.faults);
            examined += part.examined;
            after = part.after;
            if after.is_none() {
                break;
            }
        }
    }
    (faults, examined)
}

fn part(
    opened: &OpenedCollections,
    index: u32,
    after: Option<CandidatePosition>,
    most: usize,
) -> CheckedPart {
    let collections = &opened.collections;
    let checked = if index == 0 {
        let after = after.as_ref().map(|after| &*after.document);
        collections.check_documents((1, 1), after, most)
    } else {
        collections.check_entries((1, 1), index, after, most)
    };
    checked.unwrap()
}

#[test]
fn nothing_is_wrong_after_any_writes() {
    let mut random = SeededRandom::new(1);
    let mut opened = opened();
    for round in 0..40 {
        opened.write(random_writes(&mut random, 1));
        if round % 10 == 9 {
            opened = opened.reopened();
        }
        let (faults, examined) = check(&opened, 1 + round % 7);
        assert_eq!(faults, []);
        assert_eq!(check(&opened, 10_000), (faults, examined));
        assert!(examined > 0);
    }
}

#[test]
fn a_missing_entry_and_one_of_no_document_are_reported() {
    let opened = opened();
    opened.put_all(
        1,
        &[
            (1, "\"code\":1,\"shop\":2,\"tags\":[3,4]"),
            (2, "\"code\":5"),
        ],
    );
    let entries = opened.db.keyspace("collections").unwrap();
    let mut keys = Vec::new();
    let mut scan = opened.db.scan_prefix(&entries, &[], None).unwrap();
    scan.first().unwrap();
    while scan.is_valid() {
        keys.push((scan.key().to_vec(), scan.value().to_vec()));
        scan.advance().unwrap();
    }
    let documents = [1, 2].map(|id| key(ValueRef::Int32(id)).unwrap());
    let index_of = |key: &[u8]| u32::from_be_bytes(key[8..12].try_into().unwrap());
    for (key, value) in keys.iter().filter(|(key, _)| index_of(key) != 0) {
        let mut batch = WriteBatch::new();
        batch.delete(&entries, key);
        opened.db.write(batch, Durability::Buffered).unwrap();
        let (faults, _) = check(&opened, 10);
        assert_eq!(faults.len(), 1, "{key:?}");
        assert_eq!(faults[0].index, index_of(key));
        assert!(documents.contains(&faults[0].document));
        let mut batch = WriteBatch::new();
        batch.put(&entries, key, value);
        opened.db.write(batch, Durability::Buffered).unwrap();
    }
    assert_eq!(check(&opened, 10).0, []);
    let (document, _) = keys
        .iter()
        .find(|(key, _)| key.ends_with(&documents[1]))
        .unwrap();
    let mut batch = WriteBatch::new();
    batch.delete(&entries, document);
    opened.db.write(batch, Durability::Buffered).unwrap();
    let (faults, _) = check(&opened, 10);
    assert!(!faults.is_empty());
    assert!(faults.iter().all(|fault| fault.document == documents[1]));
}
