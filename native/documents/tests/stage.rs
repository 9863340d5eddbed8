//! The columns that a group writes agree with applying its operations one by one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use rillbase_documents::after_image::{ImageTransaction, Parcel, ParcelLimits, parcels};
use rillbase_documents::changes::{EntryColumns, GroupChanges};
use rillbase_documents::definition::CollectionDefinition;
use rillbase_documents::entry::{IndexDefinition, fields};
use rillbase_documents::id::{key, key_hash};
use rillbase_documents::operation::DocumentOperation;
use rillbase_documents::operations::DocumentOperations;
use rillbase_documents::plan::{NamedTarget, WriteCollection, WritePlan, WriteRequest};
use rillbase_documents::precondition::Precondition;
use rillbase_documents::stage::{LockedRow, LockedRows};
use rillbase_query::bson::{Document, DocumentBuf, Value, ValueRef};
use rillbase_query::ejson::parse_document;
use rillbase_query::error::ParseLocation;
use rillbase_query::index::FieldOrder;

const NOW_MS: i64 = 1_700_000_000_000;
const FLOOR: i64 = 40;
const INDEX: i64 = 9;
const IDS: i32 = 5;

/// One operation on the document with an id, on its only field.
#[derive(Debug, Clone, Copy)]
enum Step {
    Insert(i32),
    Replace(i32, bool),
    Add(i32, bool),
    Merge(i32, bool),
    Delete,
}

#[derive(Debug, Clone)]
struct RequestedStep {
    id: i32,
    step: Step,
    if_version: Option<i64>,
}

/// A document in the model.
#[derive(Debug, Clone, PartialEq)]
struct ModelDocument {
    version: i64,
    value: Option<i32>,
    created_us: Option<i64>,
}

fn text(id: i32, value: i32) -> DocumentBuf {
    parse_document(format!("{{\"_id\":{id},\"a\":{value}}}").as_bytes()).unwrap()
}

fn operation(requested: &RequestedStep) -> DocumentOperation {
    let id = Value::Int32(requested.id);
    let parsed = |text: String| parse_document(text.as_bytes()).unwrap();
    let mut made = match requested.step {
        Step::Insert(value) => {
            let document = text(requested.id, value);
            DocumentOperation::insert(document.as_ref(), ValueRef::Null).unwrap()
        }
        Step::Replace(value, upsert) => {
            DocumentOperation::replace(id, text(requested.id, value).as_ref(), upsert).unwrap()
        }
        Step::Add(value, upsert) => {
            let update = parsed(format!("{{\"$inc\":{{\"a\":{value}}}}}"));
            DocumentOperation::update(id, (update.as_ref(), &ParseLocation::root()), None, upsert)
                .unwrap()
        }
        Step::Merge(value, upsert) => {
            let patch = parsed(format!("{{\"a\":{value}}}"));
            DocumentOperation::merge(id, patch.as_ref(), upsert).unwrap()
        }
        Step::Delete => DocumentOperation::delete(id).unwrap(),
    };
    made.if_version = requested.if_version;
    made
}

/// Applies one operation to the model. Returns the new version, or the code of the refusal.
fn do_one(
    model: &mut BTreeMap<i32, ModelDocument>,
    requested: &RequestedStep,
) -> Result<i64, &'static str> {
    let before = model.get(&requested.id).cloned().unwrap_or(ModelDocument {
        version: FLOOR,
        value: None,
        created_us: None,
    });
    let at = before.value.map(|_| before.version);
    if requested.if_version.is_some() && requested.if_version != at {
        return Err("precondition_failed");
    }
    let value = match (requested.step, before.value) {
        (Step::Insert(_), Some(_)) => return Err("duplicate_id"),
        (
            Step::Replace(_, false) | Step::Add(_, false) | Step::Merge(_, false) | Step::Delete,
            None,
        ) => return Err("not_found"),
        (Step::Insert(value) | Step::Replace(value, _) | Step::Merge(value, _), _) => Some(value),
        (Step::Add(value, _), before) => Some(before.unwrap_or(0) + value),
        (Step::Delete, Some(_)) => None,
    };
    let created_us = before.value.and(before.created_us);
    let version = before.version + 1;
    let changed = ModelDocument {
        version,
        value,
        created_us,
    };
    model.insert(requested.id, changed);
    Ok(version)
}

