//! Reading without a plan: all documents in order, and documents or tombstones by key.

use rillbase_collections::DocumentRecord;
use rillbase_documents::id::key;
use rillbase_documents::operation::DocumentOperation;
use rillbase_engine::DbSnapshot;
use rillbase_query::bson::{Value, ValueRef};
use rillbase_query::ejson::parse_document;

use crate::opened::{OpenedCollections, definition, write_of};

fn value(id: i32) -> Value {
    Value::Int32(id)
}

fn key_of(id: i32) -> Vec<u8> {
    key(ValueRef::Int32(id)).unwrap()
}

fn put(id: i32) -> DocumentOperation {
    let document = parse_document(format!("{{\"_id\":{id}}}").as_bytes()).unwrap();
    DocumentOperation::replace(value(id), document.as_ref(), true).unwrap()
}

fn delete(id: i32) -> DocumentOperation {
    DocumentOperation::delete(value(id)).unwrap()
}

impl OpenedCollections {
    /// Collections 1 to 3 without documents.
    fn of_three() -> Self {
        let opened = Self::new();
        for number in 1..=3 {
            let definition = definition(1, Vec::new());
            opened.collections.define(number, definition).unwrap();
        }
        opened
    }

    fn change(&self, collection: u64, operations: Vec<DocumentOperation>) {
        let operations = operations.into_iter().map(|one| (collection, one));
        let write = write_of(&[collection], 1, operations.collect(), true);
        self.write(vec![write]).remove(0).unwrap().unwrap();
    }

    /// The keys of collection 2 after a key, with whether they are those of tombstones.
    fn scanned(&self, after: Option<&[u8]>, snapshot: &DbSnapshot) -> Vec<(Vec<u8>, bool)> {
        let mut scan = self.collections.documents(2, after, snapshot).unwrap();
        let mut scanned = Vec::new();
        while let Some(key) = scan.key().map(<[u8]>::to_vec) {
            let (head, body) = scan.document().unwrap();
            assert!(!body.is_empty());
            scanned.push((key, head.is_tombstone));
            scan.advance().unwrap();
        }
        scanned
    }

    fn row(&self, id: i32) -> Option<DocumentRecord> {
        let row = self.collections.get_or_tombstone(2, &key_of(id), None);
        row.unwrap()
    }
}

#[test]
fn all_documents_of_a_collection_are_read_in_order_at_a_snapshot() {
    let opened = OpenedCollections::of_three();
    for collection in 1..=3 {
        opened.change(collection, (0..10).map(put).collect());
    }
    opened.change(2, vec![delete(3)]);
    let snapshot = opened.db.snapshot();
    opened.change(2, vec![delete(4), put(10)]);

    let expected: Vec<_> = (0..10).map(|id| (key_of(id), id == 3)).collect();
    assert_eq!(opened.scanned(None, &snapshot), expected);
    for (position, (key, _)) in expected.iter().enumerate() {
        let rest = opened.scanned(Some(key), &snapshot);
        assert_eq!(rest, expected[position + 1..]);
    }
    opened.collections.remove(2).unwrap();
    assert_eq!(opened.scanned(None, &snapshot), expected);
    assert_eq!(opened.scanned(None, &opened.db.snapshot()), []);
}

#[test]
fn a_tombstone_has_a_version_and_the_batch_of_its_deletion() {
    let opened = OpenedCollections::of_three();
    let before = opened.db.snapshot().sequence();
    opened.change(2, vec![put(1), put(2)]);
    let between = opened.db.snapshot().sequence();
    opened.change(2, vec![put(2), delete(1)]);

    let [deleted, present] = [1, 2].map(|id| opened.row(id).unwrap());
    assert!(deleted.head.is_tombstone && !present.head.is_tombstone);
    assert_eq!((deleted.head.version, present.head.version), (2, 2));
    assert_eq!(deleted.batch, present.batch);
    assert_eq!(deleted.batch, between + 1);
    assert!(between > before);
    assert!(
        opened
            .collections
            .get(2, &key_of(1), None)
            .unwrap()
            .is_none()
    );
    assert_eq!(opened.row(3), None);
    opened.clock.advance(25 * 3_600_000);
    assert_eq!(opened.row(1), None);
    assert!(opened.row(2).is_some());
}
