//! Index builds: with writes between their parts, the entries of an index become those that its
//! documents have.

use std::collections::BTreeSet;

use rillbase_collections::{
    BuiltPart, CollectionWrite, DocumentRecord, Error, IndexBuild, IndexTechnique, NativeIndex,
    Result, ScanPlan,
};
use rillbase_documents::definition::CollectionDefinition;
use rillbase_documents::entry::{IndexDefinition, fields};
use rillbase_documents::id::key;
use rillbase_documents::operation::DocumentOperation;
use rillbase_engine::vfs::SeededRandom;
use rillbase_query::bson::{Document, Value, ValueRef};
use rillbase_query::ejson::parse_document;

use crate::opened::{OpenedCollections, definition, index, index_by_time, write_of};

const IDS: u64 = 40;
const CODES: u64 = 80;
/// The number of an index with lists.
const LIST_OF_SHOP: u32 = 5;

/// Indexes that are being built: the first one is unique.
pub(crate) fn indexes() -> Vec<NativeIndex> {
    let indexes = [
        index(1, "by code", &[("code", 1)], true),
        index(2, "by shop", &[("shop", 1), ("price", -1)], false),
        index(3, "by tag", &[("tags", 1)], false),
        index_by_time(4, "newest of tag", &[("tags", 1)], IndexTechnique::Lazy),
        index_by_time(
            LIST_OF_SHOP,
            "list of shop",
            &[("shop", 1)],
            IndexTechnique::Eager,
        ),
        index_by_time(6, "embedded", &[("price", 1)], IndexTechnique::Embedded),
    ];
    let unready = indexes.map(|index| NativeIndex {
        is_ready: false,
        ..index
    });
    unready.into()
}

fn value(id: u64) -> Value {
    Value::Int32(i32::try_from(id).unwrap())
}

fn put(id: u64, body: &str) -> DocumentOperation {
    let document = parse_document(format!("{{\"_id\":{id},{body}}}").as_bytes()).unwrap();
    DocumentOperation::replace(value(id), document.as_ref(), true).unwrap()
}

pub(crate) fn delete(id: u64) -> DocumentOperation {
    DocumentOperation::delete(value(id)).unwrap()
}

fn random_body(random: &mut SeededRandom) -> String {
    let tags: Vec<String> = (0..random.below(4))
        .map(|_| random.below(5).to_string())
        .collect();
    let (shop, price, code) = (random.below(3), random.below(9), random.below(CODES));
    let tags = tags.join(",");
    format!("\"code\":{code},\"shop\":{shop},\"price\":{price},\"tags\":[{tags}]")
}

/// Replaces and deletes a few documents, in some writes.
pub(crate) fn random_writes(random: &mut SeededRandom, version: u64) -> Vec<CollectionWrite> {
    let writes = (0..=random.below(2)).map(|_| {
        let operations = (0..=random.below(3)).map(|_| {
            let id = random.below(IDS);
            let operation = if random.one_in(3) {
                delete(id)
            } else {
                put(id, &random_body(random))
            };
            (1, operation)
        });
        write_of(&[1], version, operations.collect(), false)
    });
    writes.collect()
}

impl OpenedCollections {
    fn new_with(documents: &[(u64, &str)]) -> Self {
        let opened = Self::new();
        let definition = definition(1, Vec::new());
        opened.collections.define(1, definition).unwrap();
        opened.put_all(1, documents);
        opened
    }

    pub(crate) fn put_all(&self, version: u64, documents: &[(u64, &str)]) {
        let operations = documents.iter().map(|(id, body)| (1, put(*id, body)));
        let write = write_of(&[1], version, operations.collect(), true);
        self.write(vec![write]).remove(0).unwrap().unwrap();
    }

    fn define_indexes(&self) {
        self.collections
            .define(1, definition(2, indexes()))
            .unwrap();
    }

    fn build(&self, index: u32, after: Option<Vec<u8>>, documents: usize) -> Result<BuiltPart> {
        self.collections.build_index(&IndexBuild {
            collection: 1,
            write_version: 2,
            index,
            after,
            documents,
        })
    }

    pub(crate) fn records(&self) -> Vec<(Vec<u8>, DocumentRecord)> {
        let snapshot = self.db.snapshot();
        let plan = ScanPlan::everything();
        let scan = self.collections.candidates(1, &plan, None, &snapshot);
        let records = scan.unwrap().map(|candidate| {
            let candidate = candidate.unwrap();
            (candidate.key, candidate.document)
        });
        records.collect()
    }

