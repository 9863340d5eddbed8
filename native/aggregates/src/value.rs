//! Values of dimensions and items, in an encoding that sorts like them and can be decoded.
//!
//! ```text
//! value  := 05                                  null, and what is missing
//!         | 0a double{8} rest{2} kind{1}        a number
//!         | 10 text 00 01                       a string
//!         | 14 text 00 01                       anything else, as Extended JSON
//!         | 20 bytes{12}                        an ObjectId
//!         | 28 | 29                             false, true
//!         | 30 millis{8}                        a date
//! ```
//!
//! A number is encoded as the nearest double in a sortable form, then the difference of an integer
//! from it, then 0 for an integer and 1 for a double. Doubles without a fraction that fit an
//! integer are integers, so that 1 and 1.0 are one value. In texts 00 is encoded as 00 ff. A date
//! is its milliseconds with the sign bit flipped, big-endian.

use rillbase_binary_format::{ByteReader, ReadResult};
use rillbase_query::bson::{DocumentWriter, ObjectId, ValueRef};
use rillbase_query::ejson::{self, Form, date};

const NULL: u8 = 0x05;
const NUMBER: u8 = 0x0a;
const TEXT: u8 = 0x10;
const OTHER: u8 = 0x14;
const OBJECT_ID: u8 = 0x20;
const FALSE: u8 = 0x28;
const TRUE: u8 = 0x29;
const DATE: u8 = 0x30;
/// The terminator of every value and every bucket.
pub(crate) const TERMINATOR: u8 = 0xff;

const SIGN: u64 = 1 << 63;
const INTEGER: u8 = 0;
const DOUBLE: u8 = 1;
const ESCAPE: u8 = 0;
const END: u8 = 1;
const ESCAPED: u8 = 0xff;
/// 2^63: doubles below it, and not below its negative, fit an integer.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum DimensionValue {
    /// Null, or missing.
    Null,
    /// An integer.
    Int(i64),
    /// A number that is not an integer.
    Double(f64),
    /// A string.
    Text(String),
    /// Anything else, as canonical Extended JSON.
    Other(String),
    /// An ObjectId.
    Id([u8; 12]),
    /// A boolean.
    Bool(bool),
    /// Milliseconds since 1970.
    Date(i64),
}

impl DimensionValue {
    /// The value of a field of a document.
    pub fn of(value: Option<ValueRef<'_>>) -> Self {
        match value {
            None | Some(ValueRef::Null | ValueRef::Undefined) => Self::Null,
            Some(ValueRef::Bool(bool)) => Self::Bool(bool),
            Some(ValueRef::Int32(int)) => Self::Int(int.into()),
            Some(ValueRef::Int64(int)) => Self::Int(int),
            Some(ValueRef::Double(double)) => Self::of_double(double),
            Some(ValueRef::String(text)) => Self::Text(text.to_owned()),
            Some(ValueRef::ObjectId(id)) => Self::Id(id.0),
            Some(ValueRef::Date(millis)) => Self::Date(millis),
            Some(other) => match other.as_exact_i64() {
                Some(int) => Self::Int(int),
                None => Self::Other(ejson::value_to_string(other, Form::Canonical)),
            },
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "only doubles without fraction that fit are cast"
    )]
    fn of_double(double: f64) -> Self {
        let fits = (-INTEGERS_END..INTEGERS_END).contains(&double);
        if fits && double.fract() == 0.0 {
            Self::Int(double as i64)
        } else {
            Self::Double(double)
        }
    }

