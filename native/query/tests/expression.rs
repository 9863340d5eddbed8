//! Results of aggregation expressions, case by case, as in MongoDB 8.

use crate::common::{any_document, any_value, document, value};
use proptest::prelude::*;
use rillbase_query::ejson::{Form, value_to_string};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::ParseLocation;
use rillbase_query::expression::Expression;
use rillbase_query::filter::Filter;

const DOC: &str = r#"{"_id":1,"n":5,"d":2.5,"z":null,"s":"Hello","t":["a","b"],"a":[1,2,3],"o":{"x":1,"y":{"z":[1]}},
 "items":[{"p":1,"q":2},{"p":3},5],"dec":{"$numberDecimal":"0.1"},"when":{"$date":"2024-02-29T13:14:15.678Z"},
 "old":{"$date":{"$numberLong":"-1"}},"oid":{"$oid":"507f1f77bcf86cd799439011"},"ts":{"$timestamp":{"t":7,"i":3}},
 "long":{"$numberLong":"9007199254740993"},"nan":{"$numberDouble":"NaN"},"é":"äöü","b":true}"#;

fn evaluate(text: &str) -> String {
    let wrapped = document(&format!(r#"{{"e":{text}}}"#));
    let expression = wrapped.as_ref().get("e").expect("e");
    let expression = match Expression::parse(expression, &ParseLocation::root()) {
        Ok(expression) => expression,
        Err(error) => return format!("{} {}", error.code.as_str(), error.pointer),
    };
    let (doc, environment) = (document(DOC), EvaluationContext::at(1_700_000_000_123));
    match expression.evaluate(doc.as_ref(), &environment) {
        Ok(Some(item)) => value_to_string(item.as_ref(), Form::Relaxed),
        Ok(None) => "missing".into(),
        Err(_) => "fails".into(),
    }
}

const CASES: &[(&str, &str)] = &[
    // Paths and literals.
    (r#""$n""#, "5"),
    (r#""$o.y.z""#, "[1]"),
    (r#""$nothing""#, "missing"),
    (r#""$items.p""#, "[1,3]"),
    (r#""$a.0""#, "[]"),
    (r#""$$ROOT.n""#, "5"),
    (r#""$$CURRENT.o.x""#, "1"),
    (r#"{"$literal":"$n"}"#, r#""$n""#),
    (r#"{"k":"$n","m":"$nothing"}"#, r#"{"k":5}"#),
    (r#"["$n","$nothing"]"#, "[5,null]"),
    (r#""$$REMOVE""#, "missing"),
    (r#""$$NOW""#, r#"{"$date":"2023-11-14T22:13:20.123Z"}"#),
    // Comparison is over all types.
    (r#"{"$gt":["$s","$n"]}"#, "true"),
    (r#"{"$eq":["$nothing",null]}"#, "false"),
    (r#"{"$lt":["$nothing",null]}"#, "true"),
    (r#"{"$eq":[1,1.0]}"#, "true"),
    (r#"{"$cmp":[1,2]}"#, "-1"),
    (r#"{"$cmp":["$long",9007199254740992.0]}"#, "1"),
    (
        r#"{"$gte":["$nan",{"$numberDouble":"-Infinity"}]}"#,
        "false",
    ),
    (r#"{"$ne":["$a",[1,2,3]]}"#, "false"),
    // Booleans.
    (r#"{"$and":[]}"#, "true"),
    (r#"{"$or":[]}"#, "false"),
    (r#"{"$and":["$n","$s",{}]}"#, "true"),
    (r#"{"$or":[0,null,"$nothing"]}"#, "false"),
    (r#"{"$not":["$n"]}"#, "false"),
    (r#"{"$not":"$z"}"#, "true"),
    (r#"{"$and":["$nan"]}"#, "true"),
    (r#"{"$or":[true,{"$divide":[1,0]}]}"#, "true"),
    // Conditions.
    (r#"{"$cond":[true,1,2]}"#, "1"),
    (r#"{"$cond":{"if":"$z","then":1,"else":2}}"#, "2"),
    (r#"{"$ifNull":["$z","$nothing",7]}"#, "7"),
    (
        r#"{"$switch":{"branches":[{"case":false,"then":1},{"case":true,"then":2}],"default":3}}"#,
        "2",
    ),
    (
        r#"{"$switch":{"branches":[{"case":false,"then":1}],"default":3}}"#,
        "3",
    ),
    (
        r#"{"$switch":{"branches":[{"case":false,"then":1}]}}"#,
        "fails",
    ),
    // Arithmetic.
    (r#"{"$add":[1,2,3]}"#, "6"),
    (r#"{"$add":["$n","$d"]}"#, "7.5"),
    (r#"{"$add":["$n",null]}"#, "null"),
    (r#"{"$add":[]}"#, "0"),
    (
        r#"{"$add":["$dec",0.2]}"#,
        r#"{"$numberDecimal":"0.300000000000000"}"#,
    ),
    (r#"{"$add":[2147483647,1]}"#, "2147483648"),
    (
        r#"{"$add":[{"$numberLong":"9223372036854775807"},1]}"#,
        "9.223372036854776e18",
    ),
    (
        r#"{"$add":["$when",1000]}"#,
        r#"{"$date":"2024-02-29T13:14:16.678Z"}"#,
    ),
    (r#"{"$add":["$s",1]}"#, "fails"),
    (r#"{"$subtract":["$when","$old"]}"#, "1709212455679"),
    (
        r#"{"$subtract":["$when",678]}"#,
        r#"{"$date":"2024-02-29T13:14:15Z"}"#,
    ),
    (r#"{"$multiply":[3,"$d"]}"#, "7.5"),
    (r#"{"$divide":[7,2]}"#, "3.5"),
    (r#"{"$divide":[6,2]}"#, "3.0"),
    (r#"{"$divide":[1,0]}"#, "fails"),
    (
        r#"{"$divide":["$dec",3]}"#,
        r#"{"$numberDecimal":"0.03333333333333333333333333333333333"}"#,
    ),
    (r#"{"$mod":[-7,3]}"#, "-1"),
    (r#"{"$mod":[7.5,2]}"#, "1.5"),
    (r#"{"$mod":[1,0]}"#, "fails"),
    (r#"{"$abs":-5}"#, "5"),
    (
        r#"{"$abs":{"$numberLong":"-9223372036854775808"}}"#,
        "fails",
    ),
    (r#"{"$ceil":2.1}"#, "3.0"),
    (r#"{"$floor":-2.1}"#, "-3.0"),
    (r#"{"$round":[2.5]}"#, "2.0"),
    (r#"{"$round":[3.5,0]}"#, "4.0"),
    (r#"{"$round":[1234.567,-2]}"#, "1200.0"),
    (
        r#"{"$round":[{"$numberDecimal":"2.345"},2]}"#,
        r#"{"$numberDecimal":"2.34"}"#,
    ),
    (r#"{"$round":[15,-1]}"#, "20"),
    (r#"{"$trunc":[2.789,1]}"#, "2.7"),
    (r#"{"$trunc":-2.7}"#, "-2.0"),
    (r#"{"$sqrt":16}"#, "4.0"),
    (r#"{"$sqrt":-1}"#, "fails"),
    (
        r#"{"$sqrt":{"$numberDecimal":"2"}}"#,
        r#"{"$numberDecimal":"1.414213562373095048801688724209698"}"#,
    ),
    (r#"{"$pow":[2,10]}"#, "1024"),
    (r#"{"$pow":[2,-1]}"#, "0.5"),
    (r#"{"$pow":[0,-1]}"#, "fails"),
    (r#"{"$pow":[2,40]}"#, "1099511627776"),
    (r#"{"$pow":[10,30]}"#, "1e30"),
    (r#"{"$exp":0}"#, "1.0"),
    (r#"{"$ln":1}"#, "0.0"),
    (r#"{"$log":[8,2]}"#, "3.0"),
    (r#"{"$log10":1000}"#, "3.0"),
    (r#"{"$ln":0}"#, "fails"),
    (r#"{"$sin":0}"#, "0.0"),
    (r#"{"$atan2":[0,1]}"#, "0.0"),
    (r#"{"$degreesToRadians":0}"#, "0.0"),
    (r#"{"$bitAnd":[6,3]}"#, "2"),
    (r#"{"$bitOr":[6,{"$numberLong":"1"}]}"#, "7"),
    (r#"{"$bitXor":[6,3]}"#, "5"),
    (r#"{"$bitNot":5}"#, "-6"),
    (r#"{"$bitAnd":[1.5]}"#, "fails"),
    (r#"{"$sum":["$a"]}"#, "6"),
    (r#"{"$sum":"$a"}"#, "6"),
    (r#"{"$sum":["$a",1]}"#, "1"),
    (r#"{"$avg":"$a"}"#, "2.0"),
    (r#"{"$avg":["x"]}"#, "null"),
    (r#"{"$max":["$a"]}"#, "3"),
    (r#"{"$min":[null,4,2]}"#, "2"),
    (r#"{"$max":[null]}"#, "null"),
    // Text.
    (r#"{"$concat":["$s"," ","x"]}"#, r#""Hello x""#),
    (r#"{"$concat":["$s",null]}"#, "null"),
    (r#"{"$concat":["$n"]}"#, "fails"),
    (r#"{"$toUpper":"$s"}"#, r#""HELLO""#),
    (r#"{"$toLower":"$nothing"}"#, r#""""#),
    (r#"{"$strLenCP":"$é"}"#, "3"),
    (r#"{"$strLenBytes":"$é"}"#, "6"),
    (r#"{"$strLenCP":"$z"}"#, "fails"),
    (r#"{"$substrCP":["$é",1,1]}"#, r#""ö""#),
    (r#"{"$substrBytes":["$s",1,3]}"#, r#""ell""#),
    (r#"{"$substrBytes":["$é",1,1]}"#, "fails"),
    (r#"{"$substr":["$s",1,-1]}"#, r#""ello""#),
    (r#"{"$substr":["$n",0,1]}"#, r#""5""#),
    (r#"{"$strcasecmp":["a","B"]}"#, "-1"),
    (r#"{"$split":["a,b,,c",","]}"#, r#"["a","b","","c"]"#),
    (r#"{"$split":["a",""]}"#, "fails"),
    (r#"{"$trim":{"input":"  x "}}"#, r#""x""#),
    (r#"{"$ltrim":{"input":"xxay","chars":"x"}}"#, r#""ay""#),
    (r#"{"$rtrim":{"input":"ayx","chars":"xy"}}"#, r#""a""#),
    (r#"{"$indexOfCP":["$é","ü"]}"#, "2"),
    (r#"{"$indexOfBytes":["$é","ü"]}"#, "4"),
    (r#"{"$indexOfCP":["$s","l",3]}"#, "3"),
    (r#"{"$indexOfCP":["$s","q"]}"#, "-1"),
    (r#"{"$indexOfCP":["$z","q"]}"#, "null"),
    (
        r#"{"$replaceOne":{"input":"aa","find":"a","replacement":"b"}}"#,
        r#""ba""#,
    ),
    (
        r#"{"$replaceAll":{"input":"aa","find":"a","replacement":"b"}}"#,
        r#""bb""#,
    ),
    (
        r#"{"$regexMatch":{"input":"$s","regex":"^h","options":"i"}}"#,
        "true",
    ),
    (
        r#"{"$regexMatch":{"input":"$nothing","regex":"x"}}"#,
        "false",
    ),
    (
        r#"{"$regexFind":{"input":"$é","regex":"(ö)(x)?"}}"#,
        r#"{"match":"ö","idx":1,"captures":["ö",null]}"#,
    ),
    (r#"{"$regexFind":{"input":"$s","regex":"z"}}"#, "null"),
    (
        r#"{"$regexFindAll":{"input":"$s","regex":"l"}}"#,
        r#"[{"match":"l","idx":2,"captures":[]},{"match":"l","idx":3,"captures":[]}]"#,
    ),
    (
        r#"{"$regexMatch":{"input":"a","regex":"(?=a)"}}"#,
        "invalid_regex /$regexMatch/regex",
    ),
    // Arrays.
    (r#"{"$arrayElemAt":["$a",-1]}"#, "3"),
    (r#"{"$arrayElemAt":["$a",9]}"#, "missing"),
    (r#"{"$arrayElemAt":["$z",0]}"#, "null"),
    (r#"{"$first":"$a"}"#, "1"),
    (r#"{"$last":"$a"}"#, "3"),
    (r#"{"$size":"$a"}"#, "3"),
    (r#"{"$size":"$n"}"#, "fails"),
    (r#"{"$in":[2,"$a"]}"#, "true"),
    (r#"{"$in":[2.0,"$a"]}"#, "true"),
    (r#"{"$in":[1,"$n"]}"#, "fails"),
    (r#"{"$indexOfArray":["$a",3]}"#, "2"),
    (r#"{"$indexOfArray":["$a",9]}"#, "-1"),
    (r#"{"$isArray":"$a"}"#, "true"),
    (r#"{"$isArray":["$n"]}"#, "false"),
    (r#"{"$concatArrays":["$a",["x"]]}"#, r#"[1,2,3,"x"]"#),
    (r#"{"$concatArrays":["$a",null]}"#, "null"),
    (r#"{"$reverseArray":"$a"}"#, "[3,2,1]"),
    (r#"{"$slice":["$a",2]}"#, "[1,2]"),
    (r#"{"$slice":["$a",-2]}"#, "[2,3]"),
    (r#"{"$slice":["$a",1,1]}"#, "[2]"),
    (r#"{"$slice":["$a",-2,1]}"#, "[2]"),
    (r#"{"$slice":["$a",1,0]}"#, "fails"),
    (r#"{"$range":[0,10,3]}"#, "[0,3,6,9]"),
    (r#"{"$range":[3,0,-1]}"#, "[3,2,1]"),
    (r#"{"$range":[0,0]}"#, "[]"),
    (r#"{"$range":[0,2147483647]}"#, "fails"),
    (r#"{"$range":[0,1,0]}"#, "fails"),
    (
        r#"{"$map":{"input":"$a","as":"x","in":{"$multiply":["$$x",2]}}}"#,
        "[2,4,6]",
    ),
    (r#"{"$map":{"input":"$z","in":"$$this"}}"#, "null"),
    (r#"{"$map":{"input":"$n","in":1}}"#, "fails"),
    (
        r#"{"$filter":{"input":"$a","cond":{"$gt":["$$this",1]}}}"#,
        "[2,3]",
    ),
    (
        r#"{"$filter":{"input":"$a","as":"x","cond":true,"limit":1}}"#,
        "[1]",
    ),
    (
        r#"{"$reduce":{"input":"$a","initialValue":0,"in":{"$add":["$$value","$$this"]}}}"#,
        "6",
    ),
    (
        r#"{"$reduce":{"input":"$z","initialValue":0,"in":1}}"#,
        "null",
    ),
    (
        r#"{"$let":{"vars":{"x":2,"y":"$n"},"in":{"$multiply":["$$x","$$y"]}}}"#,
        "10",
    ),
    (
        r#"{"$let":{"vars":{"x":1},"in":{"$let":{"vars":{"x":2,"y":"$$x"},"in":["$$x","$$y"]}}}}"#,
        "[2,1]",
    ),
    (
        r#"{"$map":{"input":"$items","as":"i","in":"$$i.p"}}"#,
        "[1,3,null]",
    ),
    (r#"{"$zip":{"inputs":[[1,2],["a"]]}}"#, r#"[[1,"a"]]"#),
    (
        r#"{"$zip":{"inputs":[[1,2],["a"]],"useLongestLength":true,"defaults":[0,"z"]}}"#,
        r#"[[1,"a"],[2,"z"]]"#,
    ),
    (r#"{"$sortArray":{"input":[3,1,2],"sortBy":-1}}"#, "[3,2,1]"),
    (
        r#"{"$sortArray":{"input":[{"a":2},{"a":1}],"sortBy":{"a":1}}}"#,
        r#"[{"a":1},{"a":2}]"#,
    ),
    (r#"{"$firstN":{"input":"$a","n":2}}"#, "[1,2]"),
    (r#"{"$lastN":{"input":"$a","n":2}}"#, "[2,3]"),
    (r#"{"$maxN":{"input":"$a","n":2}}"#, "[3,2]"),
    (r#"{"$minN":{"input":[3,null,1],"n":5}}"#, "[1,3]"),
    // Sets.
    (r#"{"$setUnion":[[2,1],[2,3]]}"#, "[1,2,3]"),
    (r#"{"$setIntersection":[[2,1,1],[1.0,5]]}"#, "[1]"),
    (r#"{"$setDifference":[[1,2,2],[1]]}"#, "[2]"),
    (r#"{"$setEquals":[[1,2,2],[2,1]]}"#, "true"),
    (r#"{"$setIsSubset":[[1],[1,2]]}"#, "true"),
    (r#"{"$setUnion":[[1],null]}"#, "null"),
    (r#"{"$setEquals":[[1],null]}"#, "fails"),
    (r#"{"$allElementsTrue":[[1,true]]}"#, "true"),
    (r#"{"$anyElementTrue":[[0,null]]}"#, "false"),
    // Documents.
    (
        r#"{"$mergeObjects":["$o",{"x":2,"w":3},null]}"#,
        r#"{"x":2,"y":{"z":[1]},"w":3}"#,
    ),
    (r#"{"$objectToArray":{"k":1}}"#, r#"[{"k":"k","v":1}]"#),
    (
        r#"{"$arrayToObject":[[["a",1],["b",2],["a",3]]]}"#,
        r#"{"a":3,"b":2}"#,
    ),
    (r#"{"$arrayToObject":[[{"k":"a","v":1}]]}"#, r#"{"a":1}"#),
    (r#"{"$getField":"n"}"#, "5"),
    (r#"{"$getField":{"field":"x","input":"$o"}}"#, "1"),
    (r#"{"$getField":{"field":"q","input":"$o"}}"#, "missing"),
    (
        r#"{"$setField":{"field":"x","input":"$o","value":9}}"#,
        r#"{"x":9,"y":{"z":[1]}}"#,
    ),
    (
        r#"{"$setField":{"field":"x","input":"$o","value":"$$REMOVE"}}"#,
        r#"{"y":{"z":[1]}}"#,
    ),
    (
        r#"{"$unsetField":{"field":"y","input":"$o"}}"#,
        r#"{"x":1}"#,
    ),
    (r#"{"$bsonSize":{}}"#, "5"),
    (r#"{"$binarySize":"$é"}"#, "6"),
    // Types.
    (r#"{"$type":"$nothing"}"#, r#""missing""#),
    (r#"{"$type":"$dec"}"#, r#""decimal""#),
    (r#"{"$isNumber":"$n"}"#, "true"),
    (r#"{"$toString":"$d"}"#, r#""2.5""#),
    (r#"{"$toString":2.0}"#, r#""2""#),
    (r#"{"$toString":1e100}"#, r#""1e+100""#),
    (r#"{"$toString":"$when"}"#, r#""2024-02-29T13:14:15.678Z""#),
    (r#"{"$toString":"$oid"}"#, r#""507f1f77bcf86cd799439011""#),
    (r#"{"$toString":"$a"}"#, "fails"),
    (r#"{"$toInt":"12"}"#, "12"),
    (r#"{"$toInt":"1.5"}"#, "fails"),
    (r#"{"$toInt":2.9}"#, "2"),
    (r#"{"$toInt":3e9}"#, "fails"),
    (r#"{"$toLong":"$when"}"#, "1709212455678"),
    (r#"{"$toDouble":"1e3"}"#, "1000.0"),
    (r#"{"$toDouble":"$dec"}"#, "0.1"),
    (r#"{"$toDecimal":"0.10"}"#, r#"{"$numberDecimal":"0.10"}"#),
    (r#"{"$toBool":"false"}"#, "true"),
    (r#"{"$toBool":0}"#, "false"),
    (
        r#"{"$toDate":{"$numberLong":"0"}}"#,
        r#"{"$date":"1970-01-01T00:00:00Z"}"#,
    ),
    (r#"{"$toDate":5}"#, "fails"),
    (
        r#"{"$toDate":"2020-01-01"}"#,
        r#"{"$date":"2020-01-01T00:00:00Z"}"#,
    ),
    (
        r#"{"$toDate":"$oid"}"#,
        r#"{"$date":"2012-10-17T21:13:27Z"}"#,
    ),
    (
        r#"{"$toObjectId":"507f1f77bcf86cd799439011"}"#,
        r#"{"$oid":"507f1f77bcf86cd799439011"}"#,
    ),
    (r#"{"$toObjectId":"x"}"#, "fails"),
    (r#"{"$toInt":null}"#, "null"),
    (
        r#"{"$convert":{"input":"x","to":"int","onError":-1}}"#,
        "-1",
    ),
    (r#"{"$convert":{"input":null,"to":16,"onNull":0}}"#, "0"),
    (
        r#"{"$convert":{"input":true,"to":"decimal"}}"#,
        r#"{"$numberDecimal":"1"}"#,
    ),
    // Dates.
    (r#"{"$year":"$when"}"#, "2024"),
    (r#"{"$month":"$old"}"#, "12"),
    (
        r#"{"$dayOfMonth":{"date":"$old","timezone":"+00:01"}}"#,
        "1",
    ),
    (
        r#"{"$hour":{"date":"$when","timezone":"Europe/Paris"}}"#,
        "14",
    ),
    (r#"{"$hour":{"date":"$when","timezone":"Mars/X"}}"#, "fails"),
    (r#"{"$dayOfWeek":"$when"}"#, "5"),
    (r#"{"$isoDayOfWeek":"$when"}"#, "4"),
    (r#"{"$dayOfYear":"$when"}"#, "60"),
    (r#"{"$week":"$when"}"#, "8"),
    (r#"{"$isoWeek":"$when"}"#, "9"),
    (
        r#"{"$isoWeekYear":{"$dateFromString":{"dateString":"2021-01-03"}}}"#,
        "2020",
    ),
    (r#"{"$millisecond":"$old"}"#, "999"),
    (r#"{"$year":"$s"}"#, "fails"),
    (r#"{"$year":"$z"}"#, "null"),
    (r#"{"$year":["$oid"]}"#, "2012"),
    (r#"{"$tsSecond":"$ts"}"#, "7"),
    (r#"{"$tsIncrement":"$ts"}"#, "3"),
    (
        r#"{"$dateToString":{"date":"$when","format":"%Y/%m/%d %H:%M:%S.%L %j %u %U %V %G %z %Z %% %b %B"}}"#,
        r#""2024/02/29 13:14:15.678 060 4 08 09 2024 +0000 +0 % Feb February""#,
    ),
    (
        r#"{"$dateToString":{"date":"$when"}}"#,
        r#""2024-02-29T13:14:15.678Z""#,
    ),
    (
        r#"{"$dateToString":{"date":"$z","onNull":"none"}}"#,
        r#""none""#,
    ),
    (
        r#"{"$dateToString":{"date":"$when","format":"%Q"}}"#,
        "fails",
    ),
    (
        r#"{"$dateFromString":{"dateString":"29/02/2024","format":"%d/%m/%Y"}}"#,
        r#"{"$date":"2024-02-29T00:00:00Z"}"#,
    ),
    (
        r#"{"$dateFromString":{"dateString":"2024-07-01T00:00:00","timezone":"America/New_York"}}"#,
        r#"{"$date":"2024-07-01T04:00:00Z"}"#,
    ),
    (
        r#"{"$dateFromString":{"dateString":"2024 366","format":"%Y %j"}}"#,
        r#"{"$date":"2024-12-31T00:00:00Z"}"#,
    ),
    (
        r#"{"$dateFromString":{"dateString":"2023 366","format":"%Y %j"}}"#,
        "fails",
    ),
    (
        r#"{"$dateFromString":{"dateString":"2020-W53-5 +120","format":"%G-W%V-%u %Z"}}"#,
        r#"{"$date":"2020-12-31T22:00:00Z"}"#,
    ),
    // A date is given by week or by month, not by both.
    (
        r#"{"$dateFromString":{"dateString":"2020 53 07","format":"%G %V %m"}}"#,
        "fails",
    ),
    (
        r#"{"$dateFromString":{"dateString":"2020 001 07","format":"%Y %j %m"}}"#,
        "fails",
    ),
    (
        r#"{"$dateFromString":{"dateString":"x","onError":"bad"}}"#,
        r#""bad""#,
    ),
    (r#"{"$dateFromString":{"dateString":"x"}}"#, "fails"),
    (
        r#"{"$dateFromParts":{"year":2024,"month":14,"day":1}}"#,
        r#"{"$date":"2025-02-01T00:00:00Z"}"#,
    ),
    (
        r#"{"$dateFromParts":{"isoWeekYear":2020,"isoWeek":53,"isoDayOfWeek":7}}"#,
        r#"{"$date":"2021-01-03T00:00:00Z"}"#,
    ),
    (r#"{"$dateFromParts":{"month":1}}"#, "fails"),
    (
        r#"{"$dateToParts":{"date":"$when"}}"#,
        r#"{"year":2024,"month":2,"day":29,"hour":13,"minute":14,"second":15,"millisecond":678}"#,
    ),
    (
        r#"{"$dateToParts":{"date":"$when","iso8601":true}}"#,
        r#"{"isoWeekYear":2024,"isoWeek":9,"isoDayOfWeek":4,"hour":13,"minute":14,"second":15,"millisecond":678}"#,
    ),
    (
        r#"{"$dateAdd":{"startDate":"$when","unit":"year","amount":1}}"#,
        r#"{"$date":"2025-02-28T13:14:15.678Z"}"#,
    ),
    (
        r#"{"$dateAdd":{"startDate":"$when","unit":"month","amount":-1}}"#,
        r#"{"$date":"2024-01-29T13:14:15.678Z"}"#,
    ),
    (
        r#"{"$dateAdd":{"startDate":{"$dateFromString":{"dateString":"2024-03-30T12:00:00Z"}},"unit":"day","amount":1,"timezone":"Europe/Paris"}}"#,
        r#"{"$date":"2024-03-31T11:00:00Z"}"#,
    ),
    (
        r#"{"$dateSubtract":{"startDate":"$when","unit":"hour","amount":14}}"#,
        r#"{"$date":"2024-02-28T23:14:15.678Z"}"#,
    ),
    (
        r#"{"$dateDiff":{"startDate":"$old","endDate":"$when","unit":"year"}}"#,
        "55",
    ),
    (
        r#"{"$dateDiff":{"startDate":"$when","endDate":"$old","unit":"day"}}"#,
        "-19783",
    ),
    (
        r#"{"$dateDiff":{"startDate":"$old","endDate":{"$add":["$old",1]},"unit":"week","startOfWeek":"thursday"}}"#,
        "1",
    ),
    (
        r#"{"$dateDiff":{"startDate":"$old","endDate":{"$add":["$old",1]},"unit":"hour"}}"#,
        "1",
    ),
    // Summer time began between them: 23 hours passed, 24 by the clock.
    (
        r#"{"$dateDiff":{"startDate":{"$toDate":"2024-03-30T11:00:00Z"},"endDate":{"$toDate":"2024-03-31T10:00:00Z"},"unit":"hour","timezone":"Europe/Paris"}}"#,
        "23",
    ),
    // Where clocks change by half an hour, exchanging the dates changes the sign only.
    (
        r#"{"$dateDiff":{"startDate":{"$toDate":"2024-04-06T14:00:00Z"},"endDate":{"$toDate":"2024-04-06T15:15:00Z"},"unit":"hour","timezone":"Australia/Lord_Howe"}}"#,
        "0",
    ),
    (
        r#"{"$dateDiff":{"startDate":{"$toDate":"2024-04-06T15:15:00Z"},"endDate":{"$toDate":"2024-04-06T14:00:00Z"},"unit":"hour","timezone":"Australia/Lord_Howe"}}"#,
        "0",
    ),
    (
        r#"{"$dateTrunc":{"date":"$when","unit":"month"}}"#,
        r#"{"$date":"2024-02-01T00:00:00Z"}"#,
    ),
    (
        r#"{"$dateTrunc":{"date":"$when","unit":"week"}}"#,
        r#"{"$date":"2024-02-25T00:00:00Z"}"#,
    ),
    (
        r#"{"$dateTrunc":{"date":"$when","unit":"week","startOfWeek":"monday"}}"#,
        r#"{"$date":"2024-02-26T00:00:00Z"}"#,
    ),
    (
        r#"{"$dateTrunc":{"date":"$when","unit":"minute","binSize":15}}"#,
        r#"{"$date":"2024-02-29T13:00:00Z"}"#,
    ),
    (
        r#"{"$dateTrunc":{"date":"$old","unit":"quarter"}}"#,
        r#"{"$date":{"$numberLong":"-7948800000"}}"#,
    ),
    // Refusals name the location.
    (r#"{"$foo":1}"#, "unsupported_operator /$foo"),
    (r#"{"$function":{}}"#, "unsupported_operator /$function"),
    (r#"{"$rand":{}}"#, "unsupported_operator /$rand"),
    (
        r#"{"$add":[{"$gt":[1]}]}"#,
        "invalid_expression /$add/0/$gt",
    ),
    (r#""$$x""#, "invalid_expression "),
    (r#""$a..b""#, "invalid_expression "),
    (r#"{"$add":[1],"$sum":[1]}"#, "invalid_expression "),
    (r#"{"$cond":[1,2]}"#, "invalid_expression /$cond"),
    (
        r#"{"$cond":{"if":1,"then":1,"other":1}}"#,
        "invalid_expression /$cond/other",
    ),
    (
        r#"{"$trim":{"inputs":"x"}}"#,
        "invalid_expression /$trim/inputs",
    ),
    (r#"{"$trim":{"chars":"x"}}"#, "invalid_expression /$trim"),
    (
        r#"{"$let":{"vars":{"X":1},"in":1}}"#,
        "invalid_expression /$let/vars/X",
    ),
    (r#"{"$map":{"in":1}}"#, "invalid_expression /$map"),
];

#[test]
fn expressions_answer_as_mongodb_does() {
    for (text, expected) in CASES {
        assert_eq!(&evaluate(text), expected, "{text}");
    }
}

#[test]
fn expressions_filter_documents() {
    for (filter, doc, expected) in [
        (r#"{"$expr":{"$gt":["$a","$b"]}}"#, r#"{"a":2,"b":1}"#, true),
        (
            r#"{"$expr":{"$gt":["$a","$b"]}}"#,
            r#"{"a":1,"b":1}"#,
            false,
        ),
        (r#"{"$expr":{"$gt":["$a","$b"]}}"#, r#"{"a":1}"#, true),
        (
            r#"{"$or":[{"$expr":"$a"},{"b":1}]}"#,
            r#"{"a":0,"b":1}"#,
            true,
        ),
        (r#"{"$nor":[{"$expr":"$a"}]}"#, r#"{"a":0}"#, true),
    ] {
        let filter = Filter::parse(document(filter).as_ref()).expect(filter);
        assert_eq!(filter.matches(document(doc).as_ref()), Ok(expected));
        let again = Filter::parse(filter.canonical()).expect("canonical");
        assert_eq!(again.hash(), filter.hash());
    }
    let live =
        Filter::parse(document(r#"{"$expr":{"$lt":["$a","$$NOW"]}}"#).as_ref()).expect("parses");
    let error = live.check_live().expect_err("not live");
    assert_eq!(
        (error.code.as_str(), error.pointer.as_str()),
        ("not_live", "/$expr/$lt/1")
    );
    let inside = Filter::parse(document(r#"{"a":{"$elemMatch":{"b":1,"$expr":true}}}"#).as_ref());
    assert_eq!(inside.expect_err("refused").pointer, "/a/$elemMatch/$expr");
}

#[test]
fn expressions_run_out_of_memory_rather_than_take_all() {
    let doubled = r#"{"$concat":["$$value","$$value"]}"#;
    let bomb = format!(
        r#"{{"$reduce":{{"input":{{"$range":[0,60]}},"initialValue":"xxxxxxxx","in":{doubled}}}}}"#
    );
    assert_eq!(evaluate(&bomb), "fails");
    let nested = (0..4).fold("1".to_owned(), |inner, _| {
        format!(r#"{{"$map":{{"input":{{"$range":[0,1000]}},"in":{inner}}}}}"#)
    });
    assert_eq!(evaluate(&nested), "fails");
}

proptest! {
    #[test]
    fn comparisons_in_expressions_agree_with_the_order(a in any_value(), b in any_value(), doc in any_document()) {
        let text = format!(r#"{{"$cmp":[{{"$literal":{a}}},{{"$literal":{b}}}]}}"#);
        let order = rillbase_query::order::compare(value(&a).as_ref(), value(&b).as_ref()) as i32;
        prop_assert_eq!(evaluate(&text), order.to_string());
        let filter = Filter::parse(document(r#"{"$expr":{"$or":["$a.b",{"$isArray":"$a"},{"$eq":["$a","$b"]}]}}"#).as_ref()).expect("filter");
        prop_assert!(filter.matches(document(&doc).as_ref()).is_ok());
    }
}
