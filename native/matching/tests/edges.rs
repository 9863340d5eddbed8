//! Edge cases of an index of predicates. The names of the tests state the reasons.

use crate::support::{GROUP, MatcherWithModel, filter};
use rillbase_matching::{Class, Matcher, QueryId, placement};
use rillbase_query::bson::{DocumentBuf, DocumentWriter, ValueRef};

/// One query on some documents, by the index and alone.
fn check(query: &str, class: Class, documents: &[&str]) {
    let mut beside = MatcherWithModel::new();
    let id = beside.add(query).expect("a filter");
    assert_eq!(beside.matcher.explain(id).class, class, "{query}");
    for text in documents {
        beside.check(text);
    }
}

fn matches_of(matcher: &mut Matcher, group: [u8; 16], body: &DocumentBuf) -> Vec<QueryId> {
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    matcher.matches(&group, body.as_ref(), &mut found, &mut failed);
    assert!(failed.is_empty());
    found
}

#[test]
fn equal_numbers_of_different_types_have_one_key() {
    check(
        r#"{"a":1}"#,
        Class::Equality,
        &[
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":{"$numberLong":"1"}}"#,
            r#"{"a":{"$numberDecimal":"1.00"}}"#,
            r#"{"a":"1"}"#,
        ],
    );
}

