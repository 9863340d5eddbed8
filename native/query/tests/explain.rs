//! Explanations of a filter's result for people.

use crate::common::document;
use rillbase_query::filter::{Explanation, Filter};

fn explain(filter: &str, text: &str) -> Explanation {
    let filter = Filter::parse(document(filter).as_ref()).expect(filter);
    filter.explain(document(text).as_ref(), 0)
}

/// The sentences of the tests that determined the result.
fn deciding(filter: &str, text: &str) -> Vec<String> {
    let explanation = explain(filter, text);
    let reasons = explanation.reason.deciding().into_iter();
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
fn a_match_is_explained_by_its_branch() {
    let explanation = explain(
        r#"{"$or":[{"a":1},{"b":2}],"c":{"$exists":true}}"#,
        r#"{"a":1,"b":3,"c":null}"#,
    );
    assert_eq!(explanation.matches, Ok(true));
    let clauses: Vec<&str> = explanation
        .reason
        .deciding()
        .into_iter()
        .map(|reason| reason.clause.as_str())
        .collect();
    assert_eq!(clauses, [r#"{"c":{"$exists":true}}"#, r#"{"a":{"$eq":1}}"#]);
}

#[test]
fn negations_are_explained_in_plain_language() {
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
fn a_filter_that_cannot_be_evaluated_explains_why() {
    let explanation = explain(
        r#"{"$expr":{"$eq":[{"$divide":[1,"$a"]},1]}}"#,
        r#"{"a":0}"#,
    );
    assert!(explanation.matches.is_err());
    assert!(
        explanation
            .reason
            .sentence
            .starts_with("It cannot be determined whether"),
        "{}",
        explanation.reason.sentence
    );
}

#[test]
fn long_values_are_truncated_and_long_lists_shortened() {
    let many: Vec<String> = (0..500).map(|n| format!(r#"{{"a":{n}}}"#)).collect();
    let long = "x".repeat(10_000);
    let explanation = explain(
        &format!(r#"{{"$or":[{}]}}"#, many.join(",")),
        &format!(r#"{{"a":"{long}"}}"#),
    );
    assert!(explanation.cut && explanation.reason.parts.len() < 250);
    assert!(explanation.json().len() < 500_000);
    assert!(explanation.reason.parts[0].found[0].ends_with('…'));
}
