//! Lookups: the documents that are referred to, and how they are shown.

use crate::common::{document, value};
use rillbase_query::bson::{Document, DocumentBuf, ValueRef};
use rillbase_query::ejson::{Form, value_to_string};
use rillbase_query::error::ParseLocation;
use rillbase_query::lookup::LookupFields;

fn lookups(text: &str) -> LookupFields {
    let parsed = LookupFields::parse(value(text).as_ref(), &ParseLocation::root());
    parsed.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Shows a document where of each collection the documents `{"_id": 1}` and `{"_id": 2}` are there.
fn shown(by: &str, own: &str) -> String {
    let there: Vec<DocumentBuf> = vec![document(r#"{"_id": 1}"#), document(r#"{"_id": 2}"#)];
    let find = |_: usize, id: ValueRef<'_>| {
        let text = value_to_string(id, Form::Relaxed);
        let same = |found: &&DocumentBuf| {
            let id = found
                .as_ref()
                .get("_id")
                .map(|id| value_to_string(id, Form::Relaxed));
            id.as_deref() == Some(&*text)
        };
        there.iter().find(same).map(DocumentBuf::as_ref)
    };
    let own = document(own);
    let embedded = lookups(by).embed(own.as_ref(), &find).expect("a document");
    text(embedded.as_ref())
}

fn text(document: Document<'_>) -> String {
    value_to_string(ValueRef::Document(document), Form::Relaxed)
}

const ONE: &str = r#"[{"from": "f", "local": "a.b", "as": "x"}]"#;

/// A document with what was found beside its own fields.
fn with_x(own: &str, found: &str) -> String {
    let open = own.strip_suffix('}').unwrap_or(own);
    format!(r#"{open},"x":{found}}}"#)
}

#[test]
fn one_reference_shows_a_document_or_null() {
    assert_eq!(
        shown(ONE, r#"{"_id":0,"a":{"b":1}}"#),
        r#"{"_id":0,"a":{"b":1},"x":{"_id":1}}"#
    );
    for own in [
        r#"{"_id":0,"a":{"b":7}}"#,
        r#"{"_id":0,"a":{"b":null}}"#,
        r#"{"_id":0,"a":{"c":1}}"#,
        r#"{"_id":0,"a":1}"#,
        r#"{"_id":0}"#,
    ] {
        assert_eq!(shown(ONE, own), with_x(own, "null"));
    }
}

#[test]
fn a_lookup_behind_an_array_yields_a_list() {
    for (own, found) in [
        (
            r#"{"a":{"b":[2,9,1,2]}}"#,
            r#"[{"_id":2},{"_id":1},{"_id":2}]"#,
        ),
        (
            r#"{"a":[{"b":1},{"b":[2]},{"c":1},1]}"#,
            r#"[{"_id":1},{"_id":2}]"#,
        ),
        (r#"{"a":{"b":[]}}"#, "[]"),
        (r#"{"a":{"b":[[1],null]}}"#, "[]"),
        (r#"{"a":[]}"#, "[]"),
    ] {
        assert_eq!(shown(ONE, own), with_x(own, found));
    }
}

#[test]
fn a_field_of_the_name_is_replaced_and_no_lookup_reads_another() {
    let both =
        r#"[{"from": "f", "local": "a", "as": "a"}, {"from": "g", "local": "a", "as": "b"}]"#;
    assert_eq!(
        shown(both, r#"{"a":1,"c":0}"#),
        r#"{"a":{"_id":1},"c":0,"b":{"_id":1}}"#
    );
}

#[test]
fn canonical_lookups_are_read_as_they_were() {
    let read = lookups(r#"[{"as": "x", "local": "a.b", "from": "f"}]"#);
    let again = read.canonical();
    let list = again.as_ref().get("lookup").expect("a list");
    assert_eq!(
        LookupFields::parse(list, &ParseLocation::root()),
        Ok(read.clone())
    );
    assert_eq!(read.collections(), ["f"]);
}

#[test]
fn too_many_references_are_refused() {
    let ids: Vec<String> = (0..1_001).map(|id| id.to_string()).collect();
    let own = document(&format!(r#"{{"a":{{"b":[{}]}}}}"#, ids.join(",")));
    assert!(lookups(ONE).embed(own.as_ref(), &|_, _| None).is_err());
}
