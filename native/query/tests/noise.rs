//! Structured noise: documents made of operator names, odd values and nesting. The result is always
//! a value or an error, never a panic; overflow checks are enabled in tests.

use crate::common::{any_document, document, scalar};
use proptest::prelude::*;
use rillbase_query::bson::ValueRef;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::ParseLocation;
use rillbase_query::expression::Expression;
use rillbase_query::filter::Filter;
use rillbase_query::fuel::Fuel;
use rillbase_query::index::{FieldOrder, IndexField, index_keys};
use rillbase_query::merge_patch::merge_patch;
use rillbase_query::path::FieldPath;
use rillbase_query::projection::{Matched, Projection};
use rillbase_query::sort::{Sort, SystemFields};
use rillbase_query::update::{Applied, Update};

const FILTERS: &[&str] = &[
    "a",
    "b",
    "a.b",
    "a.0",
    "$and",
    "$or",
    "$nor",
    "$not",
    "$eq",
    "$gt",
    "$in",
    "$nin",
    "$all",
    "$elemMatch",
    "$size",
    "$mod",
    "$type",
    "$exists",
    "$regex",
    "$options",
    "$bitsAllSet",
    "$expr",
    "$jsonSchema",
    "$text",
    "$search",
    "$geoWithin",
    "$geoIntersects",
    "$near",
    "$geometry",
    "$box",
    "$center",
    "$polygon",
    "type",
    "coordinates",
    "properties",
    "items",
    "minimum",
    "multipleOf",
    "enum",
    "required",
    "anyOf",
    "pattern",
    "bsonType",
];
const EXPRESSIONS: &[&str] = &[
    "$add",
    "$subtract",
    "$multiply",
    "$divide",
    "$mod",
    "$pow",
    "$round",
    "$trunc",
    "$abs",
    "$sqrt",
    "$log",
    "$bitNot",
    "$concat",
    "$substrCP",
    "$substrBytes",
    "$split",
    "$indexOfCP",
    "$indexOfBytes",
    "$strcasecmp",
    "$toUpper",
    "$arrayElemAt",
    "$slice",
    "$range",
    "$indexOfArray",
    "$concatArrays",
    "$reverseArray",
    "$setUnion",
    "$size",
    "$in",
    "$toInt",
    "$toLong",
    "$toDate",
    "$toString",
    "$toDecimal",
    "$toDouble",
    "$year",
    "$week",
    "$isoWeek",
    "$dayOfYear",
    "$arrayToObject",
    "$objectToArray",
    "$mergeObjects",
    "$sum",
    "$avg",
    "$max",
    "$cond",
    "$ifNull",
    "$literal",
];
const UPDATES: &[&str] = &[
    "$set",
    "$unset",
    "$inc",
    "$mul",
    "$min",
    "$max",
    "$rename",
    "$currentDate",
    "$push",
    "$addToSet",
    "$pop",
    "$pull",
    "$pullAll",
    "$bit",
    "a",
    "a.b",
    "a.0",
    "a.$",
    "a.$[]",
    "a.3.b",
    "b",
    "$each",
    "$slice",
    "$position",
    "$sort",
    "$created",
    "$updated",
    "and",
    "xor",
    "$type",
    "$elemMatch",
    "_id",
    "a.b.c",
];

fn noise(keys: &'static [&'static str]) -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec![
        r#""$a""#,
        r#""$b.c""#,
        r#""$$ROOT""#,
        r#""x y""#,
        r#""date""#,
        r#""Point""#,
    ]);
    let leaf = prop_oneof![3 => scalar(), 1 => path.prop_map(String::from)];
    let inner = leaf.prop_recursive(5, 24, 4, move |inner| {
        let key = prop::sample::select(keys);
        let list = prop::collection::vec(inner.clone(), 0..4)
            .prop_map(|list| format!("[{}]", list.join(",")));
        let fields = prop::collection::vec((key, inner), 1..3).prop_map(object);
        prop_oneof![2 => list, 3 => fields]
    });
    prop::collection::vec((prop::sample::select(keys), inner), 1..3).prop_map(object)
}

