//! Parses definitions of aggregates.

use rillbase_query::bson::{Array, Document, ValueRef};
use rillbase_query::ejson;

use crate::definition::{
    AggregateDefinition, AggregateMeasure, ContributionSource, DottedField, MeasureOperator,
    SumType, TimeBucketing,
};
use crate::error::{AggregateErrorCode, Error, Result, segment};
use crate::sketch::Accuracy;
use crate::state::{RowState, SlotValue};

const MAX_DIMENSIONS: usize = 16;
const MAX_ROLLUPS: usize = 16;
const MAX_MEASURES: usize = 64;
const MAX_NAME_BYTES: usize = 128;
const MAX_SCALE: i64 = 18;
const MAX_TOP: i64 = 1000;
const DAY: i64 = 86_400_000;
const LONGEST: i64 = 3650 * DAY;

/// Parses a duration such as `500ms`, `5m` or `90d`, in milliseconds.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.strip_prefix(digits)? {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY,
        _ => return None,
    };
    let length = digits.parse::<i64>().ok()?.checked_mul(unit)?;
    (1..=LONGEST).contains(&length).then_some(length)
}

fn refuse(pointer: impl Into<String>, detail: impl Into<String>) -> Error {
    Error::at(AggregateErrorCode::BadDefinition, pointer, detail)
}

impl AggregateDefinition {
    /// Parses a definition from JSON.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let parsed = ejson::parse_document(text);
        let document = parsed.map_err(|error| refuse(error.pointer, error.detail))?;
        let document = document.as_ref();
        check_members(
            document,
            "",
            &[
                "dimensions",
                "time",
                "measures",
                "rollups",
                "source",
                "retention",
            ],
        )?;
        let dimensions = parse_dimensions(document)?;
        let source = parse_source(document)?;
        let time = parse_time(document)?;
        let rollups = parse_rollups(document, &dimensions)?;
        let (measures, empty) = parse_measures(document, source)?;
        let retention = parse_retention(document, time.as_ref())?;
        let definition = Self {
            dimensions,
            time,
            measures,
            rollups,
            source,
            retention,
            empty,
        };
        definition.check_names()?;
        Ok(definition)
    }

    fn check_names(&self) -> Result<()> {
        let dimensions = self.dimensions.iter().map(|field| field.name.as_str());
        let time = self.time.iter().map(|time| time.field.name.as_str());
        let measures = self.measures.iter().map(|measure| measure.name.as_str());
        let mut names: Vec<&str> = dimensions.chain(time).chain(measures).collect();
        for name in &names {
            if name.is_empty() || name.len() > MAX_NAME_BYTES {
                return Err(refuse("", "a name has 1 to 128 bytes"));
            }
            if *name == "previous" {
                return Err(refuse("", "the name 'previous' is reserved"));
            }
        }
        names.sort_unstable();
        let mut pairs = names.iter().zip(names.iter().skip(1));
        match pairs.find(|(left, right)| left == right) {
            Some((name, _)) => Err(refuse("", format!("the name '{name}' appears twice"))),
            None => Ok(()),
        }
    }
}

fn check_members(document: Document<'_>, pointer: &str, known: &[&str]) -> Result<()> {
    match document.iter().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => Err(refuse(
            format!("{pointer}/{}", segment(name)),
            format!("unknown member '{name}'"),
        )),
    }
}

/// A member; null means missing.
fn member<'a>(document: Document<'a>, name: &str) -> Option<ValueRef<'a>> {
    let value = document.get(name);
    value.filter(|value| !matches!(value, ValueRef::Null))
}

fn array<'a>(value: Option<ValueRef<'a>>, pointer: &str) -> Result<Option<Array<'a>>> {
    match value {
        None => Ok(None),
        Some(ValueRef::Array(array)) => Ok(Some(array)),
        Some(_) => Err(refuse(pointer, "an array is expected")),
    }
}

fn text<'a>(value: Option<ValueRef<'a>>, pointer: &str) -> Result<&'a str> {
    let text = value.and_then(|value| value.as_str());
    text.ok_or_else(|| refuse(pointer, "a string is expected"))
}