type Ended = Result<Vec<Result<i64, String>>, String>;

/// Applies a write to the model.
fn do_write(
    model: &mut BTreeMap<i32, ModelDocument>,
    requested: &[RequestedStep],
    atomic: bool,
) -> Ended {
    let before = model.clone();
    let mut results = Vec::new();
    for one in requested {
        let outcome = do_one(model, one);
        if let (true, Err(code)) = (atomic, outcome) {
            *model = before;
            return Err(code.into());
        }
        results.push(outcome.map_err(Into::into));
    }
    Ok(results)
}

fn id_key(id: i32) -> Vec<u8> {
    key(ValueRef::Int32(id)).unwrap()
}

fn plan(writes: &[(Vec<RequestedStep>, bool)]) -> WritePlan {
    let index = IndexDefinition {
        number: INDEX,
        fields: fields(&[("a".into(), FieldOrder::Ascending)]),
        unique: false,
    };
    WritePlan {
        collections: vec![WriteCollection {
            id: [7; 16],
            definition: Arc::new(CollectionDefinition::new(None, vec![index]).unwrap()),
        }],
        writes: writes
            .iter()
            .map(|(requested, atomic)| WriteRequest {
                operations: DocumentOperations::new(
                    requested.iter().map(operation).map(Ok).collect(),
                ),
                targets: vec![NamedTarget {
                    name: String::new(),
                    collection: 0,
                    access: None,
                }],
                atomic: *atomic,
                expected: Precondition::default(),
            })
            .collect(),
    }
}

fn locked_rows(rows: &BTreeMap<i32, ModelDocument>) -> LockedRows {
    let rows = rows.iter().map(|(id, known)| {
        let row = LockedRow {
            version: known.version,
            body: known.value.map(|value| text(*id, value).into_bytes()),
            created_us: known.created_us.unwrap(),
        };
        (id_key(*id), row)
    });
    LockedRows {
        rows: vec![rows.collect()],
        floors: vec![FLOOR],
        now_ms: NOW_MS,
    }
}

/// The items of a binary array.
fn items(array: &[u8]) -> Vec<Option<Vec<u8>>> {
    let number = |at: usize| i32::from_be_bytes(array[at..at + 4].try_into().unwrap());
    if number(0) == 0 {
        return Vec::new();
    }
    let mut at = 20;
    (0..number(12))
        .map(|_| {
            let length = number(at);
            at += 4;
            (length >= 0).then(|| {
                let end = at + usize::try_from(length).unwrap();
                let item = array[at..end].to_vec();
                at = end;
                item
            })
        })
        .collect()
}

fn int8(item: Option<&Vec<u8>>) -> Option<i64> {
    item.map(|bytes| i64::from_be_bytes(bytes.as_slice().try_into().unwrap()))
}

fn value_of(body: &[u8]) -> i32 {
    match Document::trusted(body).get("a") {
        Some(ValueRef::Int32(value)) => value,
        other => panic!("{other:?}"),
    }
}

/// The rows that the columns write: version, value, moment of creation, by key.
fn written(changes: &GroupChanges) -> HashMap<Vec<u8>, (bool, ModelDocument)> {
    let mut rows = HashMap::new();
    let mut take = |has_row: bool, keys: &[u8], versions: &[u8], bodies: &[u8], created: &[u8]| {
        let (keys, versions, bodies) = (items(keys), items(versions), items(bodies));
        let created = items(created);
        for (at, place) in keys.into_iter().enumerate() {
            let stored = ModelDocument {
                version: int8(versions[at].as_ref()).unwrap(),
                value: bodies[at].as_deref().map(value_of),
                created_us: int8(created.get(at).and_then(Option::as_ref)),
            };
            assert!(rows.insert(place.unwrap(), (has_row, stored)).is_none());
        }
    };
    if let Some([keys, _, versions, bodies]) = changes.inserted(0) {
        take(false, &keys, &versions, &bodies, &[0; 12]);
    }
    if let Some([keys, versions, bodies, created]) = changes.updated(0) {
        take(true, &keys, &versions, &bodies, &created);
    }
    rows
}

