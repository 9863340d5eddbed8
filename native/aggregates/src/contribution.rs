//! The contribution of one event or document to an aggregate: extracted once, applied to rows, and,
//! for documents, retracted later.
//!
//! ```text
//! contribution := time{0 | 1 millis} dimension-count dimension{slice}* input*
//! input        := 0 | 1 signed | 2 double{8} | 3 slice       one for each measure
//! ```

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_query::bson::ValueRef;
use rillbase_query::ejson::date;

use crate::definition::{
    AggregateDefinition, AggregateMeasure, ContributionSource, DottedField, MeasureOperator,
    SumType,
};
use crate::definition_parser::double;
use crate::error::{AggregateErrorCode, Error, Result};
use crate::fields::Fields;
use crate::scaled::{self, Misfit};
use crate::value::{DimensionValue, encode_field};

/// The maximum size of a dimension's value or an item.
const MAX_VALUE_BYTES: usize = 1024;

/// The input of a measure.
#[derive(Debug, Clone, PartialEq)]
pub enum MeasureInput {
    /// Nothing: the field is null or missing.
    Nothing,
    /// A number of units.
    Whole(i128),
    /// A double.
    Double(f64),
    /// A value, in the form that sorts.
    Value(Vec<u8>),
}

/// The contribution of one event or document.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    /// The start of the bucket, if there is time.
    pub bucket: Option<i64>,
    /// The values of all dimensions, concatenated in the sortable encoding.
    dimensions: Vec<u8>,
    /// The number of values.
    count: usize,
    /// One for each measure.
    pub inputs: Vec<MeasureInput>,
}

impl Contribution {
    /// The contribution of a document; `now` is the time of one without its own.
    pub fn of(definition: &AggregateDefinition, fields: Fields<'_>, now: i64) -> Result<Self> {
        let reading = ContributionReader {
            fields,
            is_event: definition.source == ContributionSource::Events,
        };
        let bucket = match &definition.time {
            None => None,
            Some(time) => definition.bucket(reading.moment(&time.field, now)?),
        };
        let mut dimensions = Vec::with_capacity(64);
        for field in &definition.dimensions {
            reading.value(field, &mut dimensions)?;
        }
        let mut inputs = Vec::with_capacity(definition.measures.len());
        for measure in &definition.measures {
            inputs.push(reading.input(measure)?);
        }
        Ok(Self {
            bucket,
            dimensions,
            count: definition.dimensions.len(),
            inputs,
        })
    }

    /// The time of a document; `now` if it has none, or if there is no time.
    pub fn moment(definition: &AggregateDefinition, fields: Fields<'_>, now: i64) -> Result<i64> {
        let reading = ContributionReader {
            fields,
            is_event: definition.source == ContributionSource::Events,
        };
        match &definition.time {
            None => Ok(now),
            Some(time) => reading.moment(&time.field, now),
        }
    }

    /// Appends what distinguishes its rows from all others.
    pub(crate) fn write_row_id(&self, generation: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&generation.to_be_bytes());
        if let Some(bucket) = self.bucket {
            out.extend_from_slice(&bucket.to_be_bytes());
        }
        out.extend_from_slice(&self.dimensions);
    }

    /// The values of all dimensions, in the sortable encoding.
    pub fn dimensions(&self) -> impl Iterator<Item = &[u8]> {
        let mut reader = ByteReader::new(&self.dimensions);
        (0..self.count).map(move |_| {
            let before = reader.rest();
            let length = DimensionValue::skip(&mut reader)
                .map_or(0, |()| before.len() - reader.rest().len());
            before.get(..length).unwrap_or_default()
        })
    }

    /// The value of one dimension.
    pub fn dimension(&self, index: usize) -> &[u8] {
        self.dimensions().nth(index).unwrap_or_default()
    }

    /// Its encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self.bucket {
            None => out.push(0),
            Some(bucket) => {
                out.push(1);
                out.put_signed(bucket.into());
            }
        }
        out.put_varint(self.count as u64);
        for dimension in self.dimensions() {
            out.put_slice(dimension);
        }
        for input in &self.inputs {
            match input {
                MeasureInput::Nothing => out.push(0),
                MeasureInput::Whole(number) => {
                    out.push(1);
                    out.put_signed(*number);
                }
                MeasureInput::Double(double) => {
                    out.push(2);
                    out.extend_from_slice(&double.to_bits().to_be_bytes());
                }
                MeasureInput::Value(value) => {
                    out.push(3);
                    out.put_slice(value);
                }
            }
        }
        out
    }

    /// Decodes it.
    pub fn from_bytes(bytes: &[u8]) -> ReadResult<Self> {
        let mut reader = ByteReader::new(bytes);
        let bucket = match reader.byte()? {
            0 => None,
            _ => Some(reader.signed_64()?),
        };
        let (mut dimensions, mut inputs) = (Vec::new(), Vec::new());
        let count = reader.count()?;
        for _ in 0..count {
            dimensions.extend_from_slice(reader.slice()?);
        }
        while !reader.is_empty() {
            inputs.push(match reader.byte()? {
                0 => MeasureInput::Nothing,
                1 => MeasureInput::Whole(reader.signed()?),
                2 => MeasureInput::Double(f64::from_bits(reader.u64_be()?)),
                3 => MeasureInput::Value(reader.slice()?.to_vec()),
                _ => return Err(reader.error("a kind of input")),
            });
        }
        Ok(Self {
            bucket,
            dimensions,
            count,
            inputs,
        })
    }
}