fn parse_dimensions(document: Document<'_>) -> Result<Vec<DottedField>> {
    let mut dimensions = Vec::new();
    let elements = array(member(document, "dimensions"), "/dimensions")?;
    for (index, value) in elements.iter().flat_map(Array::iter).enumerate() {
        let name = text(Some(value), &format!("/dimensions/{index}"))?;
        dimensions.push(DottedField::new(name));
    }
    if dimensions.len() > MAX_DIMENSIONS {
        return Err(refuse(
            "/dimensions",
            "an aggregate may have at most 16 dimensions",
        ));
    }
    Ok(dimensions)
}

fn parse_source(document: Document<'_>) -> Result<ContributionSource> {
    match member(document, "source").map(|value| value.as_str()) {
        None | Some(Some("events")) => Ok(ContributionSource::Events),
        Some(Some("view")) => Ok(ContributionSource::View),
        Some(_) => Err(refuse("/source", "a source is \"events\" or \"view\"")),
    }
}

fn parse_time(document: Document<'_>) -> Result<Option<TimeBucketing>> {
    let Some(value) = member(document, "time") else {
        return Ok(None);
    };
    let time = value
        .as_document()
        .ok_or_else(|| refuse("/time", "an object is expected"))?;
    check_members(time, "/time", &["field", "bucket"])?;
    let bucket = duration(text(time.get("bucket"), "/time/bucket")?)
        .ok_or_else(|| refuse("/time/bucket", "a bucket is a duration, such as \"5m\""))?;
    Ok(Some(TimeBucketing {
        field: DottedField::new(text(time.get("field"), "/time/field")?),
        bucket,
    }))
}

fn parse_retention(document: Document<'_>, time: Option<&TimeBucketing>) -> Result<Option<i64>> {
    let Some(value) = member(document, "retention") else {
        return Ok(None);
    };
    if time.is_none() {
        return Err(refuse(
            "/retention",
            "an aggregate without time has no retention",
        ));
    }
    let length = duration(text(Some(value), "/retention")?);
    let length = length.ok_or_else(|| refuse("/retention", "a retention is such as \"90d\""))?;
    Ok(Some(length))
}

fn parse_rollups(document: Document<'_>, dimensions: &[DottedField]) -> Result<Vec<Vec<usize>>> {
    let mut rollups = vec![(0..dimensions.len()).collect::<Vec<usize>>()];
    let elements = array(member(document, "rollups"), "/rollups")?;
    for (index, value) in elements.iter().flat_map(Array::iter).enumerate() {
        let pointer = format!("/rollups/{index}");
        let names = array(Some(value), &pointer)?;
        let mut rollup = Vec::new();
        for name in names.iter().flat_map(Array::iter) {
            let name = text(Some(name), &pointer)?;
            let dimension = dimensions.iter().position(|field| field.name == name);
            match dimension {
                Some(dimension) if !rollup.contains(&dimension) => rollup.push(dimension),
                Some(_) => return Err(refuse(pointer, format!("'{name}' appears twice"))),
                None => return Err(refuse(pointer, format!("'{name}' is not a dimension"))),
            }
        }
        if rollup.len() == dimensions.len() {
            // The one with all dimensions may determine their sort order.
            if let Some(first) = rollups.first_mut() {
                *first = rollup;
            }
        } else if rollups.contains(&rollup) {
            return Err(refuse(pointer, "a rollup appears twice"));
        } else {
            rollups.push(rollup);
        }
    }
    if rollups.len() > MAX_ROLLUPS {
        return Err(refuse(
            "/rollups",
            "an aggregate may have at most 16 rollups",
        ));
    }
    Ok(rollups)
}