    /// The stored entries of the indexes: index, entry, key of the document.
    fn entries(&self) -> BTreeSet<(u32, Vec<u8>, Vec<u8>)> {
        let snapshot = self.db.snapshot();
        let mut entries = BTreeSet::new();
        for index in 1..=5 {
            let plan = ScanPlan {
                index,
                ..ScanPlan::everything()
            };
            let scan = self.collections.candidates(1, &plan, None, &snapshot);
            for candidate in scan.unwrap() {
                let candidate = candidate.unwrap();
                entries.insert((index, candidate.entry.unwrap(), candidate.key));
            }
        }
        entries
    }

    /// The entries that the documents have.
    fn computed_entries(&self) -> BTreeSet<(u32, Vec<u8>, Vec<u8>)> {
        let stored = indexes().into_iter();
        let stored = stored.filter(|index| index.technique != IndexTechnique::Embedded);
        let indexes = stored.map(|index| IndexDefinition {
            number: i64::from(index.number),
            fields: fields(&index.fields),
            unique: index.is_unique,
        });
        let compiled = CollectionDefinition::new(None, indexes.collect()).unwrap();
        let mut entries = BTreeSet::new();
        for (key, record) in self.records() {
            let document = Document::trusted(&record.body);
            for entry in compiled.entries(document).unwrap() {
                let index = u32::try_from(entry.index).unwrap();
                entries.insert((index, entry.key, key.clone()));
            }
        }
        entries
    }

    /// How many entries and lists are stored, also of documents that do not exist.
    fn key_count(&self) -> usize {
        let keyspace = self.db.keyspace("collections").unwrap();
        let mut scan = self.db.scan_prefix(&keyspace, &[], None).unwrap();
        scan.first().unwrap();
        let mut count = 0;
        while scan.is_valid() {
            count += usize::from(scan.key()[8..12] != [0; 4]);
            scan.advance().unwrap();
        }
        count
    }

    pub(crate) fn check_entries(&self) {
        let stored = self.entries();
        assert_eq!(stored, self.computed_entries());
        let is_listed = |index: u32| index == LIST_OF_SHOP;
        let lists = stored.iter().filter(|(index, ..)| is_listed(*index));
        let lists: BTreeSet<&Vec<u8>> = lists.map(|(_, entry, _)| entry).collect();
        let single = stored.iter().filter(|(index, ..)| !is_listed(*index));
        assert_eq!(self.key_count(), single.count() + lists.len());
    }
}

