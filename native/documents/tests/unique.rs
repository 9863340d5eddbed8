//! Once keys were looked up, each operation finds the keys of unique indexes as the operations
//! before it have left them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use rillbase_documents::definition::CollectionDefinition;
use rillbase_documents::entry::{IndexDefinition, fields};
use rillbase_documents::id::key;
use rillbase_documents::operation::DocumentOperation;
use rillbase_documents::operations::DocumentOperations;
use rillbase_documents::plan::{NamedTarget, WriteCollection, WritePlan, WriteRequest};
use rillbase_documents::precondition::Precondition;
use rillbase_documents::stage::{LockedRow, LockedRows};
use rillbase_documents::unique::{OwnedKey, OwnedKeys};
use rillbase_query::bson::Value;
use rillbase_query::ejson::parse_document;
use rillbase_query::error::ParseLocation;
use rillbase_query::index::FieldOrder;

const INDEX: i64 = 9;
/// Documents from this id on are not locked.
const OTHERS: i32 = 100;

/// A change of a document's unique value.
#[derive(Debug, Clone, Copy)]
enum Step {
    Set(i32, i32),
    Add(i32, i32),
    Delete(i32),
}

fn operation(step: Step) -> DocumentOperation {
    let parsed = |text: String| parse_document(text.as_bytes()).unwrap();
    match step {
        Step::Set(id, value) => {
            let document = parsed(format!("{{\"_id\":{id},\"a\":{value}}}"));
            DocumentOperation::replace(Value::Int32(id), document.as_ref(), true).unwrap()
        }
        Step::Add(id, value) => {
            let update = parsed(format!("{{\"$inc\":{{\"a\":{value}}}}}"));
            DocumentOperation::update(
                Value::Int32(id),
                (update.as_ref(), &ParseLocation::root()),
                None,
                false,
            )
            .unwrap()
        }
        Step::Delete(id) => DocumentOperation::delete(Value::Int32(id)).unwrap(),
    }
}

/// Applies a step to unique values by id. Returns whether it is accepted.
fn accepts(values: &mut BTreeMap<i32, i32>, step: Step) -> bool {
    let (id, value) = match step {
        Step::Set(id, value) => (id, value),
        Step::Add(id, value) => match values.get(&id) {
            Some(before) => (id, before + value),
            None => return false,
        },
        Step::Delete(id) => return values.remove(&id).is_some(),
    };
    if values
        .iter()
        .any(|(other, of_other)| *other != id && *of_other == value)
    {
        return false;
    }
    values.insert(id, value);
    true
}

fn definition() -> Arc<CollectionDefinition> {
    let index = IndexDefinition {
        number: INDEX,
        fields: fields(&[("a".to_owned(), FieldOrder::Ascending)]),
        unique: true,
    };
    Arc::new(CollectionDefinition::new(None, vec![index]).unwrap())
}

fn document(id: i32, value: i32) -> Vec<u8> {
    let text = format!("{{\"_id\":{id},\"a\":{value}}}");
    parse_document(text.as_bytes()).unwrap().into_bytes()
}

fn plan(writes: &[(Vec<Step>, bool)]) -> WritePlan {
    let request = |(steps, atomic): &(Vec<Step>, bool)| WriteRequest {
        operations: DocumentOperations::new(
            steps.iter().map(|step| Ok(operation(*step))).collect(),
        ),
        targets: vec![NamedTarget {
            name: String::new(),
            collection: 0,
            access: None,
        }],
        atomic: *atomic,
        expected: Precondition::default(),
    };
    WritePlan {
        collections: vec![WriteCollection {
            id: [0; 16],
            definition: definition(),
        }],
        writes: writes.iter().map(request).collect(),
    }
}

/// The keys of documents that the group does not lock, as they were looked up.
fn looked_up(values: &BTreeMap<i32, i32>) -> OwnedKeys {
    let others = values.iter().filter(|(id, _)| **id >= OTHERS);
    let keys = others.map(|(id, value)| {
        let bytes = document(*id, *value);
        let body = rillbase_query::bson::Document::trusted(&bytes);
        OwnedKey {
            index: INDEX,
            key: definition().entries(body).unwrap()[0].key.clone(),
            collection: 0,
            document: key(Value::Int32(*id).as_ref()).unwrap(),
            hidden_from: Vec::new(),
        }
    });
    OwnedKeys {
        names: HashMap::from([(INDEX, "a".to_owned())]),
        keys: keys.collect(),
    }
}

fn locked(values: &BTreeMap<i32, i32>) -> LockedRows {
    let own = values.iter().filter(|(id, _)| **id < OTHERS);
    let rows = own.map(|(id, value)| {
        let row = LockedRow {
            version: 1,
            body: Some(document(*id, *value)),
            created_us: 0,
        };
        (key(Value::Int32(*id).as_ref()).unwrap(), row)
    });
    LockedRows {
        rows: vec![rows.collect()],
        floors: vec![0],
        now_ms: 0,
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..5_i32, 0..8_i32).prop_map(|(id, value)| Step::Set(id, value)),
        (0..5_i32, -2..3_i32).prop_map(|(id, value)| Step::Add(id, value)),
        (0..5_i32).prop_map(Step::Delete),
    ];
    prop::collection::vec(step, 1..6)
}

proptest! {
    #[test]
    fn operations_find_the_keys_that_those_before_them_have_left(
        own in prop::collection::btree_map(0..5_i32, 0..8_i32, 0..5),
        others in prop::collection::btree_map(OTHERS..OTHERS + 5, 0..8_i32, 0..4),
        writes in prop::collection::vec((steps(), any::<bool>()), 1..4),
    ) {
        let mut values = BTreeMap::new();
        for (id, value) in own.into_iter().chain(others) {
            accepts(&mut values, Step::Set(id, value));
        }
        let changes = plan(&writes).apply(&locked(&values), &[], Some(&looked_up(&values)));
        for ((steps, atomic), result) in writes.iter().zip(&changes.results) {
            let before = values.clone();
            let accepted: Vec<bool> = steps.iter().map(|step| accepts(&mut values, *step)).collect();
            if let Ok(outcomes) = result.as_ref().unwrap() {
                let outcomes: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
                prop_assert_eq!(outcomes, accepted);
            } else {
                prop_assert!(*atomic && accepted.contains(&false));
                values = before;
            }
        }
        for changed in &changes.documents[0] {
            let left = changed.body.as_ref().map(|body| body.as_bytes().to_vec());
            let id = (0..5).find(|id| key(Value::Int32(*id).as_ref()).unwrap() == changed.key).unwrap();
            prop_assert_eq!(left, values.get(&id).map(|value| document(id, *value)));
        }
    }
}

#[test]
fn the_refusal_names_the_index_unless_the_document_is_hidden() {
    let values = BTreeMap::from([(OTHERS, 3)]);
    let writes = plan(&[(vec![Step::Set(1, 3)], true), (vec![Step::Set(2, 3)], true)]);
    let mut keys = looked_up(&values);
    keys.keys[0].hidden_from = vec![1];
    let changes = writes.apply(&locked(&values), &[], Some(&keys));
    let refusals: Vec<_> = changes
        .results
        .iter()
        .map(|result| result.clone().unwrap().unwrap_err())
        .collect();
    assert_eq!(refusals[0].code, "duplicate_key");
    assert_eq!(
        refusals[0].violations,
        [(String::new(), "index 'a'".to_owned())]
    );
    assert_eq!(refusals[1].code, "forbidden_by_rule");
    assert_eq!(changes.len(), 0);
}