fn entry_rows(columns: Option<EntryColumns>) -> BTreeSet<(Vec<u8>, Vec<u8>)> {
    let Some(columns) = columns else {
        return BTreeSet::new();
    };
    let keys = items(&columns.keys).into_iter().flatten();
    let places = items(&columns.places).into_iter().flatten();
    assert!(
        items(&columns.numbers)
            .iter()
            .all(|item| int8(item.as_ref()) == Some(INDEX))
    );
    keys.zip(places).collect()
}

/// The entries that documents of the model must have.
fn entries_of(
    plan: &WritePlan,
    model: &BTreeMap<i32, ModelDocument>,
) -> BTreeSet<(Vec<u8>, Vec<u8>)> {
    let there = model
        .iter()
        .filter_map(|(id, known)| Some((*id, known.value?)));
    there
        .flat_map(|(id, value)| {
            let document = text(id, value);
            let entries = plan.collections[0].definition.entries(document.as_ref());
            entries
                .unwrap()
                .into_iter()
                .map(move |entry| (entry.key, id_key(id)))
        })
        .collect()
}

fn check_columns(
    plan: &WritePlan,
    changes: &GroupChanges,
    rows: &BTreeMap<i32, ModelDocument>,
    model: &BTreeMap<i32, ModelDocument>,
) {
    let touched: BTreeMap<i32, ModelDocument> = model
        .iter()
        .filter(|(id, known)| rows.get(id) != Some(known))
        .map(|(id, known)| (*id, known.clone()))
        .collect();
    let wanted: HashMap<Vec<u8>, (bool, ModelDocument)> = touched
        .iter()
        .map(|(id, known)| (id_key(*id), (rows.contains_key(id), known.clone())))
        .collect();
    assert_eq!(written(changes), wanted);
    let (before, after) = (entries_of(plan, rows), entries_of(plan, model));
    assert_eq!(entry_rows(changes.added()), &after - &before);
    assert_eq!(entry_rows(changes.removed()), &before - &after);
    let hashes: BTreeSet<i32> = touched.keys().map(|id| key_hash(&id_key(*id))).collect();
    assert_eq!(changes.key_hashes(), Vec::from_iter(hashes));
    check_announced(changes, &touched);
    check_images(changes, &touched);
}

fn check_announced(changes: &GroupChanges, touched: &BTreeMap<i32, ModelDocument>) {
    let Some([keys, _, versions, deleted]) = changes.announced(0) else {
        assert!(touched.is_empty());
        return;
    };
    let rows = items(&keys)
        .into_iter()
        .zip(items(&versions))
        .zip(items(&deleted));
    let announced: Vec<_> = rows
        .map(|((place, version), deleted)| (place, int8(version.as_ref()), deleted.is_some()))
        .collect();
    let mut wanted: Vec<_> = touched
        .iter()
        .map(|(id, known)| {
            (
                Some(id_key(*id)),
                Some(known.version),
                known.value.is_none(),
            )
        })
        .collect();
    wanted.sort_unstable();
    assert_eq!(announced, wanted);
}

/// Each image is one argument: a put with the document, a delete with the id.
fn check_images(changes: &GroupChanges, touched: &BTreeMap<i32, ModelDocument>) {
    let transaction = ImageTransaction {
        xid: 5,
        tenant: [1; 16],
        rules_versions: &[3],
    };
    let whole = parcels(changes, transaction, None);
    assert_eq!(
        whole.iter().map(|parcel| parcel.images).sum::<usize>(),
        touched.len()
    );
    let join = |parts: &[Parcel]| -> Vec<u8> {
        let arguments = parts.iter().map(|parcel| parcel.arguments.as_slice());
        arguments.collect::<Vec<_>>().concat()
    };
    let joined = join(&whole);
    let (many, one) = (usize::MAX, 1);
    for (images, bytes) in [(many, one), (one, many)] {
        let cut = parcels(changes, transaction, Some(ParcelLimits { images, bytes }));
        assert_eq!(cut.len(), touched.len());
        assert_eq!(join(&cut), joined);
    }
    for (id, known) in touched {
        let (kind, content) = match known.value {
            Some(value) => (1, text(*id, value)),
            None => (
                2,
                parse_document(format!("{{\"_id\":{id}}}").as_bytes()).unwrap(),
            ),
        };
        let place = id_key(*id);
        let mut image = vec![1, kind, 0, 0, 0, 0, 0, 0, 0, 5];
        image.extend([1; 16]);
        image.extend([7; 16]);
        let created_ms = known
            .created_us
            .map_or(NOW_MS, |us| us / 1000 + 946_684_800_000);
        for number in [known.version, 3, created_ms, NOW_MS * 1000] {
            image.extend(number.to_be_bytes());
        }
        image.extend(u16::try_from(place.len()).unwrap().to_be_bytes());
        image.extend(
            u32::try_from(content.as_bytes().len())
                .unwrap()
                .to_be_bytes(),
        );
        image.extend(&place);
        image.extend(content.as_bytes());
        let hash = key_hash(&place).to_string();
        let mut argument =
            format!("${}\r\n{hash}\r\n${}\r\n", hash.len(), image.len()).into_bytes();
        argument.extend(image);
        argument.extend(b"\r\n");
        assert!(
            joined
                .windows(argument.len())
                .any(|window| window == argument)
        );
    }
}