#[test]
fn zero_equals_minus_zero_and_not_a_number_equals_itself() {
    let documents = [
        r#"{"a":0}"#,
        r#"{"a":-0.0}"#,
        r#"{"a":{"$numberDecimal":"-0"}}"#,
        r#"{"a":{"$numberDouble":"NaN"}}"#,
        r#"{"a":{"$numberDecimal":"NaN"}}"#,
    ];
    check(r#"{"a":-0.0}"#, Class::Equality, &documents);
    check(
        r#"{"a":{"$numberDouble":"NaN"}}"#,
        Class::Equality,
        &documents,
    );
    check(
        r#"{"a":{"$lte":{"$numberDouble":"NaN"}}}"#,
        Class::Range,
        &documents,
    );
    check(r#"{"a":{"$lt":1}}"#, Class::Range, &documents);
}

#[test]
fn integers_beyond_exact_doubles_are_distinguished() {
    let documents = [
        r#"{"a":{"$numberLong":"9007199254740992"}}"#,
        r#"{"a":{"$numberLong":"9007199254740993"}}"#,
        r#"{"a":9007199254740992.0}"#,
        r#"{"a":{"$numberDecimal":"9007199254740992.5"}}"#,
    ];
    check(
        r#"{"a":{"$gt":{"$numberLong":"9007199254740992"}}}"#,
        Class::Range,
        &documents,
    );
    check(
        r#"{"a":{"$lte":{"$numberLong":"9007199254740992"}}}"#,
        Class::Range,
        &documents,
    );
}

#[test]
fn two_elements_may_meet_two_bounds_one_each() {
    check(
        r#"{"a":{"$gt":5,"$lt":7}}"#,
        Class::Range,
        &[
            r#"{"a":6}"#,
            r#"{"a":[1,9]}"#,
            r#"{"a":[8,9]}"#,
            r#"{"a":[[6]]}"#,
            r#"{"a":[]}"#,
        ],
    );
    check(
        r#"{"a":{"$gt":7,"$lt":5}}"#,
        Class::Range,
        &[r#"{"a":6}"#, r#"{"a":[1,9]}"#],
    );
}

#[test]
fn one_element_must_meet_both_bounds_of_an_element_match() {
    check(
        r#"{"a":{"$elemMatch":{"$gt":5,"$lt":7}}}"#,
        Class::Range,
        &[
            r#"{"a":6}"#,
            r#"{"a":[1,9]}"#,
            r#"{"a":[1,6]}"#,
            r#"{"a":[[6]]}"#,
        ],
    );
    let many: Vec<String> = (0..100).map(|int| (int * 10).to_string()).collect();
    let many = format!(r#"{{"a":[{}]}}"#, many.join(","));
    check(
        r#"{"a":{"$elemMatch":{"$gt":495,"$lt":505}}}"#,
        Class::Range,
        &[&many],
    );
    check(
        r#"{"a":{"$elemMatch":{"$gt":491,"$lt":499}}}"#,
        Class::Range,
        &[&many],
    );
}

#[test]
fn null_means_missing_too_but_an_array_without_documents_has_nothing() {
    check(
        r#"{"a.b":null}"#,
        Class::Equality,
        &[
            "{}",
            r#"{"a":1}"#,
            r#"{"a":{"b":null}}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":[]}"#,
            r#"{"a":[1]}"#,
            r#"{"a":[{"b":1},{}]}"#,
            r#"{"a":[{"b":1},{"b":null}]}"#,
            r#"{"a":{"b":{"$undefined":true}}}"#,
        ],
    );
}

#[test]
fn missing_fields_may_be_hidden_by_an_array_read_as_a_document() {
    check(
        r#"{"a.3":{"$exists":false}}"#,
        Class::Existence,
        &[
            "{}",
            r#"{"a":[[1,2,3,4]]}"#,
            r#"{"a":[1,2,3,4]}"#,
            r#"{"a":{"3":1}}"#,
        ],
    );
}

#[test]
fn the_first_of_two_fields_of_one_name_counts() {
    let mut beside = MatcherWithModel::new();
    for query in [
        r#"{"a.b":{"$exists":false}}"#,
        r#"{"a.b":null}"#,
        r#"{"a.b":1}"#,
        r#"{"a":5}"#,
    ] {
        beside.add(query);
    }
    let mut inner = DocumentWriter::new();
    inner.append("b", ValueRef::Int32(1));
    let inner = DocumentBuf::from(inner);
    let mut writer = DocumentWriter::new();
    writer.append("a", ValueRef::Int32(5));
    writer.append("a", ValueRef::Document(inner.as_ref()));
    let body = DocumentBuf::from(writer);
    let ids = matches_of(&mut beside.matcher, GROUP, &body);
    for (id, (text, filter)) in &beside.queries {
        assert_eq!(
            Ok(ids.contains(id)),
            filter.matches(body.as_ref()),
            "{text}"
        );
    }
}

#[test]
fn a_position_and_a_key_are_both_meant_by_a_number() {
    for query in [
        r#"{"a.0":2}"#,
        r#"{"a.0.b":2}"#,
        r#"{"a.0":[2]}"#,
        r#"{"a.0":{"$gt":1,"$lt":3}}"#,
    ] {
        let mut beside = MatcherWithModel::new();
        beside.add(query);
        for text in [
            r#"{"a":[2]}"#,
            r#"{"a":{"0":2}}"#,
            r#"{"a":[[2]]}"#,
            r#"{"a":[{"0":2}]}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[{"b":2}]}"#,
            r#"{"a":[[{"b":2}]]}"#,
        ] {
            beside.check(text);
        }
    }
}

#[test]
fn an_element_that_is_an_array_is_a_document_for_an_element_match() {
    for query in [
        r#"{"a":{"$elemMatch":{"0":1}}}"#,
        r#"{"a":{"$elemMatch":{"b":null}}}"#,
        r#"{"a":{"$elemMatch":{"b":{"$exists":false}}}}"#,
        r#"{"a.0":{"$elemMatch":{"$gt":0}}}"#,
    ] {
        let mut beside = MatcherWithModel::new();
        beside.add(query);
        for text in [
            r#"{"a":[[1]]}"#,
            r#"{"a":[[2]]}"#,
            r#"{"a":[{"b":1}]}"#,
            r#"{"a":[{"b":1},{}]}"#,
            r#"{"a":[]}"#,
        ] {
            beside.check(text);
        }
    }
}

#[test]
fn an_expression_is_also_equal_to_itself_as_a_value() {
    check(
        r#"{"a":{"$regex":"abc","$options":"i"}}"#,
        Class::Literal,
        &[
            r#"{"a":"xABCx"}"#,
            r#"{"a":"xABx"}"#,
            r#"{"a":{"$symbol":"abc"}}"#,
            r#"{"a":{"$regularExpression":{"pattern":"abc","options":"i"}}}"#,
            r#"{"a":{"$regularExpression":{"pattern":"abc","options":""}}}"#,
            r#"{"a":["x","abc"]}"#,
        ],
    );
}

#[test]
fn letters_that_fold_to_others_are_found_in_any_case() {
    check(
        r#"{"a":{"$regex":"kiss","$options":"i"}}"#,
        Class::Literal,
        &[
            "{\"a\":\"\u{212A}iſS\"}",
            r#"{"a":"KISS"}"#,
            r#"{"a":"kis"}"#,
        ],
    );
}

#[test]
fn text_that_begins_alike_for_longer_than_a_point_is_still_in_order() {
    let alike = "https://example.com/a/long/path/";
    let query = format!(r#"{{"a":{{"$gte":"{alike}b","$lt":"{alike}d"}}}}"#);
    let documents: Vec<String> = ["a", "b", "c", "d"]
        .iter()
        .map(|end| format!(r#"{{"a":"{alike}{end}"}}"#))
        .collect();
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    check(&query, Class::Range, &documents);
}

#[test]
fn minkey_and_maxkey_compare_with_everything_and_with_nothing() {
    let documents = [
        "{}",
        r#"{"a":1}"#,
        r#"{"a":null}"#,
        r#"{"a":{"$maxKey":1}}"#,
    ];
    check(
        r#"{"a":{"$gt":{"$minKey":1}}}"#,
        Class::Residual,
        &documents,
    );
    check(
        r#"{"a":{"$lte":{"$maxKey":1}}}"#,
        Class::Residual,
        &documents,
    );
    check(r#"{"a":{"$minKey":1}}"#, Class::Equality, &documents);
}

#[test]
fn near_the_poles_and_the_date_line_places_are_neighbours() {
    let documents = [
        r#"{"a":{"type":"Point","coordinates":[-179.999,0]}}"#,
        r#"{"a":{"type":"Point","coordinates":[179.999,0]}}"#,
        r#"{"a":{"type":"Point","coordinates":[45,89.999]}}"#,
        r#"{"a":{"type":"LineString","coordinates":[[-135,89],[45,89.5]]}}"#,
        r#"{"a":{"type":"Polygon","coordinates":[[[-170,-80],[170,-80],[180,80],[-170,-80]]]}}"#,
        r#"{"a":[179.999,0]}"#,
        r#"{"a":[1000,0]}"#,
    ];
    for query in [
        r#"{"a":{"$geoWithin":{"$centerSphere":[[180,0],0.001]}}}"#,
        r#"{"a":{"$geoWithin":{"$centerSphere":[[0,90],0.001]}}}"#,
        r#"{"a":{"$geoIntersects":{"$geometry":{"type":"Point","coordinates":[180,0]}}}}"#,
        r#"{"a":{"$nearSphere":{"$geometry":{"type":"Point","coordinates":[180,0]},"$maxDistance":1000}}}"#,
        r#"{"a":{"$geoWithin":{"$box":[[179,-1],[1001,1]]}}}"#,
    ] {
        check(query, Class::Geo, &documents);
    }
}

#[test]
fn a_loop_that_crosses_itself_is_not_sought_on_one_side_of_the_sphere_only() {
    let query = r#"{"a":{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,0],[20,20],[20,0],[0,30],[0,0]]]}}}}"#;
    let mut beside = MatcherWithModel::new();
    beside.add(query);
    for longitude in (-180..180).step_by(5) {
        for latitude in (-90..=90).step_by(5) {
            beside.check(&format!(
                r#"{{"a":{{"type":"Point","coordinates":[{longitude},{latitude}]}}}}"#
            ));
        }
    }
}

#[test]
fn a_text_of_stop_words_never_matches_and_waits_for_nothing() {
    check(
        r#"{"$text":{"$search":"the and of"}}"#,
        Class::Text,
        &[r#"{"a":"the and of"}"#],
    );
}

#[test]
fn everything_and_nothing_need_no_evaluation() {
    check("{}", Class::Everything, &["{}", r#"{"a":1}"#]);
    check(r#"{"a":{"$in":[]}}"#, Class::Never, &["{}", r#"{"a":1}"#]);
    assert_eq!(placement(&filter("{}")).class, Class::Everything);
}

#[test]
fn a_disjunction_waits_for_each_branch() {
    check(
        r#"{"$or":[{"a":1},{"b":{"$gt":5}},{"c":{"$exists":false}}]}"#,
        Class::Mixed,
        &[
            r#"{"a":1,"c":0}"#,
            r#"{"b":6,"c":0}"#,
            r#"{"c":0}"#,
            "{}",
            r#"{"b":5,"c":0}"#,
        ],
    );
    let mut beside = MatcherWithModel::new();
    let id = beside
        .add(r#"{"$or":[{"a":1},{"b":{"$ne":5}}]}"#)
        .expect("a filter");
    assert_eq!(beside.matcher.explain(id).class, Class::Residual);
}
