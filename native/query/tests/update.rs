//! Results of updates, case by case, as in MongoDB 8.

use crate::common::{any_document, any_value, document};
use proptest::prelude::*;
use rillbase_query::bson::ValueRef;
use rillbase_query::ejson::{Form, document_to_string};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::{Error, ParseLocation};
use rillbase_query::filter::Filter;
use rillbase_query::order::documents;
use rillbase_query::update::{Applied, Update};

fn update(doc: &str, text: &str, filters: &str) -> Result<String, Error> {
    let filters = document(&format!(r#"{{"f":{filters}}}"#));
    let filters = filters
        .as_ref()
        .get("f")
        .and_then(|value: ValueRef<'_>| value.as_array());
    let parsed = Update::parse(document(text).as_ref(), filters, &ParseLocation::root())?;
    let environment = EvaluationContext::at(1_700_000_000_123);
    let after = parsed.apply(document(doc).as_ref(), Applied::default(), &environment)?;
    Ok(document_to_string(after.as_ref(), Form::Relaxed))
}

/// Document, update, document after it.
const CHANGES: &[(&str, &str, &str)] = &[
    (
        r#"{"a":1}"#,
        r#"{"$set":{"a":2,"b":3}}"#,
        r#"{"a":2,"b":3}"#,
    ),
    (
        r#"{}"#,
        r#"{"$set":{"z":1,"a":1,"10":1,"9":1}}"#,
        r#"{"9":1,"10":1,"a":1,"z":1}"#,
    ),
    (r#"{}"#, r#"{"$set":{"a.b.c":1}}"#, r#"{"a":{"b":{"c":1}}}"#),
    (r#"{}"#, r#"{"$set":{"a.0":1}}"#, r#"{"a":{"0":1}}"#),
    (r#"{"a":[1,2]}"#, r#"{"$set":{"a.1":5}}"#, r#"{"a":[1,5]}"#),
    (
        r#"{"a":[1]}"#,
        r#"{"$set":{"a.3":5}}"#,
        r#"{"a":[1,null,null,5]}"#,
    ),
    (
        r#"{"a":[{"b":1}]}"#,
        r#"{"$set":{"a.0.b":2,"a.0.c":3}}"#,
        r#"{"a":[{"b":2,"c":3}]}"#,
    ),
    (
        r#"{"a":[]}"#,
        r#"{"$set":{"a.1.b":2}}"#,
        r#"{"a":[null,{"b":2}]}"#,
    ),
    (
        r#"{"a":1}"#,
        r#"{"$set":{"a":{"x":[1]}}}"#,
        r#"{"a":{"x":[1]}}"#,
    ),
    (r#"{"a":1}"#, r#"{}"#, r#"{"a":1}"#),
    (
        r#"{"_id":1,"a":1}"#,
        r#"{"$set":{"_id":1.0,"a":2}}"#,
        r#"{"_id":1.0,"a":2}"#,
    ),
    (r#"{"a":1}"#, r#"{"$setOnInsert":{"b":1}}"#, r#"{"a":1}"#),
    // $unset keeps the positions of an array.
    (
        r#"{"a":1,"b":2}"#,
        r#"{"$unset":{"a":"","zz":1}}"#,
        r#"{"b":2}"#,
    ),
    (
        r#"{"a":[1,2,3]}"#,
        r#"{"$unset":{"a.1":1}}"#,
        r#"{"a":[1,null,3]}"#,
    ),
    (
        r#"{"a":{"b":{"c":1}}}"#,
        r#"{"$unset":{"a.b.c":1}}"#,
        r#"{"a":{"b":{}}}"#,
    ),
    (r#"{"a":5}"#, r#"{"$unset":{"a.b":1}}"#, r#"{"a":5}"#),
    (r#"{"a":[1]}"#, r#"{"$unset":{"a.b":1}}"#, r#"{"a":[1]}"#),
    // Numbers keep the narrowest type that the rules allow.
    (
        r#"{"a":1}"#,
        r#"{"$inc":{"a":2,"b":5}}"#,
        r#"{"a":3,"b":5}"#,
    ),
    (
        r#"{"a":2147483647}"#,
        r#"{"$inc":{"a":1}}"#,
        r#"{"a":2147483648}"#,
    ),
    (r#"{"a":1}"#, r#"{"$inc":{"a":1.5}}"#, r#"{"a":2.5}"#),
    (
        r#"{"a":{"$numberDecimal":"0.1"}}"#,
        r#"{"$inc":{"a":{"$numberDecimal":"0.2"}}}"#,
        r#"{"a":{"$numberDecimal":"0.3"}}"#,
    ),
    (
        r#"{"a":{"$numberLong":"9007199254740993"}}"#,
        r#"{"$inc":{"a":-1}}"#,
        r#"{"a":9007199254740992}"#,
    ),
    (
        r#"{"a":1}"#,
        r#"{"$inc":{"a":{"$numberDouble":"NaN"}}}"#,
        r#"{"a":{"$numberDouble":"NaN"}}"#,
    ),
    (
        r#"{"a":3}"#,
        r#"{"$mul":{"a":4,"b":7,"c":1.5}}"#,
        r#"{"a":12,"b":0,"c":0.0}"#,
    ),
    (
        r#"{"a":5,"b":5}"#,
        r#"{"$min":{"a":3,"b":9,"c":1}}"#,
        r#"{"a":3,"b":5,"c":1}"#,
    ),
    (
        r#"{"a":5,"b":5}"#,
        r#"{"$max":{"a":3,"b":9,"c":1}}"#,
        r#"{"a":5,"b":9,"c":1}"#,
    ),
    (r#"{"a":5}"#, r#"{"$max":{"a":"x"}}"#, r#"{"a":"x"}"#),
    (r#"{"a":5}"#, r#"{"$min":{"a":null}}"#, r#"{"a":null}"#),
    (r#"{"a":1.0}"#, r#"{"$max":{"a":1}}"#, r#"{"a":1.0}"#),
    (
        r#"{"a":13}"#,
        r#"{"$bit":{"a":{"and":10},"b":{"or":5}}}"#,
        r#"{"a":8,"b":5}"#,
    ),
    (
        r#"{"a":1}"#,
        r#"{"$bit":{"a":{"xor":{"$numberLong":"4294967296"}}}}"#,
        r#"{"a":4294967297}"#,
    ),
    // $rename moves; a missing source does nothing.
    (
        r#"{"a":1,"b":2}"#,
        r#"{"$rename":{"a":"c"}}"#,
        r#"{"b":2,"c":1}"#,
    ),
    (r#"{"a":1,"b":2}"#, r#"{"$rename":{"a":"b"}}"#, r#"{"b":1}"#),
    (
        r#"{"a":{"x":1}}"#,
        r#"{"$rename":{"a.x":"b.y"}}"#,
        r#"{"a":{},"b":{"y":1}}"#,
    ),
    (r#"{"b":1}"#, r#"{"$rename":{"a":"b"}}"#, r#"{"b":1}"#),
    (
        r#"{}"#,
        r#"{"$currentDate":{"a":true,"b":{"$type":"timestamp"}}}"#,
        r#"{"a":{"$date":"2023-11-14T22:13:20.123Z"},"b":{"$timestamp":{"t":1700000000,"i":1}}}"#,
    ),
    // $push
    (
        r#"{"a":[1]}"#,
        r#"{"$push":{"a":2,"b":[3]}}"#,
        r#"{"a":[1,2],"b":[[3]]}"#,
    ),
    (
        r#"{"a":[1]}"#,
        r#"{"$push":{"a":{"$each":[3,2]}}}"#,
        r#"{"a":[1,3,2]}"#,
    ),
    (
        r#"{"a":[1]}"#,
        r#"{"$push":{"a":{"$each":[3,2],"$position":0}}}"#,
        r#"{"a":[3,2,1]}"#,
    ),
    (
        r#"{"a":[1,2,3]}"#,
        r#"{"$push":{"a":{"$each":[9],"$position":-1}}}"#,
        r#"{"a":[1,2,9,3]}"#,
    ),
    (
        r#"{"a":[3,1]}"#,
        r#"{"$push":{"a":{"$each":[2],"$sort":1}}}"#,
        r#"{"a":[1,2,3]}"#,
    ),
    (
        r#"{"a":[3,1]}"#,
        r#"{"$push":{"a":{"$each":[2],"$sort":-1,"$slice":2}}}"#,
        r#"{"a":[3,2]}"#,
    ),
    (
        r#"{"a":[1,2,3]}"#,
        r#"{"$push":{"a":{"$each":[4],"$slice":-2}}}"#,
        r#"{"a":[3,4]}"#,
    ),
    (
        r#"{"a":[1]}"#,
        r#"{"$push":{"a":{"$each":[],"$slice":0}}}"#,
        r#"{"a":[]}"#,
    ),
    (
        r#"{"a":[{"s":2,"n":1},{"s":1,"n":2}]}"#,
        r#"{"$push":{"a":{"$each":[{"s":2,"n":0}],"$sort":{"s":-1,"n":1}}}}"#,
        r#"{"a":[{"s":2,"n":0},{"s":2,"n":1},{"s":1,"n":2}]}"#,
    ),
    (r#"{}"#, r#"{"$push":{"a.b":1}}"#, r#"{"a":{"b":[1]}}"#),
    // $addToSet compares as values are compared.
    (
        r#"{"a":[1,2]}"#,
        r#"{"$addToSet":{"a":2.0}}"#,
        r#"{"a":[1,2]}"#,
    ),
    (
        r#"{"a":[1]}"#,
        r#"{"$addToSet":{"a":{"$each":[3,1,3]}}}"#,
        r#"{"a":[1,3]}"#,
    ),
    (
        r#"{"a":[{"x":1,"y":2}]}"#,
        r#"{"$addToSet":{"a":{"y":2,"x":1}}}"#,
        r#"{"a":[{"x":1,"y":2},{"y":2,"x":1}]}"#,
    ),
    (
        r#"{}"#,
        r#"{"$addToSet":{"a":{"$each":[]}}}"#,
        r#"{"a":[]}"#,
    ),
    (
        r#"{"a":[1]}"#,
        r#"{"$addToSet":{"a":[1]}}"#,
        r#"{"a":[1,[1]]}"#,
    ),
    // $pop, $pull, $pullAll
    (r#"{"a":[1,2,3]}"#, r#"{"$pop":{"a":1}}"#, r#"{"a":[1,2]}"#),
    (r#"{"a":[1,2,3]}"#, r#"{"$pop":{"a":-1}}"#, r#"{"a":[2,3]}"#),
    (r#"{"a":[]}"#, r#"{"$pop":{"a":1,"zz":1}}"#, r#"{"a":[]}"#),
    (
        r#"{"a":[1,2,1.0,"1"]}"#,
        r#"{"$pull":{"a":1}}"#,
        r#"{"a":[2,"1"]}"#,
    ),
    (
        r#"{"a":[1,5,9]}"#,
        r#"{"$pull":{"a":{"$gte":5}}}"#,
        r#"{"a":[1]}"#,
    ),
    (
        r#"{"a":[{"s":8,"i":"B","x":1},{"s":8,"i":"C"},5]}"#,
        r#"{"$pull":{"a":{"s":8,"i":"B"}}}"#,
        r#"{"a":[{"s":8,"i":"C"},5]}"#,
    ),
    (
        r#"{"a":["ab","ba"]}"#,
        r#"{"$pull":{"a":{"$regularExpression":{"pattern":"^a","options":""}}}}"#,
        r#"{"a":["ba"]}"#,
    ),
    (
        r#"{"a":[[1,2],[2,1]]}"#,
        r#"{"$pull":{"a":[1,2]}}"#,
        r#"{"a":[[2,1]]}"#,
    ),
    (
        r#"{"a":[{"b":[1]},{"b":[2]}]}"#,
        r#"{"$pull":{"a":{"b":{"$elemMatch":{"$gt":1}}}}}"#,
        r#"{"a":[{"b":[1]}]}"#,
    ),
    (
        r#"{"a":[null,1,{}]}"#,
        r#"{"$pull":{"a":null}}"#,
        r#"{"a":[1,{}]}"#,
    ),
    (
        r#"{"a":[1,2,3,2]}"#,
        r#"{"$pullAll":{"a":[2,3.0]}}"#,
        r#"{"a":[1]}"#,
    ),
    (
        r#"{"b":1}"#,
        r#"{"$pull":{"a":1},"$pullAll":{"c":[1]}}"#,
        r#"{"b":1}"#,
    ),
    // All elements.
    (
        r#"{"a":[1,2]}"#,
        r#"{"$inc":{"a.$[]":10}}"#,
        r#"{"a":[11,12]}"#,
    ),
    (
        r#"{"a":[{"b":[1]},{"b":[2,3]}]}"#,
        r#"{"$mul":{"a.$[].b.$[]":2}}"#,
        r#"{"a":[{"b":[2]},{"b":[4,6]}]}"#,
    ),
    (
        r#"{"a":[{"b":1},{}]}"#,
        r#"{"$unset":{"a.$[].b":1}}"#,
        r#"{"a":[{},{}]}"#,
    ),
];

#[test]
fn updates_change_documents_as_mongodb_does() {
    for (doc, text, after) in CHANGES {
        let got =
            update(doc, text, "[]").unwrap_or_else(|error| panic!("{text} on {doc}: {error}"));
        assert_eq!(&got, after, "{text} on {doc}");
    }
}

#[test]
fn array_filters_choose_elements() {
    for (doc, text, filters, after) in [
        (
            r#"{"a":[1,5,9]}"#,
            r#"{"$set":{"a.$[x]":0}}"#,
            r#"[{"x":{"$gte":5}}]"#,
            r#"{"a":[1,0,0]}"#,
        ),
        (
            r#"{"a":[{"b":1,"c":1},{"b":2}]}"#,
            r#"{"$set":{"a.$[e].c":7}}"#,
            r#"[{"e.b":{"$gt":1}}]"#,
            r#"{"a":[{"b":1,"c":1},{"b":2,"c":7}]}"#,
        ),
        (
            r#"{"a":[{"b":1,"c":1},{"b":2,"c":3}]}"#,
            r#"{"$inc":{"a.$[e].c":1}}"#,
            r#"[{"$or":[{"e.b":2},{"e.c":9}]}]"#,
            r#"{"a":[{"b":1,"c":1},{"b":2,"c":4}]}"#,
        ),
        (
            r#"{"a":[{"b":[1,2]},{"b":[3]}]}"#,
            r#"{"$set":{"a.$[].b.$[y]":0}}"#,
            r#"[{"y":{"$ne":2}}]"#,
            r#"{"a":[{"b":[0,2]},{"b":[0]}]}"#,
        ),
    ] {
        assert_eq!(update(doc, text, filters).expect(text), after);
    }
    for (text, filters, pointer) in [
        (r#"{"$set":{"a.$[x]":0}}"#, "[]", "/$set/a.$[x]"),
        (r#"{"$set":{"a":0}}"#, r#"[{"x":1}]"#, "/array_filters/0"),
        (
            r#"{"$set":{"a.$[x]":0}}"#,
            r#"[{"x":1},{"x":2}]"#,
            "/array_filters/1",
        ),
        (
            r#"{"$set":{"a.$[x]":0}}"#,
            r#"[{"x":1,"y":2}]"#,
            "/array_filters/0",
        ),
        (
            r#"{"$set":{"a.$[X]":0}}"#,
            r#"[{"X":1}]"#,
            "/array_filters/0",
        ),
    ] {
        let error = update("{}", text, filters).expect_err(text);
        assert_eq!(error.pointer, pointer, "{text} {filters}: {error}");
    }
}

#[test]
fn the_positional_operator_stands_for_where_the_filter_matched() {
    for (filter, doc, text, after) in [
        (
            r#"{"a":5}"#,
            r#"{"a":[1,5,5]}"#,
            r#"{"$set":{"a.$":0}}"#,
            r#"{"a":[1,0,5]}"#,
        ),
        (
            r#"{"a":{"$elemMatch":{"b":2}}}"#,
            r#"{"a":[{"b":1},{"b":2}]}"#,
            r#"{"$set":{"a.$.c":0}}"#,
            r#"{"a":[{"b":1},{"b":2,"c":0}]}"#,
        ),
        (
            r#"{"a.b":2}"#,
            r#"{"a":[{"b":1},{"b":[0,2]}]}"#,
            r#"{"$set":{"a.$.c":0}}"#,
            r#"{"a":[{"b":1},{"b":[0,2],"c":0}]}"#,
        ),
    ] {
        let (filter, doc) = (
            Filter::parse(document(filter).as_ref()).expect(filter),
            document(doc),
        );
        let position = filter
            .position_in(doc.as_ref(), &EvaluationContext::default())
            .expect("fuel")
            .expect("a match");
        let parsed =
            Update::parse(document(text).as_ref(), None, &ParseLocation::root()).expect(text);
        assert!(parsed.is_positional());
        let applied = Applied {
            position,
            inserting: false,
        };
        let got = parsed
            .apply(doc.as_ref(), applied, &EvaluationContext::default())
            .expect(text);
        assert_eq!(document_to_string(got.as_ref(), Form::Relaxed), after);
    }
    assert!(update(r#"{"a":[1]}"#, r#"{"$set":{"a.$":0}}"#, "[]").is_err());
}

/// Document, update, code and pointer of the refusal.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    (r#"{}"#, r#"{"a":1}"#, "invalid_update", "/a"),
    (
        r#"{}"#,
        r#"{"$foo":{"a":1}}"#,
        "unsupported_operator",
        "/$foo",
    ),
    (r#"{}"#, r#"{"$set":1}"#, "invalid_update", "/$set"),
    (
        r#"{}"#,
        r#"{"$set":{"a":1},"$inc":{"a":1}}"#,
        "invalid_update",
        "/$inc/a",
    ),
    (
        r#"{}"#,
        r#"{"$set":{"a":1,"a.b":1}}"#,
        "invalid_update",
        "/$set/a.b",
    ),
    (
        r#"{}"#,
        r#"{"$set":{"a..b":1}}"#,
        "invalid_update",
        "/$set/a..b",
    ),
    (r#"{}"#, r#"{"$set":{"":1}}"#, "invalid_update", "/$set/"),
    (
        r#"{}"#,
        r#"{"$set":{"a.$b":1}}"#,
        "invalid_update",
        "/$set/a.$b",
    ),
    (
        r#"{"a":5}"#,
        r#"{"$set":{"a.b":1}}"#,
        "invalid_update",
        "/$set/a.b",
    ),
    (
        r#"{"a":null}"#,
        r#"{"$set":{"a.b":1}}"#,
        "invalid_update",
        "/$set/a.b",
    ),
    (
        r#"{"a":[1]}"#,
        r#"{"$set":{"a.b":1}}"#,
        "invalid_update",
        "/$set/a.b",
    ),
    (
        r#"{"a":[]}"#,
        r#"{"$set":{"a.2000000":1}}"#,
        "invalid_update",
        "/$set/a.2000000",
    ),
    (
        r#"{"a":"x"}"#,
        r#"{"$inc":{"a":1}}"#,
        "invalid_update",
        "/$inc/a",
    ),
    (
        r#"{"a":null}"#,
        r#"{"$inc":{"a":1}}"#,
        "invalid_update",
        "/$inc/a",
    ),
    (
        r#"{}"#,
        r#"{"$inc":{"a":"1"}}"#,
        "invalid_update",
        "/$inc/a",
    ),
    (
        r#"{"a":{"$numberLong":"9223372036854775807"}}"#,
        r#"{"$inc":{"a":1}}"#,
        "invalid_update",
        "/$inc/a",
    ),
    (
        r#"{"a":1}"#,
        r#"{"$push":{"a":1}}"#,
        "invalid_update",
        "/$push/a",
    ),
    (
        r#"{"a":1}"#,
        r#"{"$pull":{"a":1}}"#,
        "invalid_update",
        "/$pull/a",
    ),
    (
        r#"{}"#,
        r#"{"$push":{"a":{"$each":1}}}"#,
        "invalid_update",
        "/$push/a/$each",
    ),
    (
        r#"{}"#,
        r#"{"$push":{"a":{"$each":[],"$foo":1}}}"#,
        "invalid_update",
        "/$push/a/$foo",
    ),
    (
        r#"{}"#,
        r#"{"$push":{"a":{"$each":[],"$sort":{"$updated":1}}}}"#,
        "invalid_update",
        "/$push/a/$sort",
    ),
    (r#"{}"#, r#"{"$pop":{"a":2}}"#, "invalid_update", "/$pop/a"),
    (
        r#"{}"#,
        r#"{"$bit":{"a":{"and":1.5}}}"#,
        "invalid_update",
        "/$bit/a/and",
    ),
    (
        r#"{"a":1.5}"#,
        r#"{"$bit":{"a":{"and":1}}}"#,
        "invalid_update",
        "/$bit/a",
    ),
    (
        r#"{}"#,
        r#"{"$currentDate":{"a":"x"}}"#,
        "invalid_update",
        "/$currentDate/a",
    ),
    (
        r#"{"a":1}"#,
        r#"{"$rename":{"a":"a"}}"#,
        "invalid_update",
        "/$rename/a",
    ),
    (
        r#"{"a":[1]}"#,
        r#"{"$rename":{"a.0":"b"}}"#,
        "invalid_update",
        "/$rename/a.0",
    ),
    (
        r#"{"a":1}"#,
        r#"{"$inc":{"a.$[]":1}}"#,
        "invalid_update",
        "/$inc/a.$[]",
    ),
    (
        r#"{}"#,
        r#"{"$inc":{"a.$[]":1}}"#,
        "invalid_update",
        "/$inc/a.$[]",
    ),
    (
        r#"{"_id":1}"#,
        r#"{"$set":{"_id":2}}"#,
        "invalid_update",
        "",
    ),
    (
        r#"{"_id":1}"#,
        r#"{"$unset":{"_id":2}}"#,
        "invalid_update",
        "",
    ),
    (
        r#"{}"#,
        r#"{"$pull":{"a":{"$foo":1}}}"#,
        "unsupported_operator",
        "/$pull/a//$foo",
    ),
];

#[test]
fn invalid_updates_are_rejected_with_a_pointer() {
    for (doc, text, code, pointer) in REFUSED {
        let error = update(doc, text, "[]").expect_err(text);
        assert_eq!(
            (error.code.as_str(), error.pointer.as_str()),
            (*code, *pointer),
            "{text} on {doc}: {error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn set_values_can_be_read(doc in any_document(), value in any_value(), path in prop::sample::select(vec!["a", "x.y", "b", "z.0"])) {
        if let Ok(after) = update(&doc, &format!(r#"{{"$set":{{"{path}":{value}}}}}"#), "[]") {
            let again = update(&after, &format!(r#"{{"$set":{{"{path}":{value}}}}}"#), "[]").expect("again");
            prop_assert_eq!(&again, &after);
            let unset = update(&after, &format!(r#"{{"$unset":{{"{path}":1}}}}"#), "[]").expect("unset");
            prop_assert!(documents(document(&unset).as_ref(), document(&after).as_ref()).is_ne());
        }
    }
}
