//! The functions of expressions: names and arguments.

/// How a function takes its arguments.
#[derive(Debug, Clone, Copy)]
pub(super) enum ArgumentShape {
    /// In an array; a single one may be given without it. Minimum and maximum.
    List(usize, usize),
    /// In a document: the names in order, with the number of leading ones that are required.
    Named(&'static [&'static str], usize),
}

use ArgumentShape::{List, Named};

macro_rules! functions {
    ($($family:ident { $($variant:ident $name:literal $shape:expr;)* })*) => {
        /// A function whose arguments are all evaluated before it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Function { $($($variant,)*)* }

        /// Functions that live in one module.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Family { $($family,)* }

        impl Function {
            /// The function of this name with its arguments.
            pub(super) fn from_name(name: &str) -> Option<(Self, ArgumentShape)> {
                match name {
                    $($($name => Some((Self::$variant, $shape)),)*)*
                    _ => None,
                }
            }

            /// The name, as it is written.
            pub(super) const fn name(self) -> &'static str {
                match self { $($(Self::$variant => $name,)*)* }
            }

            /// Where it is implemented.
            pub(super) const fn family(self) -> Family {
                match self { $($(Self::$variant => Family::$family,)*)* }
            }
        }
    };
}

const MANY: usize = 1_000;
const DATE: ArgumentShape = Named(&["date", "timezone"], 1);
const PART: &[&str] = &[
    "year",
    "isoWeekYear",
    "month",
    "isoWeek",
    "day",
    "isoDayOfWeek",
    "hour",
    "minute",
    "second",
    "millisecond",
    "timezone",
];