/// Duplicate keys would be rejected before anything is tested.
fn object(mut fields: Vec<(&'static str, String)>) -> String {
    fields.dedup_by(|a, b| a.0 == b.0);
    let fields: Vec<String> = fields
        .into_iter()
        .map(|(key, value)| format!(r#""{key}":{value}"#))
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn few() -> EvaluationContext {
    EvaluationContext {
        fuel: Fuel::new(20_000, 1 << 20),
        now_ms: 1_700_000_000_000,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn filters_never_panic(text in noise(FILTERS), doc in any_document()) {
        let (text, doc) = (document(&text), document(&doc));
        if let Ok(filter) = Filter::parse(text.as_ref()) {
            let answer = filter.matches_in(doc.as_ref(), &few());
            let again = Filter::parse(filter.canonical());
            prop_assert!(again.is_ok(), "{:?}", again);
            if let (Ok(again), Ok(answer)) = (again, answer) {
                prop_assert_eq!(again.hash(), filter.hash());
                prop_assert_eq!(again.matches_in(doc.as_ref(), &few()), Ok(answer));
            }
            let _ = filter.rank_in(doc.as_ref(), &few());
        }
    }

    #[test]
    fn expressions_never_panic(text in noise(EXPRESSIONS), doc in any_document()) {
        let (text, doc) = (document(&text), document(&doc));
        if let Ok(expression) = Expression::parse(ValueRef::Document(text.as_ref()), &ParseLocation::root()) {
            let _ = expression.evaluate(doc.as_ref(), &few());
        }
    }

    #[test]
    fn functions_of_dates_never_panic(
        name in prop::sample::select(vec!["$dateAdd", "$dateDiff", "$dateTrunc", "$dateFromParts", "$dateToString", "$dateToParts"]),
        unit in prop::sample::select(vec!["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"]),
        zone in prop::sample::select(vec!["UTC", "+05:30", "Europe/Paris", "America/New_York", "Pacific/Apia"]),
        millis in any::<i64>(), other in any::<i64>(), amount in any::<i64>(), size in 1..i64::MAX,
    ) {
        let date = |millis: i64| format!(r#"{{"$date":{{"$numberLong":"{millis}"}}}}"#);
        let long = |int: i64| format!(r#"{{"$numberLong":"{int}"}}"#);
        let (first, second, amount, size) = (date(millis), date(other), long(amount), long(size));
        let arguments = match name {
            "$dateAdd" => format!(r#""startDate":{first},"unit":"{unit}","amount":{amount}"#),
            "$dateDiff" => format!(r#""startDate":{first},"endDate":{second},"unit":"{unit}""#),
            "$dateTrunc" => format!(r#""date":{first},"unit":"{unit}","binSize":{size}"#),
            "$dateFromParts" => format!(r#""year":{amount},"month":{size},"day":{amount},"millisecond":{size}"#),
            _ => format!(r#""date":{first}"#),
        };
        let text = document(&format!(r#"{{"{name}":{{{arguments},"timezone":"{zone}"}}}}"#));
        let expression = Expression::parse(ValueRef::Document(text.as_ref()), &ParseLocation::root());
        let _ = expression.map(|expression| expression.evaluate(document("{}").as_ref(), &few()).is_ok());
    }

    #[test]
    fn updates_never_panic(text in noise(UPDATES), doc in any_document()) {
        let (text, doc) = (document(&text), document(&doc));
        if let Ok(update) = Update::parse(text.as_ref(), None, &ParseLocation::root()) {
            let applied = Applied { position: Some(1), inserting: false };
            if let Ok(after) = update.apply(doc.as_ref(), applied, &few()) {
                prop_assert!(rillbase_query::bson::validate(after.as_bytes()).is_ok());
            }
        }
        let merged = merge_patch(doc.as_ref(), text.as_ref());
        prop_assert!(rillbase_query::bson::validate(merged.as_bytes()).is_ok());
    }

    #[test]
    fn projections_and_sorts_never_panic(text in noise(UPDATES), doc in any_document()) {
        let (text, doc) = (document(&text), document(&doc));
        if let Ok(projection) = Projection::parse(text.as_ref(), &ParseLocation::root())
            && let Ok(shown) = projection.apply(doc.as_ref(), Matched::default(), &few()) {
            prop_assert!(rillbase_query::bson::validate(shown.as_bytes()).is_ok());
        }
        if let Ok(sort) = Sort::parse(ValueRef::Document(text.as_ref()), &ParseLocation::root()) {
            let _ = sort.key(doc.as_ref(), SystemFields::default(), &few().fuel);
        }
        let fields = ["a", "b.c", "a.0"].map(|path| IndexField { path: FieldPath::new(path), order: FieldOrder::directed(if path == "a" { -1 } else { 1 }) });
        let _ = index_keys(doc.as_ref(), &fields, &few().fuel);
    }
}
