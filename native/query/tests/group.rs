//! Groups: the content of rows, regardless of the order in which documents were added and removed.

use std::sync::Arc;

use crate::common::{document, scalar, value};
use proptest::prelude::*;
use rillbase_query::bson::{Document, DocumentBuf, ValueRef};
use rillbase_query::ejson::{Form, value_to_string};
use rillbase_query::error::ParseLocation;
use rillbase_query::group::{GroupDefinition, GroupTable};
use rillbase_query::sort::Sort;

fn group(text: &str) -> Arc<GroupDefinition> {
    let parsed = GroupDefinition::parse(value(text).as_ref(), &ParseLocation::root());
    Arc::new(parsed.unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn text(document: Document<'_>) -> String {
    value_to_string(ValueRef::Document(document), Form::Canonical)
}

fn groups(group: &Arc<GroupDefinition>, documents: &[DocumentBuf]) -> GroupTable {
    let mut groups = GroupTable::new(Arc::clone(group));
    for document in documents {
        groups.add(group.share(document.as_ref()).expect("a share"));
    }
    groups
}

fn rows(groups: &GroupTable) -> Vec<String> {
    let rows = groups.window(None, 0, usize::MAX).expect("rows");
    rows.iter().map(|row| text(row.body.as_ref())).collect()
}

fn shown(by: &str, documents: &[&str]) -> Vec<String> {
    let documents: Vec<DocumentBuf> = documents.iter().map(|text| document(text)).collect();
    let rows = groups(&group(by), &documents);
    let rows = rows.window(None, 0, usize::MAX).expect("rows");
    let relaxed = |row: Document<'_>| value_to_string(ValueRef::Document(row), Form::Relaxed);
    rows.iter().map(|row| relaxed(row.body.as_ref())).collect()
}

const SUM: &str = r#"{"by": ["a"], "measures": {"s": {"op": "sum", "field": "n"}}}"#;

#[test]
fn a_missing_value_is_null_and_equal_numbers_are_one_group() {
    let rows = shown(
        r#"{"by": ["a"], "measures": {"c": {"op": "count"}}}"#,
        &[
            r#"{"_id": 1, "a": 1}"#,
            r#"{"_id": 2, "a": 1.0}"#,
            r#"{"_id": 3, "a": {"$numberDecimal": "1.00"}}"#,
            r#"{"_id": 4, "a": null}"#,
            r#"{"_id": 5}"#,
            r#"{"_id": 6, "a": [1]}"#,
        ],
    );
    assert_eq!(
        rows,
        [
            r#"{"_id":{"a":null},"a":null,"c":2}"#,
            r#"{"_id":{"a":1},"a":1,"c":3}"#,
            r#"{"_id":{"a":[1]},"a":[1],"c":1}"#,
        ]
    );
}

#[test]
fn paths_make_rows_of_the_same_shape() {
    let rows = shown(
        r#"{"by": ["a.b", "c", "a.d"], "measures": {"most": {"op": "max", "field": "x.y"}}}"#,
        &[
            r#"{"_id": 1, "a": {"b": 1, "d": 2}, "c": 3, "x": {"y": "q"}}"#,
            r#"{"_id": 2, "a": {"d": 2, "b": 1}, "c": 3, "x": {"y": "r"}}"#,
            r#"{"_id": 3, "a": [{"b": 1}], "x": 7}"#,
        ],
    );
    assert_eq!(
        rows,
        [
            r#"{"_id":{"a":{"b":null,"d":null},"c":null},"a":{"b":null,"d":null},"c":null,"most":null}"#,
            r#"{"_id":{"a":{"b":1,"d":2},"c":3},"a":{"b":1,"d":2},"c":3,"most":"r"}"#,
        ]
    );
}

#[test]
fn sums_are_rounded_once_and_pass_over_what_is_no_number() {
    let sum = |numbers: &[&str]| {
        let documents: Vec<String> = numbers
            .iter()
            .map(|number| format!(r#"{{"_id": 1, "n": {number}}}"#))
            .collect();
        let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
        let rows = shown(SUM, &documents);
        rows.first().cloned().unwrap_or_default()
    };
    let row = |sum: &str| format!(r#"{{"_id":{{"a":null}},"a":null,"s":{sum}}}"#);
    let decimal = |text: &str| format!(r#"{{"$numberDecimal":"{text}"}}"#);
    assert_eq!(sum(&["1", "2", "\"x\"", "null", "[3]"]), row("3"));
    assert_eq!(sum(&["\"x\""]), row("0"));
    assert_eq!(sum(&["0.1"; 10]), row("1.0"));
    assert_eq!(sum(&["1e308", "1.0", "-1e308"]), row("1.0"));
    assert_eq!(
        sum(&["9007199254740993", "0.5", "-0.5"]),
        row("9007199254740992.0")
    );
    assert_eq!(
        sum(&["9223372036854775807", "1", "-3"]),
        row(r#"{"$numberLong":"9223372036854775805"}"#)
    );
    assert_eq!(
        sum(&["9223372036854775807", "1"]),
        row("9.223372036854776E+18").replace("E+18", "e18")
    );
    let tenths = [decimal("0.1"), decimal("0.20"), "1".to_owned()];
    let tenths: Vec<&str> = tenths.iter().map(String::as_str).collect();
    assert_eq!(sum(&tenths), row(&decimal("1.30")));
    let apart = [decimal("1E+6000"), decimal("1"), decimal("-1E+6000")];
    let apart: Vec<&str> = apart.iter().map(String::as_str).collect();
    assert_eq!(sum(&apart), row(&decimal("1")));
    let below = [decimal("-1"), decimal("1E-40")];
    let below: Vec<&str> = below.iter().map(String::as_str).collect();
    assert_eq!(
        sum(&below),
        row(&decimal("-1.000000000000000000000000000000000"))
    );
}

#[test]
fn invalid_groups_are_rejected_with_a_pointer() {
    for (wrong, pointer) in [
        ("[]", ""),
        (r#"{"by": "a"}"#, "/by"),
        (r#"{"by": ["a", "$b"]}"#, "/by/1"),
        (r#"{"by": ["a", "a"]}"#, "/by/1"),
        (r#"{"by": ["a.b", "a"]}"#, "/by/1"),
        (r#"{"by": ["_id"]}"#, "/by/0"),
        (
            r#"{"by": ["a"], "measures": {"a": {"op": "count"}}}"#,
            "/measures/a",
        ),
        (r#"{"measures": {"a.b": {"op": "count"}}}"#, "/measures/a.b"),
        (
            r#"{"measures": {"n": {"op": "median", "field": "a"}}}"#,
            "/measures/n/op",
        ),
        (r#"{"measures": {"n": {"op": "sum"}}}"#, "/measures/n"),
        (
            r#"{"measures": {"n": {"op": "count", "field": "a"}}}"#,
            "/measures/n/field",
        ),
        (r#"{"having": {}}"#, "/having"),
    ] {
        let refused = GroupDefinition::parse(value(wrong).as_ref(), &ParseLocation::root());
        let error = refused.err().unwrap_or_else(|| panic!("{wrong} is taken"));
        assert_eq!(
            (error.code.as_str(), &*error.pointer),
            ("invalid_group", pointer),
            "{wrong}"
        );
    }
    let sort = Sort::parse(
        value(r#"{"a": 1, "b": -1}"#).as_ref(),
        &ParseLocation::root(),
    );
    let refused = group(SUM).check_sort(&sort.expect("a sort"), &ParseLocation::root());
    assert_eq!(refused.expect_err("no row has it").pointer, "/1");
}

#[test]
fn groups_cannot_be_sorted_by_the_times_of_documents() {
    for times in [r#"[["$updated", 1]]"#, r#"[["$created", -1]]"#] {
        let sort = Sort::parse(value(times).as_ref(), &ParseLocation::root());
        let refused = group(SUM).check_sort(&sort.expect("a sort"), &ParseLocation::root());
        let error = refused.expect_err("rows have no times");
        assert_eq!(
            (error.code.as_str(), &*error.pointer),
            ("invalid_sort", "/0")
        );
    }
}

#[test]
fn too_large_a_value_is_refused() {
    let large = "x".repeat(2_000);
    let by = group(SUM).share(document(&format!(r#"{{"a": "{large}"}}"#)).as_ref());
    assert!(by.is_err());
    let least = group(r#"{"measures": {"m": {"op": "min", "field": "a"}}}"#);
    assert!(
        least
            .share(document(&format!(r#"{{"a": "{large}"}}"#)).as_ref())
            .is_err()
    );
}

const ALL: &str = r#"{"by": ["a", "b.c"], "measures": {
    "count": {"op": "count"}, "sum": {"op": "sum", "field": "n"}, "avg": {"op": "avg", "field": "n"},
    "min": {"op": "min", "field": "m"}, "max": {"op": "max", "field": "m"}}}"#;

fn any_document() -> impl Strategy<Value = DocumentBuf> {
    let few = prop::sample::select(vec!["1", "1.0", "\"x\"", "null"]);
    (few.clone(), few, scalar(), scalar()).prop_map(|(a, c, n, m)| {
        document(&format!(
            r#"{{"_id": 0, "a": {a}, "b": {{"c": {c}}}, "n": {n}, "m": {m}}}"#
        ))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn rows_depend_on_what_is_there_and_not_on_how_it_came(
        stay in prop::collection::vec(any_document(), 0..12),
        go in prop::collection::vec(any_document(), 0..12),
        turn in any::<prop::sample::Index>(),
    ) {
        let group = group(ALL);
        let mut changing = groups(&group, &[]);
        let share = |one: &DocumentBuf| group.share(one.as_ref()).expect("a share");
        let leaving: Vec<_> = go.iter().map(|one| changing.add(share(one))).collect();
        for one in &stay {
            changing.add(share(one));
        }
        for kept in &leaving {
            changing.take(kept);
        }
        let mut turned = stay.clone();
        if !turned.is_empty() {
            turned.rotate_left(turn.index(stay.len()));
        }
        // The fields that reduced documents omit have no effect either.
        let reduced: Vec<_> = turned.iter().map(|one| group.reduce(one.as_ref())).collect();
        prop_assert_eq!(rows(&changing), rows(&groups(&group, &reduced)));
    }

    #[test]
    fn a_group_is_read_as_it_is_written(documents in prop::collection::vec(any_document(), 0..6)) {
        let first = group(ALL);
        let written = first.canonical();
        let again = GroupDefinition::parse(ValueRef::Document(written.as_ref()), &ParseLocation::root());
        let again = Arc::new(again.expect("a group"));
        prop_assert_eq!(&first, &again);
        prop_assert_eq!(rows(&groups(&first, &documents)), rows(&groups(&again, &documents)));
    }
}
