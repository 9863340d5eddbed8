//! Copies of a collection that is written to meanwhile: in the end, documents, versions, times,
//! counts and entries of indexes are those of the other one, and nothing is recorded as changed.

use std::collections::BTreeMap;

use rillbase_collections::{
    ChangedCopy, CopiedDocument, DocumentRecord, Error, MoveStage, NativeIndex,
};
use rillbase_documents::id::key;
use rillbase_engine::vfs::SeededRandom;
use rillbase_query::bson::ValueRef;

use crate::index_builds::{delete, indexes, random_writes};
use crate::opened::{OpenedCollections, definition, write_of};

/// A collection that is copied, and what is still to be copied of it.
struct Moving {
    source: OpenedCollections,
    target: OpenedCollections,
    /// The key of the last document of the first pass; `None` when it is complete.
    after: Option<Vec<u8>>,
    /// That of the source.
    write_version: u64,
}

fn ready() -> Vec<NativeIndex> {
    let indexes = indexes().into_iter().map(|index| NativeIndex {
        is_ready: true,
        ..index
    });
    indexes.collect()
}

impl Moving {
    fn new(random: &mut SeededRandom) -> Self {
        let opened = || OpenedCollections::retaining(64 << 20);
        let (source, target) = (opened(), opened());
        let define = |opened: &OpenedCollections, indexes| {
            let definition = definition(1, indexes);
            opened.collections.define(1, definition).unwrap();
        };
        define(&source, ready());
        define(&target, indexes());
        let mut moving = Self {
            source,
            target,
            after: Some(Vec::new()),
            write_version: 1,
        };
        for _ in 0..10 {
            moving.write(random);
        }
        let mut moving_definition = definition(2, ready());
        moving_definition.move_stage = Some(MoveStage::Copying);
        let source = &moving.source.collections;
        source.define(1, moving_definition).unwrap();
        moving.write_version = 2;
        moving
    }

    fn write(&mut self, random: &mut SeededRandom) {
        self.source.clock.advance(random.below(3_000));
        let writes = random_writes(random, self.write_version);
        self.source.write(writes);
    }

    /// Stores the documents with these keys as they are now.
    fn copy(&self, keys: &[Vec<u8>]) {
        let stored = keys.iter().map(|key| {
            let collections = &self.source.collections;
            collections.get_or_tombstone(1, key, None).unwrap()
        });
        let stored: Vec<Option<DocumentRecord>> = stored.collect();
        let present = keys.iter().zip(&stored);
        let documents = present.filter_map(|(key, stored)| Some(copied(key, stored.as_ref()?)));
        let documents: Vec<CopiedDocument<'_>> = documents.collect();
        let collections = &self.target.collections;
        collections.store_copies((1, 1), &documents).unwrap();
    }

    /// Copies the next documents of the first pass.
    fn copy_next(&mut self, count: usize) {
        let Some(after) = self.after.take() else {
            return;
        };
        let all = self.source.records().into_iter().map(|(key, _)| key);
        let next: Vec<Vec<u8>> = all.filter(|key| *key > after).take(count).collect();
        self.copy(&next);
        self.after = next.last().cloned();
    }

    fn changed(&self, count: usize) -> Vec<ChangedCopy> {
        let (place, bounds) = ((1, self.write_version), (count, 1 << 20));
        let source = &self.source.collections;
        source.changed_documents(place, bounds).unwrap()
    }

    /// Copies some documents that were changed; others are written to before this is recorded.
    fn copy_changed(&mut self, count: usize, random: &mut SeededRandom) {
        let changed = self.changed(count);
        let documents = changed.iter().map(|copy| {
            let head = copy.document.as_ref().map(|document| document.head);
            CopiedDocument {
                key: &copy.key,
                version: copy.version,
                created_ms: head.map_or(0, |head| head.created_ms),
                updated_ms: head.map_or(0, |head| head.updated_ms),
                body: copy.document.as_ref().map(|document| &*document.body),
            }
        });
        let documents: Vec<CopiedDocument<'_>> = documents.collect();
        let target = &self.target.collections;
        target.store_copies((1, 1), &documents).unwrap();
        if random.one_in(2) {
            self.write(random);
        }
        let copied = changed.iter().map(|copy| (&*copy.key, copy.version));
        let copied: Vec<(&[u8], i64)> = copied.collect();
        let place = (1, self.write_version);
        let source = &self.source.collections;
        source.forget_changes(place, &copied).unwrap();
    }

    fn check(&self) {
        let (source, target) = (self.source.records(), self.target.records());
        assert_eq!(source.len(), target.len());
        for ((key, expected), (other, stored)) in source.iter().zip(&target) {
            assert_eq!((key, &expected.body), (other, &stored.body));
            let meta = |record: &DocumentRecord| {
                let head = record.head;
                (head.version, head.created_ms, head.updated_ms)
            };
            assert_eq!(meta(expected), meta(stored));
        }
        let counts = |opened: &OpenedCollections| opened.collections.counts(1, None).unwrap();
        assert_eq!(counts(&self.source), counts(&self.target));
        self.target.check_entries();
        assert_eq!(logged_versions(&self.target), versions(&target));
    }
}

