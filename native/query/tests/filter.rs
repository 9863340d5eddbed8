//! Results of filters, case by case, as in MongoDB 8.
//!
//! A row is a filter, the documents that it matches and those that it does not. Each row is also
//! checked for laws of every filter: double negation changes nothing, a negation inverts the
//! result, and the canonical form is an equivalent filter and its own canonical form.

use crate::common::{any_document, any_value, document};
use crate::filter_cases::{FAMILIES, REFUSED};
use proptest::prelude::*;
use rillbase_query::bson::ValueRef;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::filter_set::{FilterSet, PredicateAnswers};
use rillbase_query::fuel::Fuel;
use rillbase_query::schema::Schema;
use rillbase_query::sort::Sort;

fn filter(text: &str) -> Filter {
    Filter::parse(document(text).as_ref()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn matches(filter: &Filter, text: &str) -> bool {
    filter
        .matches(document(text).as_ref())
        .unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn check(text: &str, doc: &str, expected: bool) {
    let plain = filter(text);
    assert_eq!(matches(&plain, doc), expected, "{text} on {doc}");
    let explanation = plain.explain(document(doc).as_ref(), 0);
    assert_eq!(explanation.matches, Ok(expected), "{text} on {doc}");
    let deciding = explanation.reason.deciding();
    assert!(deciding.iter().all(|part| part.holds == Ok(expected)));
    // These two operators also rank documents, so they cannot be negated.
    if !text.contains("$text") && !text.contains("$near") {
        let twice = filter(&format!(r#"{{"$nor":[{{"$nor":[{text}]}}]}}"#));
        assert_eq!(twice.hash(), plain.hash(), "double negation of {text}");
        let once = filter(&format!(r#"{{"$nor":[{text}]}}"#));
        assert_eq!(
            matches(&once, doc),
            !expected,
            "negation of {text} on {doc}"
        );
    }
    let again = Filter::parse(plain.canonical())
        .unwrap_or_else(|error| panic!("canonical of {text}: {error}"));
    assert_eq!(
        again.canonical().as_bytes(),
        plain.canonical().as_bytes(),
        "canonical of {text}"
    );
    assert_eq!(
        matches(&again, doc),
        expected,
        "canonical of {text} on {doc}"
    );
}

#[test]
fn filters_answer_as_mongodb_does() {
    let mut count = 0;
    for (_, rows) in FAMILIES {
        for (text, yes, no) in *rows {
            yes.iter().for_each(|doc| check(text, doc, true));
            no.iter().for_each(|doc| check(text, doc, false));
            count += yes.len() + no.len();
        }
    }
    assert!(count > 600, "{count} cases");
}

#[test]
fn malformed_filters_are_refused_with_code_and_pointer() {
    for (text, code, pointer) in REFUSED {
        let error = Filter::parse(document(text).as_ref()).expect_err(text);
        assert_eq!(
            (error.code.as_str(), error.pointer.as_str()),
            (*code, *pointer),
            "{text}: {error}"
        );
    }
}

#[test]
fn filters_that_say_the_same_have_one_hash() {
    for (a, b) in [
        (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
        (
            r#"{"a":1,"b":2}"#,
            r#"{"$and":[{"b":2},{"$and":[{"a":1}]}]}"#,
        ),
        (r#"{"a":1}"#, r#"{"a":{"$eq":1.0}}"#),
        (r#"{"a":1}"#, r#"{"a":{"$in":[{"$numberDecimal":"1.00"}]}}"#),
        (r#"{"a":{"$in":[1,2]}}"#, r#"{"a":{"$in":[2,1,2,1.0]}}"#),
        (r#"{"a":{"$ne":1}}"#, r#"{"a":{"$not":{"$eq":1}}}"#),
        (
            r#"{"a":{"$nin":[1,2]}}"#,
            r#"{"$nor":[{"a":{"$in":[2,1]}}]}"#,
        ),
        (
            r#"{"$nor":[{"a":1},{"b":2}]}"#,
            r#"{"a":{"$ne":1},"b":{"$ne":2}}"#,
        ),
        (
            r#"{"$or":[{"a":1},{"$or":[{"b":2},{"a":1}]}]}"#,
            r#"{"$or":[{"b":2},{"a":1}]}"#,
        ),
        (
            r#"{"a":{"$gt":1,"$lt":5}}"#,
            r#"{"$and":[{"a":{"$lt":5}},{"a":{"$gt":1}}]}"#,
        ),
        (r#"{"a":{"$all":[1,2]}}"#, r#"{"$and":[{"a":2},{"a":1}]}"#),
        (
            r#"{"a":{"$type":"number"}}"#,
            r#"{"a":{"$type":["int","long","double","decimal"]}}"#,
        ),
        (
            r#"{"a":{"$bitsAllSet":5}}"#,
            r#"{"a":{"$bitsAllSet":[2,0]}}"#,
        ),
        (
            r#"{"a":{"$exists":false}}"#,
            r#"{"a":{"$not":{"$exists":true}}}"#,
        ),
        (
            r#"{"a":{"$regex":"x","$options":"im"}}"#,
            r#"{"a":{"$regularExpression":{"pattern":"x","options":"im"}}}"#,
        ),
        (r#"{"a":{"$in":[]}}"#, r#"{"$nor":[{}]}"#),
        (r#"{"$or":[{},{"a":1}]}"#, r#"{}"#),
        (r#"{"$comment":"x","a":1}"#, r#"{"a":1}"#),
        (r#"{"a":-0.0}"#, r#"{"a":0}"#),
        (
            r#"{"$or":[{"a":1},{"$and":[{"$or":[{"b":1},{"c":1}]},{"$or":[{"c":1},{"b":1}]}]}]}"#,
            r#"{"$or":[{"a":1},{"b":1},{"c":1}]}"#,
        ),
    ] {
        assert_eq!(filter(a).hash(), filter(b).hash(), "{a} and {b}");
    }
    for (a, b) in [
        (r#"{"a":1}"#, r#"{"a":"1"}"#),
        (r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#),
        (r#"{"a":{"$gt":1}}"#, r#"{"a":{"$gte":1}}"#),
        (r#"{"a":{"$not":{"$gt":1}}}"#, r#"{"a":{"$lte":1}}"#),
        (r#"{"a.b":1}"#, r#"{"a":{"b":1}}"#),
        (
            r#"{"a":{"$numberLong":"9007199254740993"}}"#,
            r#"{"a":9007199254740992.0}"#,
        ),
    ] {
        assert_ne!(filter(a).hash(), filter(b).hash(), "{a} and {b}");
    }
}

#[test]
fn sizes_and_depths_are_bounded() {
    let nested = |depth: usize| {
        format!(
            "{}{}{}",
            r#"{"a":"#,
            r#"{"$not":"#.repeat(depth) + r#"{"$gt":1}"#,
            "}".repeat(depth + 1)
        )
    };
    assert!(Filter::parse(document(&nested(49)).as_ref()).is_ok());
    assert_eq!(
        Filter::parse(document(&nested(50)).as_ref())
            .expect_err("deep")
            .code
            .as_str(),
        "filter_too_large"
    );
    let wide = |width: usize| format!(r#"{{"$or":[{}]}}"#, vec![r#"{"a":1}"#; width].join(","));
    assert!(Filter::parse(document(&wide(999)).as_ref()).is_ok());
    assert_eq!(
        Filter::parse(document(&wide(1000)).as_ref())
            .expect_err("wide")
            .code
            .as_str(),
        "filter_too_large"
    );
    let list = |length: usize| format!(r#"{{"a":{{"$in":[{}]}}}}"#, vec!["1"; length].join(","));
    assert!(Filter::parse(document(&list(10_000)).as_ref()).is_ok());
    assert_eq!(
        Filter::parse(document(&list(10_001)).as_ref())
            .expect_err("long")
            .pointer,
        "/a/$in/10000"
    );
}

#[test]
fn an_evaluation_that_costs_too_much_runs_out_of_fuel() {
    let array = vec!["[1]"; 3000].join(",");
    let doc = format!(r#"{{"a":[{array}]}}"#);
    let tests = vec![r#"{"a":{"$elemMatch":{"$elemMatch":{"$gt":1}}}}"#; 300].join(",");
    let costly = filter(&format!(
        r#"{{"$or":[{tests},{{"b":{{"$exists":true}}}}]}}"#
    ));
    assert!(
        costly.matches(document(&doc).as_ref()).is_ok(),
        "doubles are dropped"
    );
    let tests: Vec<String> = (0..300)
        .map(|n| format!(r#"{{"a":{{"$elemMatch":{{"$elemMatch":{{"$gt":1{n}}}}}}}}}"#))
        .collect();
    let costly = filter(&format!(r#"{{"$or":[{}]}}"#, tests.join(",")));
    assert!(costly.matches(document(&doc).as_ref()).is_err());
}

fn any_condition() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]);
    let comparison =
        (operator, any_value()).prop_map(|(name, value)| format!(r#""{name}":{value}"#));
    let list = (
        prop::sample::select(vec!["$in", "$nin", "$all"]),
        prop::collection::vec(any_value(), 0..3),
    )
        .prop_map(|(name, values)| format!(r#""{name}":[{}]"#, values.join(",")));
    let fixed = prop::sample::select(vec![
        r#""$exists":true"#,
        r#""$exists":false"#,
        r#""$type":"number""#,
        r#""$size":1"#,
        r#""$mod":[2,1]"#,
        r#""$regex":"^a""#,
        r#""$bitsAnySet":3"#,
    ])
    .prop_map(str::to_owned);
    let leaf = prop_oneof![3 => comparison, 2 => list, 2 => fixed];
    leaf.prop_recursive(2, 6, 2, |inner| {
        (prop::sample::select(vec!["$not", "$elemMatch"]), inner)
            .prop_map(|(name, inner)| format!(r#""{name}":{{{inner}}}"#))
    })
}

fn any_filter() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec!["a", "b", "a.b", "a.0", "a.b.c", "a.0.b", "c"]);
    let leaf = (path, any_condition())
        .prop_map(|(path, condition)| format!(r#"{{"{path}":{{{condition}}}}}"#));
    leaf.prop_recursive(3, 12, 3, |inner| {
        (
            prop::sample::select(vec!["$and", "$or", "$nor"]),
            prop::collection::vec(inner, 1..4),
        )
            .prop_map(|(name, inner)| format!(r#"{{"{name}":[{}]}}"#, inner.join(",")))
    })
}

/// Values with regular expressions or `undefined` are not allowed everywhere.
fn parsed(text: &str) -> Option<Filter> {
    Filter::parse(document(text).as_ref()).ok()
}

/// The laws that hold for any two filters.
fn check_algebra(text: &str, other: &str, docs: &[String]) -> Result<(), TestCaseError> {
    let (Some(f), Some(g)) = (parsed(text), parsed(other)) else {
        return Ok(());
    };
    let of = |name: &str, all: &[&str]| filter(&format!(r#"{{"{name}":[{}]}}"#, all.join(",")));
    let (not_f, not_g) = (
        format!(r#"{{"$nor":[{text}]}}"#),
        format!(r#"{{"$nor":[{other}]}}"#),
    );
    let (both, any) = (of("$and", &[text, other]), of("$or", &[text, other]));
    let neither = of("$nor", &[text, other]);
    let swapped = filter(&format!(
        r#"{{"$and":[{other},{{"$and":[{text}]}},{text}]}}"#
    ));
    prop_assert_eq!(both.hash(), swapped.hash());
    prop_assert_eq!(both.hash(), f.and(&g).hash());
    // De Morgan's laws, and double negation.
    prop_assert_eq!(of("$nor", &[&not_f, &not_g]).hash(), both.hash());
    prop_assert_eq!(of("$and", &[&not_f, &not_g]).hash(), neither.hash());
    prop_assert_eq!(of("$nor", &[&not_f]).hash(), f.hash());
    let same = f.canonical().as_bytes() == g.canonical().as_bytes();
    prop_assert_eq!(f.hash() == g.hash(), same);
    let again = Filter::parse(f.canonical()).expect("canonical form");
    prop_assert_eq!(again.canonical().as_bytes(), f.canonical().as_bytes());
    for doc in docs {
        let (x, y) = (matches(&f, doc), matches(&g, doc));
        prop_assert_eq!(matches(&filter(&not_f), doc), !x);
        prop_assert_eq!(matches(&both, doc), x && y);
        prop_assert_eq!(matches(&any, doc), x || y);
        prop_assert_eq!(matches(&neither, doc), !(x || y));
        prop_assert_eq!(matches(&again, doc), x);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50_000))]

    #[test]
    #[ignore = "minutes: a million pairs of document and filter"]
    fn algebra_holds_for_a_million_pairs(
        text in any_filter(), other in any_filter(), docs in prop::collection::vec(any_document(), 10),
    ) {
        check_algebra(&text, &other, &docs)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn algebra_holds_for_random_filters(text in any_filter(), other in any_filter(), doc in any_document()) {
        check_algebra(&text, &other, &[doc])?;
    }

    #[test]
    fn a_set_of_filters_answers_as_each_filter_does(texts in prop::collection::vec(any_filter(), 1..8), docs in prop::collection::vec(any_document(), 1..4), removed in any::<prop::sample::Index>()) {
        let mut set = FilterSet::default();
        let mut filters: Vec<_> = texts.iter().filter_map(|text| parsed(text)).map(|filter| (set.insert(&filter), filter)).collect();
        if filters.len() > 2 {
            // Numbers and predicates are reused after a removal.
            let (id, filter) = filters.remove(removed.index(filters.len()));
            set.remove(id);
            filters.push((set.insert(&filter), filter));
        }
        prop_assert_eq!(set.len(), filters.len());
        let mut scratch = PredicateAnswers::default();
        for doc in &docs {
            let doc = document(doc);
            let mut prepared = set.prepare(doc.as_ref(), 0, &mut scratch);
            for (id, filter) in &filters {
                prop_assert_eq!(prepared.matches(*id), filter.matches(doc.as_ref()));
            }
        }
        for (id, _) in &filters {
            set.remove(*id);
        }
        prop_assert!(set.is_empty());
    }

    #[test]
    fn a_list_is_the_disjunction_of_equalities(values in prop::collection::vec(any_value(), 0..4), doc in any_document()) {
        let list = format!(r#"{{"a.b":{{"$in":[{}]}}}}"#, values.join(","));
        let Some(list) = parsed(&list) else { return Ok(()) };
        let any = values.iter().any(|value| {
            let key = if value.starts_with(r#"{"$regular"#) { "$regex" } else { "$eq" };
            parsed(&format!(r#"{{"a.b":{{"{key}":{value}}}}}"#)).is_some_and(|one| matches(&one, &doc))
        });
        prop_assert_eq!(matches(&list, &doc), any);
    }
}

#[test]
fn text_scores_grow_with_frequency_and_coverage() {
    let coffee = filter(r#"{"$text":{"$search":"coffee"}}"#);
    let score = |doc: &str| {
        coffee
            .rank_in(document(doc).as_ref(), &EvaluationContext::default())
            .expect("fuel")
    };
    assert_eq!(score(r#"{"a":"tea"}"#), None);
    assert_eq!(score(r#"{"a":"coffee"}"#), Some(1.0));
    // A string that is the term itself counts a tenth more; "coffee" has the stem "coffe".
    let tea = filter(r#"{"$text":{"$search":"tea"}}"#);
    let exact = tea.rank_in(
        document(r#"{"a":"Tea"}"#).as_ref(),
        &EvaluationContext::default(),
    );
    assert_eq!(exact, Ok(Some(1.1)));
    assert_eq!(score(r#"{"a":"coffee shop"}"#), Some(0.75));
    assert_eq!(
        score(r#"{"a":"coffee coffee shop yard"}"#),
        Some(1.5 * 0.75)
    );
    assert_eq!(
        score(r#"{"a":"coffee shop","b":["coffee shop"]}"#),
        Some(1.5)
    );
}

#[test]
fn near_ranks_by_distance() {
    let near = filter(r#"{"p":{"$near":{"$geometry":{"type":"Point","coordinates":[0,0]}}}}"#);
    let distance = |doc: &str| {
        near.rank_in(document(doc).as_ref(), &EvaluationContext::default())
            .expect("fuel")
    };
    let degree = std::f64::consts::PI / 180.0 * 6_378_100.0;
    let found = distance(r#"{"p":[[5,0],[1,0]]}"#).expect("a point");
    assert!((found - degree).abs() < 1e-3);
    assert_eq!(
        distance(
            r#"{"p":{"type":"Polygon","coordinates":[[[-1,-1],[1,-1],[1,1],[-1,1],[-1,-1]]]}}"#
        ),
        Some(0.0)
    );
    assert_eq!(distance("{}"), None);
    assert_eq!(near.default_sort(), Sort::by_distance());
}

#[test]
fn a_schema_says_what_it_expects() {
    let expected = |rule: &str, value: &str| {
        let schema = document(&format!(r#"{{"properties":{{"n":{rule}}}}}"#));
        let schema = Schema::parse(ValueRef::Document(schema.as_ref()), &ParseLocation::root())
            .expect("schema");
        let doc = document(&format!(r#"{{"n":{value}}}"#));
        let violations = schema
            .violations(doc.as_ref(), &Fuel::default())
            .expect("fuel");
        violations[0].detail.clone()
    };
    for (rule, value, detail) in [
        (r#"{"type":"number"}"#, r#""abc""#, "expected a number"),
        (
            r#"{"bsonType":["int","null"]}"#,
            "1.5",
            "expected null or an int",
        ),
        (r#"{"minimum":0}"#, "-1", "expected at least 0"),
        (
            r#"{"maximum":9.5,"exclusiveMaximum":true}"#,
            "10",
            "expected less than 9.5",
        ),
        (r#"{"multipleOf":5}"#, "3", "expected a multiple of 5"),
        (
            r#"{"minLength":2}"#,
            r#""x""#,
            "expected at least 2 characters",
        ),
        (r#"{"maxItems":1}"#, "[1,2]", "expected at most 1 elements"),
        (
            r#"{"enum":["a"]}"#,
            r#""b""#,
            "expected one of the allowed values",
        ),
    ] {
        assert_eq!(expected(rule, value), detail);
    }
}

#[test]
fn a_schema_names_all_that_is_wrong() {
    let schema = document(
        r#"{"required":["name"],"properties":{"age":{"bsonType":"int","minimum":0},"tags":{"items":{"type":"string"}}},"additionalProperties":false}"#,
    );
    let schema =
        Schema::parse(ValueRef::Document(schema.as_ref()), &ParseLocation::root()).expect("schema");
    let doc = document(r#"{"age":-1,"tags":["x",5],"other":1}"#);
    let violations = schema
        .violations(doc.as_ref(), &Fuel::default())
        .expect("fuel");
    let found: Vec<(&str, &str)> = violations
        .iter()
        .map(|found| (found.pointer.as_str(), found.keyword))
        .collect();
    assert_eq!(
        found,
        [
            ("/name", "required"),
            ("/age", "minimum"),
            ("/tags/1", "type"),
            ("/other", "additionalProperties")
        ]
    );
}