fn parse_measures(
    document: Document<'_>,
    source: ContributionSource,
) -> Result<(Vec<AggregateMeasure>, RowState)> {
    let Some(value) = member(document, "measures") else {
        return Err(refuse("/measures", "an object is expected"));
    };
    let members = value
        .as_document()
        .ok_or_else(|| refuse("/measures", "an object is expected"))?;
    // The first slot counts contributions, so that a row without any does not exist.
    let mut empty = vec![SlotValue::Count(0)];
    let mut measures = Vec::new();
    for (name, value) in members.iter() {
        let pointer = format!("/measures/{}", segment(name));
        let Some(body) = value.as_document() else {
            return Err(refuse(pointer, "an object is expected"));
        };
        let op = parse_op(body, &pointer)?;
        let has_items = match &op {
            MeasureOperator::Top(..) => true,
            MeasureOperator::Min(_) | MeasureOperator::Max(_) | MeasureOperator::Distinct(_) => {
                source == ContributionSource::View
            }
            _ => false,
        };
        let slot = if matches!(op, MeasureOperator::Count) {
            0
        } else {
            empty.len()
        };
        if !has_items {
            empty.extend(slots(&op));
        }
        measures.push(AggregateMeasure {
            name: name.to_owned(),
            op,
            slot,
            has_items,
        });
    }
    if measures.len() > MAX_MEASURES {
        return Err(refuse(
            "/measures",
            "an aggregate may have at most 64 measures",
        ));
    }
    Ok((measures, RowState(empty)))
}

/// The slots of a measure in a row.
fn slots(op: &MeasureOperator) -> Vec<SlotValue> {
    let sum = |number: &SumType| match number {
        SumType::Double => SlotValue::Exact(rillbase_query::exact::ExactSum::default()),
        SumType::Int | SumType::Decimal(_) => SlotValue::Whole(0),
    };
    match op {
        MeasureOperator::Count | MeasureOperator::Top(..) => vec![],
        MeasureOperator::Sum(_, number) => vec![sum(number)],
        MeasureOperator::Avg(_, number) => vec![sum(number), SlotValue::Count(0)],
        MeasureOperator::Min(_) => vec![SlotValue::Least(Vec::new())],
        MeasureOperator::Max(_) => vec![SlotValue::Greatest(Vec::new())],
        MeasureOperator::Distinct(_) => {
            vec![SlotValue::Distinct(crate::distinct::Distinct::default())]
        }
        MeasureOperator::Quantiles(..) => vec![SlotValue::Sketch(crate::sketch::Sketch::default())],
    }
}

fn parse_op(body: Document<'_>, pointer: &str) -> Result<MeasureOperator> {
    let name = text(body.get("op"), &format!("{pointer}/op"))?;
    let known: &[&str] = match name {
        "count" => &["op"],
        "sum" | "avg" => &["op", "field", "type", "scale"],
        "min" | "max" | "distinct" => &["op", "field"],
        "quantiles" => &["op", "field", "quantiles", "accuracy"],
        "top" => &["op", "field", "k"],
        _ => {
            let known = "count, sum, avg, min, max, distinct, quantiles, top";
            let detail = format!("'{name}' must be one of {known}");
            return Err(refuse(format!("{pointer}/op"), detail));
        }
    };
    check_members(body, pointer, known)?;
    if name == "count" {
        return Ok(MeasureOperator::Count);
    }
    let field = DottedField::new(text(body.get("field"), &format!("{pointer}/field"))?);
    Ok(match name {
        "sum" => MeasureOperator::Sum(field, parse_number(body, pointer)?),
        "avg" => MeasureOperator::Avg(field, parse_number(body, pointer)?),
        "min" => MeasureOperator::Min(field),
        "max" => MeasureOperator::Max(field),
        "distinct" => MeasureOperator::Distinct(field),
        "quantiles" => {
            let (quantiles, accuracy) = parse_quantiles(body, pointer)?;
            MeasureOperator::Quantiles(field, quantiles, accuracy)
        }
        _ => {
            let k = integer(body.get("k"), 10, 1..=MAX_TOP);
            let k = k.ok_or_else(|| refuse(format!("{pointer}/k"), "k is from 1 to 1,000"))?;
            MeasureOperator::Top(field, usize::try_from(k).unwrap_or_default())
        }
    })
}

fn integer(
    value: Option<ValueRef<'_>>,
    default: i64,
    range: std::ops::RangeInclusive<i64>,
) -> Option<i64> {
    let number = value.map_or(Some(default), |value| value.as_exact_i64());
    number.filter(|number| range.contains(number))
}

