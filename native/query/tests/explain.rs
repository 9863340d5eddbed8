//! Why a filter decides as it does, as people read it.

#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::needless_raw_string_hashes,
    reason = "rows of a table look alike"
)]

mod common;

use common::document;
use rillbase_query::filter::{Explanation, Filter};

fn explain(filter: &str, text: &str) -> Explanation {
    let filter = Filter::parse(document(filter).as_ref()).expect(filter);
    filter.explain(document(text).as_ref(), 0)
}

/// The sentences of the tests by which the answer came about.
fn deciding(filter: &str, text: &str) -> Vec<String> {
    let told = explain(filter, text);
    let reasons = told.reason.deciding().into_iter();
    reasons.map(|reason| reason.sentence.clone()).collect()
}

#[test]
fn the_test_that_fails_is_named_with_the_value_that_it_met() {
    for (filter, text, expected) in [
        (
            r#"{"done":false,"priority":{"$gt":3}}"#,
            r#"{"done":false,"priority":2}"#,
            vec!["`priority` is 2; expected: greater than 3."],
        ),
        (
            r#"{"owner":"ada"}"#,
            r#"{"title":"x"}"#,
            vec![r#"`owner` is missing; expected: equal to "ada"."#],
        ),
        (
            r#"{"n":3}"#,
            r#"{"n":"3"}"#,
            vec![
                r#"`n` is "3"; expected: equal to 3. A value of type string never matches one of type int."#,
            ],
        ),
        (
            r#"{"a.b":{"$gte":2}}"#,
            r#"{"a":[{"b":0},{"b":1}]}"#,
            vec!["`a.b` has the values 0, 1; expected: at least 2."],
        ),
        (
            r#"{"state":{"$ne":"done"}}"#,
            r#"{"state":"done"}"#,
            vec![r#"`state` is "done"; expected: not equal to "done"."#],
        ),
        (
            r#"{"$or":[{"a":1},{"b":{"$in":[2,3]}}]}"#,
            r#"{"a":2,"b":4}"#,
            vec![
                "`a` is 2; expected: equal to 1.",
                "`b` is 4; expected: one of 2, 3.",
            ],
        ),
        (
            r#"{"tags":{"$size":3},"name":{"$regex":"^Ad","$options":"i"}}"#,
            r#"{"tags":["x","y"],"name":"Grace"}"#,
            vec![
                r#"`name` is "Grace"; expected: text that matches /^Ad/i."#,
                r#"`tags` is ["x","y"]; expected: an array of length 3."#,
            ],
        ),
        (
            r#"{"$nor":[{"$expr":{"$gt":["$a","$b"]}}]}"#,
            r#"{"a":2,"b":1}"#,
            vec!["The document does not match; expected: it is not true that its `$expr` is true."],
        ),
    ] {
        assert_eq!(deciding(filter, text), expected, "{filter} on {text}");
    }
}

#[test]
fn what_matches_says_by_which_branch() {
    let told = explain(
        r#"{"$or":[{"a":1},{"b":2}],"c":{"$exists":true}}"#,
        r#"{"a":1,"b":3,"c":null}"#,
    );
    assert_eq!(told.matches, Ok(true));
    let clauses: Vec<&str> = told
        .reason
        .deciding()
        .into_iter()
        .map(|reason| reason.clause.as_str())
        .collect();
    assert_eq!(clauses, [r#"{"c":{"$exists":true}}"#, r#"{"a":{"$eq":1}}"#]);
}

#[test]
fn negations_are_told_as_people_write_them() {
    for text in [
        r#"{"a":{"$ne":1}}"#,
        r#"{"a":{"$nin":[1,2]}}"#,
        r#"{"a":{"$exists":false}}"#,
        r#"{"a":{"$not":{"$gt":1}}}"#,
    ] {
        assert_eq!(explain(text, "{}").reason.clause, text);
    }
}

#[test]
fn a_filter_that_comes_to_no_answer_says_why() {
    let told = explain(
        r#"{"$expr":{"$eq":[{"$divide":[1,"$a"]},1]}}"#,
        r#"{"a":0}"#,
    );
    assert!(told.matches.is_err());
    assert!(
        told.reason
            .sentence
            .starts_with("It cannot be determined whether"),
        "{}",
        told.reason.sentence
    );
}

#[test]
fn what_is_long_is_cut_and_what_is_much_is_left_out() {
    let many: Vec<String> = (0..500).map(|n| format!(r#"{{"a":{n}}}"#)).collect();
    let long = "x".repeat(10_000);
    let told = explain(
        &format!(r#"{{"$or":[{}]}}"#, many.join(",")),
        &format!(r#"{{"a":"{long}"}}"#),
    );
    assert!(told.cut && told.reason.parts.len() < 250);
    assert!(told.json().len() < 500_000);
    assert!(told.reason.parts[0].found[0].ends_with('…'));
}
