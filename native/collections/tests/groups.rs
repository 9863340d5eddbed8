//! Rules of single groups: definitions, versions after deletions, batches that change as one.

use rillbase_collections::{CollectionWrite, DocumentRecord, Error};
use rillbase_documents::id::key;
use rillbase_documents::operation::DocumentOperation;
use rillbase_engine::Millis;
use rillbase_query::bson::{Value, ValueRef};
use rillbase_query::ejson::parse_document;

use crate::opened::{OpenedCollections, definition, index, write_of};

const HOUR_MS: Millis = 3_600_000;

fn insert(id: i32) -> DocumentOperation {
    let document = parse_document(format!("{{\"_id\":{id}}}").as_bytes()).unwrap();
    DocumentOperation::insert(document.as_ref(), ValueRef::Null).unwrap()
}

fn delete(id: i32) -> DocumentOperation {
    DocumentOperation::delete(Value::Int32(id)).unwrap()
}

/// A write of collection 1 or 2.
fn single(collection: u64, operation: DocumentOperation) -> CollectionWrite {
    write_of(&[collection], 1, vec![(collection, operation)], true)
}

fn opened() -> OpenedCollections {
    let opened = OpenedCollections::new();
    for number in [1, 2] {
        opened
            .collections
            .define(number, definition(1, Vec::new()))
            .unwrap();
    }
    opened
}

fn stored(opened: &OpenedCollections, collection: u64, id: i32) -> DocumentRecord {
    let key = key(ValueRef::Int32(id)).unwrap();
    let stored = opened.collections.get(collection, &key, None).unwrap();
    stored.unwrap()
}

/// The number of entries of a keyspace.
fn count(opened: &OpenedCollections, keyspace: &str) -> usize {
    let keyspace = opened.db.keyspace(keyspace).unwrap();
    let mut scan = opened.db.scan_prefix(&keyspace, &[], None).unwrap();
    scan.first().unwrap();
    let mut count = 0;
    while scan.is_valid() {
        count += 1;
        scan.advance().unwrap();
    }
    count
}

/// The version that a write gave its only document.
fn version(opened: &OpenedCollections, write: CollectionWrite) -> i64 {
    let outcome = opened.write(vec![write]).remove(0);
    outcome.unwrap().unwrap()[0].as_ref().unwrap().version
}

#[test]
fn documents_of_a_transaction_are_marked_as_changed_as_one() {
    let opened = opened();
    let both = write_of(&[1, 2], 1, vec![(1, insert(1)), (2, insert(1))], true);
    let each = write_of(&[1], 1, vec![(1, insert(2)), (1, insert(3))], false);
    for write in [both, each, single(1, insert(4))] {
        opened.write(vec![write])[0]
            .as_ref()
            .unwrap()
            .as_ref()
            .unwrap();
    }
    let is_atomic = |collection, id| stored(&opened, collection, id).head.is_atomic;
    assert!(is_atomic(1, 1) && is_atomic(2, 1));
    assert!(!is_atomic(1, 2) && !is_atomic(1, 3) && !is_atomic(1, 4));
    let batch = |collection, id| stored(&opened, collection, id).batch;
    assert_eq!(batch(1, 1), batch(2, 1));
    assert!(batch(1, 2) < batch(1, 4));
}

#[test]
fn a_write_with_another_definition_does_not_affect_its_group() {
    let opened = opened();
    let stale = write_of(&[2, 1], 2, vec![(1, insert(1))], true);
    let missing = write_of(&[1, 9], 1, vec![(1, insert(2))], true);
    let outcomes = opened.write(vec![stale, single(1, insert(3)), missing]);
    assert!(matches!(outcomes[0], Err(Error::Stale { installed: 1 })));
    assert!(outcomes[1].is_ok());
    assert!(matches!(outcomes[2], Err(Error::NoCollection)));
    let size = opened.collections.counts(1, None).unwrap();
    assert_eq!(size.documents, 1);
}

#[test]
fn versions_continue_after_deletions_of_many_hours() {
    let mut opened = opened();
    for id in 0..20 {
        version(&opened, single(1, insert(id)));
        version(&opened, single(1, delete(id)));
        opened.clock.advance(HOUR_MS);
    }
    // Three deletions of one document, so that its version is the greatest.
    for _ in 0..3 {
        version(&opened, single(1, insert(20)));
        version(&opened, single(1, delete(20)));
    }
    opened.clock.advance(48 * HOUR_MS);
    for id in 21..24 {
        assert_eq!(version(&opened, single(1, insert(id))), 7);
        opened = opened.reopened();
    }
    assert_eq!(version(&opened, single(2, insert(1))), 1);
    let hours = count(&opened, "collection-floors");
    assert_eq!(hours, 1, "the floors of past hours are merged");
}

#[test]
fn a_dropped_index_and_a_removed_collection_leave_nothing() {
    let opened = opened();
    let by_id = index(1, "by id", &[("_id", 1)], false);
    let define = |version, indexes| {
        let definition = definition(version, indexes);
        opened.collections.define(1, definition).unwrap();
    };
    define(2, vec![by_id.clone()]);
    let write = write_of(&[1], 2, vec![(1, insert(1))], true);
    opened.write(vec![write])[0]
        .as_ref()
        .unwrap()
        .as_ref()
        .unwrap();
    version(&opened, single(2, insert(1)));
    let entries = || count(&opened, "collections");
    assert_eq!(entries(), 3);
    define(3, Vec::new());
    assert_eq!(entries(), 2);
    opened.collections.remove(1).unwrap();
    assert_eq!(entries(), 1);
    assert!(opened.collections.definition(1).is_err());
    assert_eq!(opened.collections.counts(1, None).unwrap().documents, 0);
    opened
        .collections
        .define(1, definition(1, vec![by_id]))
        .unwrap();
    assert_eq!(version(&opened, single(1, insert(1))), 1);
}

#[test]
fn writes_whose_documents_are_too_large_together_are_postponed_or_rejected() {
    const LARGE: [i32; 5] = [1, 2, 3, 4, 5];
    let opened = opened();
    for id in LARGE {
        let text = "x".repeat(15 << 20);
        let document = parse_document(format!("{{\"_id\":{id},\"t\":\"{text}\"}}").as_bytes());
        let insert = DocumentOperation::insert(document.unwrap().as_ref(), ValueRef::Null);
        let outcome = opened.write(vec![single(1, insert.unwrap())]).remove(0);
        outcome.unwrap().unwrap();
    }
    let deletes = |ids: &[i32]| {
        let operations = ids.iter().map(|id| (1, delete(*id))).collect();
        write_of(&[1], 1, operations, true)
    };
    let all = opened.write(vec![deletes(&LARGE)]).remove(0);
    assert!(matches!(all, Err(Error::TooLarge)));
    let several = vec![deletes(&[1, 2]), deletes(&[3, 4]), single(1, delete(5))];
    let outcomes = opened.write(several);
    let shown: Vec<Option<&str>> = outcomes
        .iter()
        .map(|outcome| outcome.as_ref().err().map(Error::code))
        .collect();
    assert_eq!(shown, [None, Some("postponed"), Some("postponed")]);
    assert_eq!(opened.collections.counts(1, None).unwrap().documents, 3);
}