    /// Appends it in the sortable encoding.
    #[allow(
        clippy::cast_precision_loss,
        reason = "what the nearest double differs by follows it"
    )]
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.push(NULL),
            Self::Int(int) => {
                let nearest = *int as f64;
                encode_double(out, nearest);
                let rest = i128::from(*int) - nearest as i128;
                let rest = i16::try_from(rest).unwrap_or_default();
                out.extend_from_slice(&(rest.cast_unsigned() ^ 0x8000).to_be_bytes());
                out.push(INTEGER);
            }
            Self::Double(double) => {
                encode_double(out, *double);
                out.extend_from_slice(&[0x80, 0, DOUBLE]);
            }
            Self::Text(text) => encode_text(out, TEXT, text),
            Self::Other(text) => encode_text(out, OTHER, text),
            Self::Id(id) => {
                out.push(OBJECT_ID);
                out.extend_from_slice(id);
            }
            Self::Bool(bool) => out.push(if *bool { TRUE } else { FALSE }),
            Self::Date(millis) => {
                out.push(DATE);
                put_millis(out, *millis);
            }
        }
    }

    /// Its encoding.
    pub fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// Decodes one from the front of bytes.
    pub(crate) fn decode(reader: &mut ByteReader<'_>) -> ReadResult<Self> {
        Ok(match reader.byte()? {
            NULL => Self::Null,
            NUMBER => {
                let double = decode_double(reader.u64_be()?);
                let rest = reader.u16_be()?;
                if reader.byte()? == DOUBLE {
                    Self::Double(double)
                } else {
                    let rest = i128::from((rest ^ 0x8000).cast_signed());
                    let int = whole(double)
                        .checked_add(rest)
                        .and_then(|int| int.try_into().ok());
                    Self::Int(reader.check(int, "an integer of 64 bits")?)
                }
            }
            TEXT => Self::Text(decode_text(reader)?),
            OTHER => Self::Other(decode_text(reader)?),
            OBJECT_ID => Self::Id(reader.array()?),
            FALSE => Self::Bool(false),
            TRUE => Self::Bool(true),
            DATE => Self::Date(millis(reader)?),
            _ => return Err(reader.error("a kind of value")),
        })
    }

    /// Skips one at the front of bytes.
    pub(crate) fn skip(reader: &mut ByteReader<'_>) -> ReadResult<()> {
        match reader.byte()? {
            NULL | FALSE | TRUE => {}
            NUMBER => drop(reader.take(11)?),
            TEXT | OTHER => loop {
                let at = escape(reader)?;
                if reader.take(at + 2)?.last() == Some(&END) {
                    break;
                }
            },
            OBJECT_ID => drop(reader.take(12)?),
            DATE => drop(reader.take(8)?),
            _ => return Err(reader.error("a kind of value")),
        }
        Ok(())
    }

    /// As a value of a document, unless only its text identifies it.
    fn plain(&self) -> Option<ValueRef<'_>> {
        Some(match self {
            Self::Null => ValueRef::Null,
            Self::Int(int) => ValueRef::Int64(*int),
            Self::Double(double) => ValueRef::Double(*double),
            Self::Text(text) => ValueRef::String(text),
            Self::Other(_) => return None,
            Self::Id(bytes) => ValueRef::ObjectId(ObjectId(*bytes)),
            Self::Bool(bool) => ValueRef::Bool(*bool),
            Self::Date(millis) => ValueRef::Date(*millis),
        })
    }

    /// Writes it as Extended JSON.
    pub(crate) fn write(&self, out: &mut String) {
        match (self.plain(), self) {
            (Some(plain), _) => ejson::write_value(out, plain, Form::Relaxed),
            (None, Self::Other(text)) => out.push_str(text),
            (None, _) => {}
        }
    }

    /// Appends it to a document.
    pub(crate) fn append(&self, writer: &mut DocumentWriter, name: &str) {
        match (self.plain(), self) {
            (Some(plain), _) => writer.append(name, plain),
            (None, Self::Other(text)) => {
                if let Ok(value) = ejson::parse_value(text.as_bytes()) {
                    writer.append(name, value.as_ref());
                }
            }
            (None, _) => {}
        }
    }
}

/// Encodes the value of a field, without a copy of strings.
pub(crate) fn encode_field(value: Option<ValueRef<'_>>, out: &mut Vec<u8>) {
    match value {
        Some(ValueRef::String(text)) => encode_text(out, TEXT, text),
        other => DimensionValue::of(other).encode(out),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the nearest double of an integer has no fraction, and is as large"
)]
fn whole(double: f64) -> i128 {
    double as i128
}

fn encode_double(out: &mut Vec<u8>, double: f64) {
    out.push(NUMBER);
    // NaN sorts first; zero has no sign.
    let bits = match double {
        _ if double.is_nan() => 0,
        _ if double == 0.0 => SIGN,
        _ if double.is_sign_negative() => !double.to_bits(),
        _ => double.to_bits() | SIGN,
    };
    out.extend_from_slice(&bits.to_be_bytes());
}

fn decode_double(bits: u64) -> f64 {
    match bits {
        0 => f64::NAN,
        _ if bits & SIGN != 0 => f64::from_bits(bits ^ SIGN),
        _ => f64::from_bits(!bits),
    }
}