/// Reads fields of a document. An event with an invalid field is rejected; a document has another
/// owner, so its invalid field is ignored.
struct ContributionReader<'a> {
    fields: Fields<'a>,
    is_event: bool,
}

impl<'a> ContributionReader<'a> {
    fn refuse(field: &DottedField, detail: &str) -> Error {
        let detail = format!("'{}' {detail}", field.name);
        Error::at(AggregateErrorCode::BadEvent, field.pointer(), detail)
    }

    /// A field, unless it is null or missing.
    fn find(&self, field: &DottedField) -> Option<ValueRef<'a>> {
        let value = self.fields.find(field);
        value.filter(|value| !matches!(value, ValueRef::Null | ValueRef::Undefined))
    }

    fn moment(&self, field: &DottedField, now: i64) -> Result<i64> {
        let moment = match self.find(field) {
            None if self.is_event => return Ok(now),
            // A document without a time also has a position.
            None => return Ok(0),
            Some(ValueRef::Date(millis)) => Some(millis),
            Some(ValueRef::String(text)) => date::from_rfc3339(text),
            Some(other) => other.as_exact_i64(),
        };
        match moment {
            Some(moment) => Ok(moment),
            None if self.is_event => Err(Self::refuse(
                field,
                "is not a time: RFC 3339, or milliseconds since 1970",
            )),
            None => Ok(0),
        }
    }

    /// Appends a field's value.
    fn value(&self, field: &DottedField, out: &mut Vec<u8>) -> Result<()> {
        let value = self.fields.find(field);
        if self.is_event {
            let is_plain = match value {
                Some(ValueRef::String(text)) => text.len() <= MAX_VALUE_BYTES,
                other => !matches!(DimensionValue::of(other), DimensionValue::Other(_)),
            };
            if !is_plain {
                let detail = "is neither null, boolean, number, date, ObjectId nor a string of 1,024 bytes at most";
                return Err(Self::refuse(field, detail));
            }
        }
        encode_field(value, out);
        Ok(())
    }

    fn input(&self, measure: &AggregateMeasure) -> Result<MeasureInput> {
        let Some(field) = measure.op.field() else {
            return Ok(MeasureInput::Nothing);
        };
        let Some(value) = self.find(field) else {
            return Ok(MeasureInput::Nothing);
        };
        match &measure.op {
            MeasureOperator::Count => Ok(MeasureInput::Nothing),
            MeasureOperator::Sum(_, number) | MeasureOperator::Avg(_, number) => {
                self.number(field, value, *number)
            }
            MeasureOperator::Quantiles(..) => self.number(field, value, SumType::Double),
            MeasureOperator::Min(_)
            | MeasureOperator::Max(_)
            | MeasureOperator::Distinct(_)
            | MeasureOperator::Top(..) => {
                let mut bytes = Vec::new();
                self.value(field, &mut bytes)?;
                Ok(MeasureInput::Value(bytes))
            }
        }
    }

    fn number(
        &self,
        field: &DottedField,
        value: ValueRef<'_>,
        number: SumType,
    ) -> Result<MeasureInput> {
        let read = match number {
            SumType::Double => double(value)
                .map(MeasureInput::Double)
                .ok_or(Misfit::NotANumber),
            SumType::Int => match value.as_exact_i64() {
                Some(int) => Ok(MeasureInput::Whole(int.into())),
                None => Err(misfit_of_integer(value)),
            },
            SumType::Decimal(scale) => self.decimal(value, scale).map(MeasureInput::Whole),
        };
        let misfit = match read {
            Ok(input) => return Ok(input),
            Err(_) if !self.is_event => return Ok(MeasureInput::Nothing),
            Err(misfit) => misfit,
        };
        Err(match misfit {
            Misfit::NotANumber => Self::refuse(field, "is not a number"),
            Misfit::TooPrecise => Self::refuse(field, "has more decimal places than the measure"),
            Misfit::TooLarge => {
                let detail = format!("'{}' is too large for the measure", field.name);
                Error::at(AggregateErrorCode::Overflow, field.pointer(), detail)
            }
        })
    }

    fn decimal(&self, value: ValueRef<'_>, scale: u32) -> std::result::Result<i128, Misfit> {
        let rounds = !self.is_event;
        match value {
            // The shortest text of a double is the intended decimal.
            ValueRef::Double(double) => scaled::parse(&double.to_string(), scale, rounds),
            ValueRef::Int32(int) => scaled::parse(&int.to_string(), scale, rounds),
            ValueRef::Int64(int) => scaled::parse(&int.to_string(), scale, rounds),
            ValueRef::Decimal(decimal) => scaled::parse(&decimal.to_string(), scale, rounds),
            ValueRef::String(text) if self.is_event => scaled::parse(text, scale, rounds),
            _ => Err(Misfit::NotANumber),
        }
    }
}