fn versions(records: &[(Vec<u8>, DocumentRecord)]) -> BTreeMap<Vec<u8>, i64> {
    let versions = records
        .iter()
        .map(|(key, record)| (key.clone(), record.head.version));
    versions.collect()
}

/// The versions of documents to which the changes in the log lead.
fn logged_versions(opened: &OpenedCollections) -> BTreeMap<Vec<u8>, i64> {
    let mut versions = BTreeMap::new();
    let mut feed = opened.collections.feed(0).unwrap();
    while feed.position() < opened.db.snapshot().sequence() {
        for transaction in feed.read(1 << 20).unwrap() {
            for document in transaction.documents() {
                let document = document.unwrap();
                let key = document.key.to_vec();
                if document.head.is_tombstone {
                    versions.remove(&key);
                } else {
                    versions.insert(key, document.head.version);
                }
            }
        }
    }
    versions
}

fn copied<'a>(key: &'a [u8], record: &'a DocumentRecord) -> CopiedDocument<'a> {
    CopiedDocument {
        key,
        version: record.head.version,
        created_ms: record.head.created_ms,
        updated_ms: record.head.updated_ms,
        body: (!record.head.is_tombstone).then_some(&*record.body),
    }
}

fn run(seed: u64) {
    let mut random = SeededRandom::new(seed);
    let mut moving = Moving::new(&mut random);
    while moving.after.is_some() || !moving.changed(1).is_empty() {
        match random.below(8) {
            0 | 1 => moving.write(&mut random),
            2 if random.one_in(2) => moving.target = moving.target.reopened(),
            2 => moving.source = moving.source.reopened(),
            3..=5 => moving.copy_next(usize::try_from(random.below(8)).unwrap() + 1),
            _ => {
                let count = usize::try_from(random.below(20)).unwrap() + 1;
                moving.copy_changed(count, &mut random);
            }
        }
    }
    moving.check();
}

#[test]
fn copies_of_a_collection_that_is_written_to_become_equal_to_it() {
    (0..100).for_each(run);
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn many_copies_of_collections_that_are_written_to() {
    (1000..9000).for_each(run);
}

fn document_key(id: i32) -> Vec<u8> {
    key(ValueRef::Int32(id)).unwrap()
}

#[test]
fn a_version_that_is_not_newer_changes_nothing() {
    let mut random = SeededRandom::new(1);
    let moving = Moving::new(&mut random);
    let records = moving.source.records();
    let documents = records.iter().map(|(key, record)| copied(key, record));
    let documents: Vec<CopiedDocument<'_>> = documents.collect();
    let target = &moving.target.collections;
    assert_eq!(
        target.store_copies((1, 1), &documents).unwrap(),
        documents.len()
    );
    let sequence = moving.target.db.snapshot().sequence();
    assert_eq!(target.store_copies((1, 1), &documents).unwrap(), 0);
    assert_eq!(moving.target.db.snapshot().sequence(), sequence);
    let stale = target.store_copies((1, 2), &documents);
    assert!(matches!(stale, Err(Error::Stale { installed: 1 })));
}

#[test]
fn a_deleted_document_continues_after_its_version() {
    let opened = OpenedCollections::new();
    opened
        .collections
        .define(1, definition(1, ready()))
        .unwrap();
    let deleted = document_key(7);
    let copies = [CopiedDocument {
        key: &deleted,
        version: 41,
        created_ms: 1,
        updated_ms: 2,
        body: None,
    }];
    opened.collections.store_copies((1, 1), &copies).unwrap();
    opened.put_all(1, &[(7, "\"code\":1")]);
    let stored = opened.collections.get(1, &deleted, None).unwrap().unwrap();
    assert_eq!(stored.head.version, 42);
}

#[test]
fn a_sealed_collection_accepts_no_writes_and_forgets_its_changes_when_it_stays() {
    let opened = OpenedCollections::new();
    let define = |write_version, stage| {
        let mut definition = definition(write_version, Vec::new());
        definition.move_stage = stage;
        opened.collections.define(1, definition).unwrap();
    };
    let changed = |write_version| {
        let place = (1, write_version);
        let changed = opened.collections.changed_documents(place, (10, 1 << 20));
        changed.unwrap().len()
    };
    define(1, Some(MoveStage::Copying));
    opened.put_all(1, &[(7, "\"code\":1")]);
    assert_eq!(changed(1), 1);
    define(2, Some(MoveStage::Sealed));
    let delete = || write_of(&[1], 2, vec![(1, delete(7))], false);
    let refused = opened.write(vec![delete()]).remove(0);
    assert!(matches!(refused, Err(Error::Postponed)));
    assert_eq!(changed(2), 1);
    define(3, None);
    assert_eq!(changed(3), 0);
    opened.put_all(3, &[(7, "\"code\":2")]);
    assert_eq!(changed(3), 0);
}
