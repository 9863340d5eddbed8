//! Claims: a write is executed once, and its result is recorded with its documents.

use std::sync::Arc;

use rillbase_collections::{
    ClaimedResult, CollectionClaim, CollectionWrite, Collections, Error, Result, WriteOutcome,
    WrittenCollection, WrittenResult,
};
use rillbase_documents::operation::DocumentOperation;
use rillbase_documents::outcome::WriteResult;
use rillbase_documents::write_format::decode_result;
use rillbase_engine::vfs::FaultVfs;
use rillbase_engine::{Db, DbOptions, Durability, GroupWrite as _, Millis};
use rillbase_query::bson::ValueRef;
use rillbase_query::ejson::parse_document;

use crate::opened::{OpenedCollections, definition, write_of};

const DAY_MS: Millis = 24 * 3_600_000;
const NAMESPACE: u64 = 3;
const KEY: &[u8] = b"key";

fn opened() -> OpenedCollections {
    let opened = OpenedCollections::new();
    for number in [1, 2] {
        let definition = definition(1, Vec::new());
        opened.collections.define(number, definition).unwrap();
    }
    opened
}

fn insert(id: i32) -> DocumentOperation {
    let document = parse_document(format!("{{\"_id\":{id}}}").as_bytes()).unwrap();
    DocumentOperation::insert(document.as_ref(), ValueRef::Null).unwrap()
}

fn claim(state: &[u8]) -> CollectionClaim {
    CollectionClaim {
        namespace: NAMESPACE,
        key: KEY.to_vec(),
        request_hash: b"hash".to_vec(),
        state: state.to_vec(),
    }
}

/// Inserts documents with a claim, each by itself.
fn claimed(claim: CollectionClaim, collection: u64, ids: &[i32]) -> CollectionWrite {
    let operations = ids.iter().map(|id| (collection, insert(*id)));
    CollectionWrite {
        claim: Some(claim),
        ..write_of(&[collection], 1, operations.collect(), false)
    }
}

fn claimed_result(outcome: WriteOutcome) -> Result<ClaimedResult> {
    outcome.map(|written| match written {
        WrittenResult::Claimed(claimed) => claimed,
        WrittenResult::Decided(_) => panic!("a write has no claim"),
    })
}

impl OpenedCollections {
    fn claimed(&self, write: CollectionWrite) -> Result<ClaimedResult> {
        claimed_result(self.outcomes(vec![write]).remove(0))
    }

    fn is_recorded(&self) -> bool {
        is_recorded(&self.db)
    }

    fn documents(&self, collection: u64) -> u64 {
        self.collections.counts(collection, None).unwrap().documents
    }
}

fn is_recorded(db: &Db) -> bool {
    let keyspace = db.keyspace("collection-claims").unwrap();
    let key = [&NAMESPACE.to_be_bytes(), KEY].concat();
    db.get(&keyspace, &key).unwrap().is_some()
}

fn decoded(result: &ClaimedResult) -> WriteResult {
    decode_result(&result.record.result).unwrap()
}

#[test]
fn a_repeated_write_is_replayed_and_changes_nothing() {
    let opened = opened();
    let write = claimed(claim(b"state"), 1, &[1, 2]);
    let first = opened.claimed(write.clone()).unwrap();
    assert!(!first.is_replayed);
    assert_eq!(decoded(&first).unwrap()[1].as_ref().unwrap().version, 1);
    let sequence = opened.db.snapshot().sequence();
    // Another state is not recorded.
    let again = claimed(claim(b"other"), 1, &[1, 2]);
    for write in [write, again] {
        let replayed = opened.claimed(write).unwrap();
        assert!(replayed.is_replayed);
        assert_eq!(replayed.record, first.record);
    }
    assert_eq!(opened.db.snapshot().sequence(), sequence);
    assert_eq!(opened.documents(1), 2);
}

#[test]
fn the_key_of_another_request_is_rejected() {
    let opened = opened();
    opened.claimed(claimed(claim(b""), 1, &[1])).unwrap();
    let other = CollectionClaim {
        request_hash: b"other".to_vec(),
        ..claim(b"")
    };
    let outcome = opened.claimed(claimed(other, 1, &[2]));
    assert!(matches!(outcome, Err(Error::Mismatch)));
    let in_other_namespace = CollectionClaim {
        namespace: NAMESPACE + 1,
        request_hash: b"other".to_vec(),
        ..claim(b"")
    };
    let outcome = opened.claimed(claimed(in_other_namespace, 1, &[3]));
    assert!(!outcome.unwrap().is_replayed);
    assert_eq!(opened.documents(1), 2);
}

#[test]
fn a_write_without_effect_is_not_recorded() {
    let opened = opened();
    opened.write(vec![write_of(&[1], 1, vec![(1, insert(1))], true)]);
    for ids in [&[1][..], &[]] {
        for _ in 0..2 {
            let rejected = opened.claimed(claimed(claim(b"state"), 1, ids)).unwrap();
            assert!(!rejected.is_replayed);
            assert!(
                decoded(&rejected)
                    .unwrap()
                    .iter()
                    .all(std::result::Result::is_err)
            );
            assert!(!opened.is_recorded());
        }
    }
    let whole = CollectionWrite {
        claim: Some(claim(b"state")),
        ..write_of(&[1], 1, vec![(1, insert(2)), (1, insert(1))], true)
    };
    assert!(decoded(&opened.claimed(whole).unwrap()).is_err());
    assert!(!opened.is_recorded());
}

