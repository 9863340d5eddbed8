//! Values as bytes whose order is the order of [`crate::order`].
//!
//! For all values: `encode(a) < encode(b)` iff `a < b`, and equal iff equal in that order; so 1,
//! 1.0 and decimal 1.00 have one key, and none is a prefix of another's, so that keys of several
//! fields can be concatenated.
//!
//! ```text
//! value   = rank payload
//! number  = floor residue         floor: the largest double not above it, as
//!                                 eight bytes whose order is the numbers'
//! residue = 0                     the number is that double
//!         | 1 exact               it lies above: sign, exponent, 34 digits
//! text    = escaped 0 0           0 inside is written 0 255
//! document = { rank key 0 payload } 0
//! array    = { value } 0
//! binary  = length(4, big-endian) subtype bytes
//! ```
//!
//! The residue is a single byte for numbers that doubles represent exactly. It is longer only for
//! integers beyond 2^53 and decimals such as 0.1.

use std::cmp::Ordering;

use crate::bson::{Array, Document, ValueRef};
use crate::decimal::Decimal;
use crate::number::NumericValue;

/// Appends the key of a value.
pub fn encode(key: &mut Vec<u8>, value: ValueRef<'_>) {
    key.push(value.rank());
    payload(key, value);
}

/// Appends the key of a value for a descending field: the order is reversed.
pub fn encode_descending(key: &mut Vec<u8>, value: ValueRef<'_>) {
    let start = key.len();
    encode(key, value);
    key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
}

/// The key of one value.
#[must_use]
pub fn encode_key(value: ValueRef<'_>) -> Vec<u8> {
    let mut key = Vec::with_capacity(16);
    encode(&mut key, value);
    key
}

/// The number at the beginning of a key, if it is a double.
#[must_use]
pub fn leading_double(key: &[u8]) -> Option<f64> {
    let (rank, rest) = key.split_first()?;
    let ordered = u64::from_be_bytes(*rest.first_chunk()?);
    let is_double = *rank == ValueRef::Double(0.0).rank() && rest.get(8) == Some(&0);
    let bits = if ordered >> 63 == 1 {
        ordered & !(1 << 63)
    } else {
        !ordered
    };
    is_double.then(|| f64::from_bits(bits))
}

fn payload(key: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) | ValueRef::Decimal(_) => {
            if let Some(number) = NumericValue::from_value(value) {
                encode_number(key, number);
            }
        }
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::Code(text) => {
            escaped(key, text)
        }
        ValueRef::Document(inner) => document(key, inner),
        ValueRef::Array(inner) => array(key, inner),
        ValueRef::Binary(binary) => {
            let length = u32::try_from(binary.bytes.len()).unwrap_or(u32::MAX);
            key.extend_from_slice(&length.to_be_bytes());
            key.push(binary.subtype);
            key.extend_from_slice(binary.bytes);
        }
        ValueRef::ObjectId(id) => key.extend_from_slice(&id.0),
        ValueRef::Bool(bool) => key.push(u8::from(bool)),
        ValueRef::Date(millis) => key.extend_from_slice(&ordered_i64(millis)),
        ValueRef::Timestamp(stamp) => key.extend_from_slice(&stamp.to_be_bytes()),
        ValueRef::Regex(regex) => {
            escaped(key, regex.pattern);
            escaped(key, regex.options);
        }
        ValueRef::DbPointer(name, id) => {
            escaped(key, name);
            key.extend_from_slice(&id.0);
        }
        ValueRef::CodeWithScope(code, scope) => {
            escaped(key, code);
            document(key, scope);
        }
        ValueRef::Undefined | ValueRef::Null | ValueRef::MaxKey | ValueRef::MinKey => {}
    }
}

fn document(key: &mut Vec<u8>, document: Document<'_>) {
    for element in document.elements() {
        key.push(element.kind().rank());
        key.extend_from_slice(element.key_bytes());
        key.push(0);
        if let Some(value) = element.value() {
            payload(key, value);
        }
    }
    key.push(0);
}

fn array(key: &mut Vec<u8>, array: Array<'_>) {
    array.iter().for_each(|value| encode(key, value));
    key.push(0);
}

fn escaped(key: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(0xFF);
        }
    }
    key.extend_from_slice(&[0, 0]);
}

fn ordered_i64(int: i64) -> [u8; 8] {
    (int.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

fn encode_number(key: &mut Vec<u8>, number: NumericValue) {
    let (floor, residue) = match number {
        NumericValue::Double(double) => (double, None),
        NumericValue::Int(int) => floor_of_int(int),
        NumericValue::Decimal(decimal) => floor_of_decimal(decimal),
    };
    key.extend_from_slice(&ordered_f64(floor));
    match residue {
        None => key.push(0),
        Some(decimal) => {
            key.push(1);
            exact(key, decimal);
        }
    }
}

/// Eight bytes in the order of the doubles; all NaNs are one, zeros too.
fn ordered_f64(double: f64) -> [u8; 8] {
    if double.is_nan() {
        return [0; 8];
    }
    let bits = if double == 0.0 { 0 } else { double.to_bits() };
    let negative = bits >> 63 == 1;
    let ordered = if negative { !bits } else { bits | (1 << 63) };
    ordered.to_be_bytes()
}

#[allow(
    clippy::cast_precision_loss,
    reason = "the loss is what the residue holds"
)]
fn floor_of_int(int: i64) -> (f64, Option<Decimal>) {
    let near = int as f64;
    match crate::double::cmp_i64_f64(int, near) {
        Ordering::Equal => (near, None),
        Ordering::Greater => (near, Some(Decimal::from(int))),
        Ordering::Less => (near.next_down(), Some(Decimal::from(int))),
    }
}

fn floor_of_decimal(decimal: Decimal) -> (f64, Option<Decimal>) {
    let near = decimal.to_f64();
    match decimal.cmp_f64(near) {
        Ordering::Equal => (near, None),
        Ordering::Greater => (near, Some(decimal)),
        Ordering::Less => (near.next_down(), Some(decimal)),
    }
}

/// A finite decimal other than zero in the order of the numbers.
fn exact(key: &mut Vec<u8>, decimal: Decimal) {
    let start = key.len();
    let (exponent, digits) = decimal.scientific();
    key.push(1);
    // The adjusted exponent is in −6176 … 6144.
    let biased = u16::try_from(exponent + 8192).unwrap_or(0);
    key.extend_from_slice(&biased.to_be_bytes());
    key.extend_from_slice(&digits.to_be_bytes());
    if decimal.is_negative() {
        key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}