fn encode_text(out: &mut Vec<u8>, tag: u8, text: &str) {
    out.push(tag);
    if text.as_bytes().contains(&ESCAPE) {
        for &byte in text.as_bytes() {
            out.push(byte);
            if byte == ESCAPE {
                out.push(ESCAPED);
            }
        }
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(&[ESCAPE, END]);
}

/// How far the next escape is.
fn escape(reader: &ByteReader<'_>) -> ReadResult<usize> {
    let at = reader.rest().iter().position(|&byte| byte == ESCAPE);
    reader.check(at, "the end of a text")
}

fn decode_text(reader: &mut ByteReader<'_>) -> ReadResult<String> {
    let mut bytes = Vec::new();
    loop {
        let at = escape(reader)?;
        bytes.extend_from_slice(reader.take(at)?);
        match reader.take(2)? {
            [_, END] => return reader.check(String::from_utf8(bytes).ok(), "UTF-8"),
            [_, ESCAPED] => bytes.push(ESCAPE),
            _ => return Err(reader.error("an escape")),
        }
    }
}

/// Appends a time in the sortable encoding.
pub(crate) fn put_millis(out: &mut Vec<u8>, millis: i64) {
    out.extend_from_slice(&(millis.cast_unsigned() ^ SIGN).to_be_bytes());
}

/// Decodes a time from the front of bytes.
pub(crate) fn millis(reader: &mut ByteReader<'_>) -> ReadResult<i64> {
    Ok((reader.u64_be()? ^ SIGN).cast_signed())
}

/// Writes a time as text in JSON.
pub(crate) fn write_moment(out: &mut String, millis: i64) {
    match date::to_rfc3339(millis) {
        // The text needs no escapes.
        Some(text) => {
            out.push('"');
            out.push_str(&text);
            out.push('"');
        }
        None => ejson::write_value(out, ValueRef::Int64(millis), Form::Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = DimensionValue> {
        prop_oneof![
            Just(DimensionValue::Null),
            any::<i64>().prop_map(DimensionValue::Int),
            (-3_i64..3).prop_map(DimensionValue::Int),
            any::<f64>()
                .prop_filter("no NaN, which equals nothing", |double| !double.is_nan())
                .prop_map(DimensionValue::of_double),
            "[a\\x00\u{e9}]{0,4}".prop_map(DimensionValue::Text),
            any::<[u8; 12]>().prop_map(DimensionValue::Id),
            any::<bool>().prop_map(DimensionValue::Bool),
            any::<i64>().prop_map(DimensionValue::Date),
        ]
    }

    #[allow(clippy::cast_precision_loss, reason = "only near ones are compared so")]
    fn order(left: &DimensionValue, right: &DimensionValue) -> Option<std::cmp::Ordering> {
        Some(match (left, right) {
            (DimensionValue::Int(left), DimensionValue::Int(right))
            | (DimensionValue::Date(left), DimensionValue::Date(right)) => left.cmp(right),
            (DimensionValue::Double(left), DimensionValue::Double(right)) => left.total_cmp(right),
            (DimensionValue::Int(left), DimensionValue::Double(right)) => {
                (*left as f64).partial_cmp(right)?
            }
            (DimensionValue::Text(left), DimensionValue::Text(right)) => left.cmp(right),
            _ => return None,
        })
    }

    proptest! {
        #[test]
        fn values_round_trip_and_can_be_skipped(value in any_value(), behind in any::<u8>()) {
            let mut bytes = value.encoded();
            bytes.push(behind);
            let mut reader = ByteReader::new(&bytes);
            prop_assert_eq!(DimensionValue::decode(&mut reader), Ok(value));
            prop_assert_eq!(reader.rest(), &[behind][..]);
            let mut reader = ByteReader::new(&bytes);
            prop_assert_eq!(DimensionValue::skip(&mut reader), Ok(()));
            prop_assert_eq!(reader.rest(), &[behind][..]);
        }

        #[test]
        fn bytes_sort_as_values_do(left in any_value(), right in any_value()) {
            if let Some(order) = order(&left, &right) {
                prop_assert_eq!(left.encoded().cmp(&right.encoded()), order);
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>()) {
            let _ = DimensionValue::decode(&mut ByteReader::new(&bytes));
            let _ = DimensionValue::skip(&mut ByteReader::new(&bytes));
        }
    }

    #[test]
    fn a_whole_double_is_the_integer() {
        let of = |value| DimensionValue::of(Some(value)).encoded();
        assert_eq!(of(ValueRef::Double(1.0)), of(ValueRef::Int32(1)));
        assert_eq!(of(ValueRef::Double(-0.0)), of(ValueRef::Int64(0)));
        assert_ne!(of(ValueRef::Double(1.5)), of(ValueRef::Int32(1)));
        assert_eq!(
            DimensionValue::of(None),
            DimensionValue::of(Some(ValueRef::Null))
        );
    }
}