#[test]
fn a_write_with_one_effect_is_recorded() {
    let opened = opened();
    opened.write(vec![write_of(&[1], 1, vec![(1, insert(1))], true)]);
    let write = claimed(claim(b""), 1, &[1, 3]);
    let first = opened.claimed(write.clone()).unwrap();
    assert_eq!(opened.claimed(write).unwrap().record, first.record);
    assert!(opened.is_recorded());
}

#[test]
fn of_writes_with_one_key_in_a_group_the_first_is_executed() {
    for collections in [[1, 1], [1, 2], [2, 1]] {
        let opened = opened();
        let writes = collections.map(|number| claimed(claim(b""), number, &[1]));
        let unrelated = claimed(
            CollectionClaim {
                key: b"other".to_vec(),
                ..claim(b"")
            },
            2,
            &[5],
        );
        let mut writes = Vec::from(writes);
        writes.push(unrelated);
        let mut outcomes = opened.outcomes(writes).into_iter().map(claimed_result);
        assert!(!outcomes.next().unwrap().unwrap().is_replayed);
        assert!(matches!(outcomes.next(), Some(Err(Error::InProgress))));
        assert!(!outcomes.next().unwrap().unwrap().is_replayed);
        assert_eq!(opened.documents(1) + opened.documents(2), 2);
        let replayed = opened.claimed(claimed(claim(b""), collections[1], &[1]));
        assert!(replayed.unwrap().is_replayed);
    }
}

#[test]
fn a_replay_needs_no_collection() {
    let opened = opened();
    let write = claimed(claim(b""), 1, &[1]);
    let first = opened.claimed(write.clone()).unwrap();
    let next = CollectionClaim {
        key: b"next".to_vec(),
        ..claim(b"")
    };
    let next = claimed(next, 1, &[2]);
    opened
        .collections
        .define(1, definition(2, Vec::new()))
        .unwrap();
    assert_eq!(opened.claimed(write.clone()).unwrap().record, first.record);
    let stale = opened.claimed(next.clone());
    assert!(matches!(stale, Err(Error::Stale { installed: 2 })));
    opened.collections.remove(1).unwrap();
    assert_eq!(opened.claimed(write.clone()).unwrap().record, first.record);
    assert!(matches!(opened.claimed(next), Err(Error::NoCollection)));
    // As the node names a collection that it no longer has.
    let missing = WrittenCollection {
        number: WrittenCollection::MISSING,
        write_version: 1,
    };
    let of_missing = |claim| CollectionWrite {
        claim,
        collections: vec![missing],
        ..write.clone()
    };
    let replayed = opened.claimed(of_missing(write.claim.clone())).unwrap();
    assert_eq!(replayed.record, first.record);
    let outcome = opened.outcomes(vec![of_missing(None)]).remove(0);
    assert!(matches!(outcome, Err(Error::NoCollection)));
}

#[test]
fn a_claim_is_recorded_for_a_day_or_until_its_namespace_is_removed() {
    let opened = opened();
    let write = claimed(claim(b"state"), 1, &[1]);
    let first = opened.claimed(write.clone()).unwrap();
    opened.clock.advance(DAY_MS - 1);
    let opened = opened.reopened();
    assert_eq!(opened.claimed(write.clone()).unwrap().record, first.record);
    opened.clock.advance(1);
    assert!(!opened.is_recorded());
    let executed = opened.claimed(write.clone()).unwrap();
    assert!(!executed.is_replayed, "its document exists");
    assert!(decoded(&executed).unwrap()[0].is_err());
    opened.claimed(claimed(claim(b""), 1, &[2])).unwrap();
    opened.collections.remove_claims(NAMESPACE - 1).unwrap();
    opened.collections.remove_claims(NAMESPACE + 1).unwrap();
    assert!(opened.is_recorded());
    opened.collections.remove_claims(NAMESPACE).unwrap();
    assert!(!opened.is_recorded());
}

#[test]
fn a_write_that_fails_records_nothing() {
    let vfs = Arc::new(FaultVfs::new(1));
    let options = DbOptions {
        vfs: vfs.clone(),
        background_threads: 0,
        ..DbOptions::default()
    };
    let embedded = Arc::default();
    let options = Collections::options(options, &embedded);
    let db = Arc::new(Db::open("/db", options).unwrap());
    let collections = Collections::open(&db, embedded).unwrap();
    collections.define(1, definition(1, Vec::new())).unwrap();
    vfs.fill_up();
    let mut staged = collections.stage(vec![claimed(claim(b"state"), 1, &[1])]);
    let mut results = db.write_group(&mut [&mut staged], Durability::Sync);
    let outcome = staged.complete(&mut results).remove(0);
    assert!(matches!(outcome, Err(Error::Engine(_))));
    assert!(!is_recorded(&db));
    assert_eq!(collections.counts(1, None).unwrap().documents, 0);
}