fn run(seed: u64) {
    let mut random = SeededRandom::new(seed);
    let mut opened = OpenedCollections::new_with(&[]);
    for _ in 0..20 {
        opened.write(random_writes(&mut random, 1));
    }
    opened.define_indexes();
    for index in 1..=6 {
        let mut after = None;
        loop {
            if random.one_in(2) {
                opened.write(random_writes(&mut random, 2));
            }
            if random.one_in(10) {
                opened = opened.reopened();
            }
            let count = usize::try_from(random.below(6)).unwrap() + 1;
            match opened.build(index, after.clone(), count) {
                Ok(part) => {
                    // A part of an embedded index is a table.
                    assert!(index == 6 || part.documents <= count);
                    after = part.after;
                    if after.is_none() {
                        break;
                    }
                }
                Err(Error::DuplicateKey {
                    ids: [first, second],
                }) => {
                    assert_ne!(first, second);
                    let write = write_of(&[1], 2, vec![(1, delete(random.below(IDS)))], false);
                    opened.write(vec![write]);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    opened.check_entries();
    for _ in 0..10 {
        opened.write(random_writes(&mut random, 2));
    }
    opened.check_entries();
}

#[test]
fn builds_with_writes_in_between_leave_the_entries_of_all_documents() {
    (0..60).for_each(run);
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn many_builds_with_writes_in_between() {
    (1000..9000).for_each(run);
}

#[test]
fn a_build_continues_after_a_document_and_changes_none() {
    let bodies: Vec<String> = (0..10).map(|id| format!("\"code\":{id}")).collect();
    let documents: Vec<(u64, &str)> = (0..).zip(bodies.iter().map(String::as_str)).collect();
    let opened = OpenedCollections::new_with(&documents);
    opened.define_indexes();
    let before = opened.records();
    let (mut after, mut counts) = (None, Vec::new());
    loop {
        let part = opened.build(1, after, 4).unwrap();
        counts.push(part.documents);
        after = part.after;
        if after.is_none() {
            break;
        }
        assert_eq!(opened.entries().len(), counts.iter().sum());
    }
    assert_eq!(counts, [4, 4, 2]);
    assert_eq!(opened.records(), before);
    let entries = opened.entries();
    let all = opened.build(1, None, 100).unwrap();
    let expected = BuiltPart {
        documents: 10,
        after: None,
    };
    assert_eq!(all, expected);
    assert_eq!(opened.entries(), entries);
    let last = key(ValueRef::Int32(9)).unwrap();
    assert_eq!(opened.build(1, Some(last), 4).unwrap().documents, 0);
}

#[test]
fn a_part_with_equal_unique_values_adds_nothing() {
    let documents = [(1, "\"code\":5"), (2, "\"code\":6"), (3, "\"code\":5")];
    let opened = OpenedCollections::new_with(&documents);
    opened.define_indexes();
    let is_duplicate = |built: Result<BuiltPart>| {
        let error = built.unwrap_err();
        let text = "Documents 1 and 3 have the same key.";
        error.code() == "duplicate_key" && error.to_string() == text
    };
    assert!(is_duplicate(opened.build(1, None, 10)));
    assert_eq!(opened.entries().len(), 0);
    let part = opened.build(1, None, 2).unwrap();
    assert!(is_duplicate(opened.build(1, part.after.clone(), 2)));
    assert_eq!(opened.entries().len(), 2);
    opened.put_all(2, &[(3, "\"code\":7")]);
    assert_eq!(opened.build(1, part.after, 2).unwrap().after, None);
    let entries = opened.entries();
    let by_code = entries.iter().filter(|(index, ..)| *index == 1);
    assert_eq!(by_code.count(), 3);
}

#[test]
fn a_document_without_its_entry_does_not_remove_that_of_another() {
    let opened = OpenedCollections::new_with(&[(5, "\"code\":5"), (6, "\"code\":6")]);
    opened.define_indexes();
    opened.put_all(2, &[(1, "\"code\":5"), (2, "\"code\":6")]);
    let operations = vec![
        (1, delete(5)),
        (1, put(6, "\"code\":7")),
        (1, put(3, "\"code\":5")),
        (1, put(4, "\"code\":6")),
    ];
    let outcome = opened.write(vec![write_of(&[1], 2, operations, false)]);
    let outcomes = outcome[0].as_ref().unwrap().as_ref().unwrap().iter();
    let is_done: Vec<bool> = outcomes.map(std::result::Result::is_ok).collect();
    assert_eq!(is_done, [true, true, false, false]);
    let by_code = |index: &u32| *index == 1;
    let stored = opened.entries();
    assert_eq!(
        stored.iter().filter(|(index, ..)| by_code(index)).count(),
        3
    );
}

#[test]
fn a_document_that_cannot_be_indexed_is_named() {
    let long = format!("\"code\":\"{}\"", "x".repeat(2_000));
    let opened = OpenedCollections::new_with(&[(1, "\"code\":1"), (2, &long)]);
    opened.define_indexes();
    let error = opened.build(1, None, 10).unwrap_err();
    assert_eq!(error.code(), "not_indexable");
    let text = "Document 2: a key of a unique index has at most 1024 bytes.";
    assert_eq!(error.to_string(), text);
    assert_eq!(opened.entries().len(), 0);
    assert_eq!(opened.build(1, None, 1).unwrap().documents, 1);
    assert!(matches!(opened.build(7, None, 1), Err(Error::NoIndex)));
    let definition = definition(3, indexes());
    opened.collections.define(1, definition).unwrap();
    let stale = opened.build(1, None, 1);
    assert!(matches!(stale, Err(Error::Stale { installed: 3 })));
}

#[test]
fn a_long_id_in_an_error_is_shortened() {
    let opened = OpenedCollections::new_with(&[(1, "\"code\":5")]);
    let body = format!("{{\"_id\":\"{}\",\"code\":5}}", "é".repeat(300));
    let document = parse_document(body.as_bytes()).unwrap();
    let insert = DocumentOperation::insert(document.as_ref(), ValueRef::Null).unwrap();
    let outcome = opened.write(vec![write_of(&[1], 1, vec![(1, insert)], true)]);
    assert!(outcome[0].as_ref().unwrap().is_ok());
    opened.define_indexes();
    let error = opened.build(1, None, 10).unwrap_err();
    let long = format!("\"{}", "é".repeat(199));
    let text = format!("Documents 1 and {long} have the same key.");
    assert_eq!(error.to_string(), text);
}