fn operations() -> impl Strategy<Value = RequestedStep> {
    let step = prop_oneof![
        (-3..3).prop_map(Step::Insert),
        (-3..3, any::<bool>()).prop_map(|(value, upsert)| Step::Replace(value, upsert)),
        (-3..3, any::<bool>()).prop_map(|(value, upsert)| Step::Add(value, upsert)),
        (-3..3, any::<bool>()).prop_map(|(value, upsert)| Step::Merge(value, upsert)),
        Just(Step::Delete),
    ];
    let if_version = prop_oneof![5 => Just(None), 1 => (1..8_i64).prop_map(Some)];
    (0..IDS, step, if_version).prop_map(|(id, step, if_version)| RequestedStep {
        id,
        step,
        if_version,
    })
}

fn rows() -> impl Strategy<Value = BTreeMap<i32, ModelDocument>> {
    let known = (1..8_i64, prop::option::of(-3..3), 0..9_i64).prop_map(|(version, value, at)| {
        ModelDocument {
            version,
            value,
            created_us: Some(at * 1_000_000),
        }
    });
    prop::collection::btree_map(0..IDS, known, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_group_leaves_what_its_operations_leave_one_by_one(
        writes in prop::collection::vec(
            (prop::collection::vec(operations(), 0..8), any::<bool>()), 1..5
        ),
        rows in rows(),
    ) {
        let plan = plan(&writes);
        let changes = plan.apply(&locked_rows(&rows), &[], None);
        let mut model = rows.clone();
        for (number, (requested, atomic)) in writes.iter().enumerate() {
            let wanted = do_write(&mut model, requested, *atomic);
            let result: Ended = match changes.results[number].as_ref().unwrap() {
                Ok(outcomes) => Ok(outcomes
                    .iter()
                    .map(|outcome| match outcome {
                        Ok(change) => Ok(change.version),
                        Err(refusal) => Err(refusal.code.to_string()),
                    })
                    .collect()),
                Err(refusal) => Err(refusal.code.to_string()),
            };
            prop_assert_eq!(result, wanted);
        }
        check_columns(&plan, &changes, &rows, &model);
    }
}

#[test]
fn a_write_that_is_skipped_leaves_nothing() {
    let insert = RequestedStep {
        id: 1,
        step: Step::Insert(1),
        if_version: None,
    };
    let changes = plan(&[(vec![insert], true)]).apply(&locked_rows(&BTreeMap::new()), &[0], None);
    assert!(changes.is_empty() && changes.results[0].is_none());
}

#[test]
fn documents_with_new_ids_are_not_looked_up_unless_requested() {
    let fresh = parse_document(b"{\"a\":1}").unwrap();
    let mut plan = plan(&[(Vec::new(), true)]);
    let made = DocumentOperation::insert(fresh.as_ref(), ValueRef::Int32(3)).unwrap();
    let given = DocumentOperation::insert(text(4, 1).as_ref(), ValueRef::Null).unwrap();
    plan.writes[0].operations = DocumentOperations::new(vec![Ok(made), Ok(given)]);
    assert_eq!(plan.keys(0, false), [id_key(4)]);
    assert_eq!(plan.keys(0, true), [id_key(3), id_key(4)]);
}
