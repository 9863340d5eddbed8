//! Requests and results of writes as bytes.

use std::sync::Arc;

use proptest::prelude::*;
use rillbase_documents::operation::DocumentOperation;
use rillbase_documents::operations::DocumentOperations;
use rillbase_documents::outcome::{DocumentChange, Outcome, WriteResult};
use rillbase_documents::plan::{AccessFilters, NamedTarget, WriteRequest};
use rillbase_documents::precondition::Precondition;
use rillbase_documents::refusal::DocumentRefusal;
use rillbase_documents::write_format::{decode_result, encode_result};
use rillbase_query::bson::{Document, DocumentBuf, Value, ValueRef};
use rillbase_query::ejson::parse_document;
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::update::Update;

fn document(text: &str) -> DocumentBuf {
    parse_document(text.as_bytes()).unwrap()
}

fn filter(text: &str) -> Arc<Filter> {
    Arc::new(Filter::parse(document(text).as_ref()).unwrap())
}

/// An operation of each kind.
fn operation(kind: u8, id: i32, n: i32, if_version: Option<i64>) -> DocumentOperation {
    let text = format!("{{\"_id\":{id},\"n\":{n}}}");
    let own = document(&text);
    let patch = document(&format!("{{\"n\":{n}}}"));
    let above = filter(&format!("{{\"n\":{{\"$gt\":{n}}}}}"));
    let raised = document(&format!("{{\"$inc\":{{\"n\":{n}}}}}"));
    let root = ParseLocation::root();
    let update = Update::parse(raised.as_ref(), None, &root).unwrap();
    let filters = document("{\"all\":[{\"one.n\":1}]}");
    let Some(ValueRef::Array(filters)) = filters.as_ref().get("all") else {
        panic!("an array");
    };
    let each = document("{\"$set\":{\"list.$[one].n\":2}}");
    let id = Value::Int32(id);
    let operation = match kind {
        0 => DocumentOperation::insert(own.as_ref(), ValueRef::Null),
        1 => DocumentOperation::replace(id, own.as_ref(), n % 2 == 0),
        2 => DocumentOperation::update(id, (raised.as_ref(), &root), None, n % 2 == 0),
        3 => DocumentOperation::update(id, (each.as_ref(), &root), Some(filters), false),
        4 => DocumentOperation::update_found(id, Arc::new(update), above),
        5 => DocumentOperation::merge(id, patch.as_ref(), n % 2 == 0),
        6 => DocumentOperation::delete(id),
        _ => DocumentOperation::delete_found(id, above),
    };
    DocumentOperation {
        if_version,
        collection: (n % 3 == 0).then(|| "named".to_owned()),
        is_new: n % 5 == 0,
        ..operation.unwrap()
    }
}

fn refusal(detail: String) -> DocumentRefusal {
    DocumentRefusal {
        code: "not_found".into(),
        pointer: "/operations/1".into(),
        violations: vec![("/a".into(), detail.clone())],
        detail,
    }
}

/// All that operations do: their effects on a document, and what they require.
fn effects(request: &WriteRequest) -> Vec<String> {
    let before = document("{\"_id\":1,\"n\":3,\"list\":[{\"n\":1},{\"n\":5}]}");
    let operations = request.operations.as_slice().iter();
    let effects = operations.map(|operation| match operation {
        Err(refusal) => format!("{refusal:?}"),
        Ok(operation) => {
            let after = operation.after(Some(before.as_ref()), 0);
            let created = operation.after(None, 0);
            let fields = (&operation.id, &operation.key, &operation.collection);
            let flags = (operation.if_version, operation.upsert, operation.is_new);
            format!(
                "{} {after:?} {created:?} {fields:?} {flags:?}",
                operation.kind()
            )
        }
    });
    effects.collect()
}

proptest! {
    #[test]
    fn a_request_round_trips(
        kinds in prop::collection::vec((0_u8..8, -1..2_i32, 0..30_i32, any::<Option<i64>>()), 0..6),
        (atomic, has_rules, present, absent) in any::<(bool, bool, bool, bool)>(),
        versions in any::<Option<Vec<i64>>>(),
    ) {
        let mut operations: Vec<_> = kinds
            .into_iter()
            .map(|(kind, id, n, if_version)| Ok(operation(kind, id, n, if_version)))
            .collect();
        operations.push(Err(refusal("unreadable".into())));
        let access = AccessFilters {
            read: Some(filter("{\"owner\":\"ann\"}")),
            delete: Some(Arc::new(Filter::everything())),
            ..AccessFilters::default()
        };
        let request = WriteRequest {
            operations: DocumentOperations::new(operations),
            targets: vec![NamedTarget {
                name: "named".into(),
                collection: 3,
                access: has_rules.then_some(access),
            }],
            atomic,
            expected: Precondition { versions, present, absent },
        };
        let bytes = request.encode();
        let read = WriteRequest::decode(&bytes).unwrap();
        prop_assert_eq!(effects(&read), effects(&request));
        prop_assert_eq!(format!("{:?}", read.targets), format!("{:?}", request.targets));
        prop_assert_eq!(format!("{:?}", read.expected), format!("{:?}", request.expected));
        prop_assert_eq!(read.atomic, atomic);
        prop_assert_eq!(read.encode(), bytes.clone());
        for length in 0..bytes.len() {
            prop_assert!(WriteRequest::decode(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn a_result_round_trips(version in 0..i64::MAX, is_deleted: bool, created: bool, text: String) {
        let change = |id: Value| DocumentChange {
            id,
            version,
            body: (!is_deleted).then(|| Arc::new(document("{\"_id\":1}"))),
            created_ms: version / 2,
            updated_ms: version,
            created,
        };
        let outcomes: Vec<Outcome> = vec![Ok(change(Value::String(text.clone()))), Err(refusal(text))];
        for result in [WriteResult::Ok(outcomes.into()), Err(refusal("whole".into()))] {
            let bytes = encode_result(&result);
            let read = decode_result(&bytes).unwrap();
            prop_assert_eq!(format!("{read:?}"), format!("{result:?}"));
            prop_assert!(decode_result(&bytes[..bytes.len() - 1]).is_err());
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = WriteRequest::decode(&bytes);
        let _ = decode_result(&bytes);
        let _ = Document::parse(&bytes);
    }
}