fn misfit_of_integer(value: ValueRef<'_>) -> Misfit {
    match double(value) {
        Some(double) if double.fract() != 0.0 => Misfit::TooPrecise,
        Some(double) if double.is_finite() => Misfit::TooLarge,
        _ => Misfit::NotANumber,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{Flat, ParsedEvent};

    const DEFINITION: &str = r#"{"dimensions":["a","b.c"],"time":{"field":"at","bucket":"5m"},
        "measures":{"n":{"op":"count"},"t":{"op":"sum","field":"x","type":"decimal"},
        "i":{"op":"sum","field":"i","type":"int"},"m":{"op":"max","field":"x"}}}"#;

    fn of(event: &str, source: &str) -> Result<Contribution> {
        let definition = DEFINITION.replacen('{', &format!(r#"{{"source":"{source}","#), 1);
        let definition = AggregateDefinition::parse(definition.as_bytes()).unwrap();
        let mut room = Flat::default();
        let event = ParsedEvent::event(event.as_bytes(), &mut room).unwrap();
        Contribution::of(&definition, event.fields(), 1_000_000)
    }

    #[test]
    fn fields_are_read_once_and_round_trip_through_bytes() {
        let event = r#"{"a":"x","b":{"c":7},"at":"1970-01-01T00:07:00Z","x":1.25,"i":3}"#;
        let read = of(event, "events").unwrap();
        assert_eq!(read.bucket, Some(300_000));
        assert_eq!(
            read.dimension(0),
            DimensionValue::Text("x".into()).encoded()
        );
        assert_eq!(read.dimension(1), DimensionValue::Int(7).encoded());
        assert_eq!(read.inputs[1], MeasureInput::Whole(125));
        assert_eq!(Contribution::from_bytes(&read.to_bytes()), Ok(read));
    }

    #[test]
    fn an_invalid_event_is_rejected_and_an_invalid_document_is_skipped() {
        for (event, expected) in [
            (r#"{"a":[1]}"#, "/a 'a' is neither"),
            (r#"{"at":"noon"}"#, "/at 'at' is not a time"),
            (r#"{"x":"many"}"#, "/x 'x' is not a number"),
            (r#"{"x":1.234}"#, "/x 'x' has more decimal places"),
            (r#"{"x":1e30}"#, "/x 'x' is too large"),
            (r#"{"i":1e300}"#, "/i 'i' is too large"),
            (r#"{"i":0.5}"#, "/i 'i' has more decimal places"),
        ] {
            let refusal = of(event, "events").unwrap_err().to_string();
            assert!(refusal.starts_with(expected), "{refusal}");
            assert!(of(event, "view").is_ok(), "{event}");
        }
    }
}