fn parse_number(body: Document<'_>, pointer: &str) -> Result<SumType> {
    let kind = member(body, "type").map(|value| value.as_str());
    let number = match kind {
        None | Some(Some("double")) => SumType::Double,
        Some(Some("int")) => SumType::Int,
        Some(Some("decimal")) => {
            let scale = integer(body.get("scale"), 2, 0..=MAX_SCALE);
            let refusal = || refuse(format!("{pointer}/scale"), "a scale is from 0 to 18");
            let scale = scale.ok_or_else(refusal)?;
            return Ok(SumType::Decimal(u32::try_from(scale).unwrap_or_default()));
        }
        Some(_) => {
            let detail = "a type is \"int\", \"double\" or \"decimal\"";
            return Err(refuse(format!("{pointer}/type"), detail));
        }
    };
    match member(body, "scale") {
        None => Ok(number),
        Some(_) => Err(refuse(
            format!("{pointer}/scale"),
            "only a decimal has a scale",
        )),
    }
}

fn parse_quantiles(body: Document<'_>, pointer: &str) -> Result<(Vec<f64>, Accuracy)> {
    let pointer = format!("{pointer}/quantiles");
    let quantiles = match array(member(body, "quantiles"), &pointer)? {
        None => vec![0.5, 0.95, 0.99],
        Some(array) => {
            let numbers = array.iter().map(double);
            let within = numbers.map(|one| one.filter(|share| (0.0..=1.0).contains(share)));
            let shares: Option<Vec<f64>> = within.collect();
            shares
                .filter(|shares| (1..=16).contains(&shares.len()))
                .ok_or_else(|| {
                    refuse(pointer.clone(), "1 to 16 numbers from 0 to 1 are expected")
                })?
        }
    };
    let stated = body.get("accuracy").map_or(Some(0.01), double);
    let stated = stated.filter(|stated| (0.001..=0.1).contains(stated));
    let refusal = || {
        refuse(
            format!("{pointer}/accuracy"),
            "an accuracy is from 0.001 to 0.1",
        )
    };
    Ok((quantiles, Accuracy::new(stated.ok_or_else(refusal)?)))
}

/// A number as a double.
#[allow(clippy::cast_precision_loss, reason = "a double is requested")]
pub(crate) fn double(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Double(double) => Some(double),
        ValueRef::Int32(int) => Some(int.into()),
        ValueRef::Int64(int) => Some(int as f64),
        ValueRef::Decimal(decimal) => Some(decimal.to_f64()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        AggregateDefinition::parse(text.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn the_rollup_with_all_dimensions_comes_first_in_the_requested_order() {
        let text = br#"{"dimensions":["a","b"],"measures":{"n":{"op":"count"}},
            "rollups":[["b"],["b","a"],[]]}"#;
        let definition = AggregateDefinition::parse(text).unwrap();
        assert_eq!(definition.rollups, [vec![1, 0], vec![1], vec![]]);
    }

    #[test]
    fn measures_share_a_row_slot_by_slot() {
        let text = br#"{"measures":{"mean":{"op":"avg","field":"x","type":"decimal"},
            "n":{"op":"count"},"low":{"op":"min","field":"x"}}}"#;
        let definition = AggregateDefinition::parse(text).unwrap();
        let slots: Vec<usize> = definition.measures.iter().map(|one| one.slot).collect();
        assert_eq!(slots, [1, 0, 3]);
        assert_eq!(definition.empty.0.len(), 4);
    }

    #[test]
    fn errors_name_their_location() {
        for (text, expected) in [
            ("[]", "- expected a document in braces"),
            ("{}", "/measures an object is expected"),
            (
                r#"{"measures":{},"extra":1}"#,
                "/extra unknown member 'extra'",
            ),
            (
                r#"{"measures":{"n":{"op":"sum","field":"x","type":"long"}}}"#,
                "/measures/n/type a type is \"int\", \"double\" or \"decimal\"",
            ),
            (
                r#"{"measures":{},"dimensions":["a"],"rollups":[["b"]]}"#,
                "/rollups/0 'b' is not a dimension",
            ),
            (
                r#"{"measures":{"a":{"op":"count"}},"dimensions":["a"]}"#,
                "- the name 'a' appears twice",
            ),
            (
                r#"{"measures":{},"retention":"1d"}"#,
                "/retention an aggregate without time has no retention",
            ),
            (
                r#"{"measures":{},"time":{"field":"at","bucket":"5y"}}"#,
                "/time/bucket a bucket is a duration, such as \"5m\"",
            ),
        ] {
            assert_eq!(refusal(text), expected);
        }
    }
}