functions! {
    Comparison {
    Eq "$eq" List(2, 2); Ne "$ne" List(2, 2); Gt "$gt" List(2, 2); Gte "$gte" List(2, 2);
    Lt "$lt" List(2, 2); Lte "$lte" List(2, 2); Cmp "$cmp" List(2, 2);
    Not "$not" List(1, 1);
    }
    Maths {
    Abs "$abs" List(1, 1); Add "$add" List(0, MANY); Ceil "$ceil" List(1, 1); Divide "$divide" List(2, 2);
    Exp "$exp" List(1, 1); Floor "$floor" List(1, 1); Ln "$ln" List(1, 1); Log "$log" List(2, 2);
    Log10 "$log10" List(1, 1); Mod "$mod" List(2, 2); Multiply "$multiply" List(0, MANY); Pow "$pow" List(2, 2);
    Round "$round" List(1, 2); Sqrt "$sqrt" List(1, 1); Subtract "$subtract" List(2, 2); Trunc "$trunc" List(1, 2);
    Sin "$sin" List(1, 1); Cos "$cos" List(1, 1); Tan "$tan" List(1, 1); Asin "$asin" List(1, 1);
    Acos "$acos" List(1, 1); Atan "$atan" List(1, 1); Atan2 "$atan2" List(2, 2); Sinh "$sinh" List(1, 1);
    Cosh "$cosh" List(1, 1); Tanh "$tanh" List(1, 1); Asinh "$asinh" List(1, 1); Acosh "$acosh" List(1, 1);
    Atanh "$atanh" List(1, 1); DegreesToRadians "$degreesToRadians" List(1, 1);
    RadiansToDegrees "$radiansToDegrees" List(1, 1); BitAnd "$bitAnd" List(0, MANY); BitOr "$bitOr" List(0, MANY);
    BitXor "$bitXor" List(0, MANY); BitNot "$bitNot" List(1, 1);
    Sum "$sum" List(0, MANY); Avg "$avg" List(0, MANY); Min "$min" List(0, MANY); Max "$max" List(0, MANY);
    }
    Strings {
    Concat "$concat" List(0, MANY); IndexOfBytes "$indexOfBytes" List(2, 4); IndexOfCp "$indexOfCP" List(2, 4);
    Trim "$trim" Named(&["input", "chars"], 1); Ltrim "$ltrim" Named(&["input", "chars"], 1);
    Rtrim "$rtrim" Named(&["input", "chars"], 1);
    RegexFind "$regexFind" Named(&["input", "regex", "options"], 2);
    RegexFindAll "$regexFindAll" Named(&["input", "regex", "options"], 2);
    RegexMatch "$regexMatch" Named(&["input", "regex", "options"], 2);
    ReplaceOne "$replaceOne" Named(&["input", "find", "replacement"], 3);
    ReplaceAll "$replaceAll" Named(&["input", "find", "replacement"], 3);
    Split "$split" List(2, 2); StrLenBytes "$strLenBytes" List(1, 1); StrLenCp "$strLenCP" List(1, 1);
    StrCaseCmp "$strcasecmp" List(2, 2); Substr "$substr" List(3, 3); SubstrBytes "$substrBytes" List(3, 3);
    SubstrCp "$substrCP" List(3, 3); ToLower "$toLower" List(1, 1); ToUpper "$toUpper" List(1, 1);
    }
    Arrays {
    ArrayElemAt "$arrayElemAt" List(2, 2); ArrayToObject "$arrayToObject" List(1, 1);
    ConcatArrays "$concatArrays" List(0, MANY); First "$first" List(1, 1); Last "$last" List(1, 1);
    FirstN "$firstN" Named(&["input", "n"], 2); LastN "$lastN" Named(&["input", "n"], 2);
    MaxN "$maxN" Named(&["input", "n"], 2); MinN "$minN" Named(&["input", "n"], 2);
    In "$in" List(2, 2); IndexOfArray "$indexOfArray" List(2, 4); IsArray "$isArray" List(1, 1);
    Range "$range" List(2, 3); ReverseArray "$reverseArray" List(1, 1);
    Size "$size" List(1, 1); Slice "$slice" List(2, 3); SortArray "$sortArray" Named(&["input", "sortBy"], 2);
    Zip "$zip" Named(&["inputs", "useLongestLength", "defaults"], 1);
    }
    Dates {
    DateAdd "$dateAdd" Named(&["startDate", "unit", "amount", "timezone"], 3);
    DateSubtract "$dateSubtract" Named(&["startDate", "unit", "amount", "timezone"], 3);
    DateDiff "$dateDiff" Named(&["startDate", "endDate", "unit", "timezone", "startOfWeek"], 3);
    DateTrunc "$dateTrunc" Named(&["date", "unit", "binSize", "timezone", "startOfWeek"], 2);
    DateFromParts "$dateFromParts" Named(PART, 0);
    DateFromString "$dateFromString" Named(&["dateString", "format", "timezone", "onError", "onNull"], 1);
    DateToParts "$dateToParts" Named(&["date", "timezone", "iso8601"], 1);
    DateToString "$dateToString" Named(&["date", "format", "timezone", "onNull"], 1);
    Year "$year" DATE; Month "$month" DATE; DayOfMonth "$dayOfMonth" DATE; DayOfWeek "$dayOfWeek" DATE;
    DayOfYear "$dayOfYear" DATE; Hour "$hour" DATE; Minute "$minute" DATE; Second "$second" DATE;
    Millisecond "$millisecond" DATE; Week "$week" DATE; IsoDayOfWeek "$isoDayOfWeek" DATE; IsoWeek "$isoWeek" DATE;
    IsoWeekYear "$isoWeekYear" DATE; TsSecond "$tsSecond" List(1, 1); TsIncrement "$tsIncrement" List(1, 1);
    }
    Types {
    Convert "$convert" Named(&["input", "to", "onError", "onNull"], 2); IsNumber "$isNumber" List(1, 1);
    ToBool "$toBool" List(1, 1); ToDate "$toDate" List(1, 1); ToDecimal "$toDecimal" List(1, 1);
    ToDouble "$toDouble" List(1, 1); ToInt "$toInt" List(1, 1); ToLong "$toLong" List(1, 1);
    ToObjectId "$toObjectId" List(1, 1); ToText "$toString" List(1, 1); Type "$type" List(1, 1);
    }
    Sets {
    AllElementsTrue "$allElementsTrue" List(1, 1); AnyElementTrue "$anyElementTrue" List(1, 1);
    SetDifference "$setDifference" List(2, 2); SetEquals "$setEquals" List(2, MANY);
    SetIntersection "$setIntersection" List(0, MANY); SetIsSubset "$setIsSubset" List(2, 2);
    SetUnion "$setUnion" List(0, MANY);
    }
    Objects {
    ObjectToArray "$objectToArray" List(1, 1);
    MergeObjects "$mergeObjects" List(0, MANY); GetField "$getField" Named(&["field", "input"], 1);
    SetField "$setField" Named(&["field", "input", "value"], 3); UnsetField "$unsetField" Named(&["field", "input"], 2);
    BinarySize "$binarySize" List(1, 1); BsonSize "$bsonSize" List(1, 1);
    }
}
