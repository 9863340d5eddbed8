//! Values in their simplest form: those that are equal in the order of values become the same.

use crate::bson::{ArrayWriter, DocumentWriter, Value, ValueRef};
use crate::decimal::Decimal;
use crate::double::exact_i64;

/// The simplest form of a value. Nesting is bounded, as documents are.
pub(super) fn simplest(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Int32(int) => Value::Int32(int),
        ValueRef::Int64(int) => whole(int),
        ValueRef::Double(double) => from_double(double),
        ValueRef::Decimal(decimal) => from_decimal(decimal),
        ValueRef::Symbol(text) => Value::String(text.to_owned()),
        ValueRef::Undefined => Value::Null,
        ValueRef::Document(document) => {
            let mut writer = DocumentWriter::new();
            for (name, inner) in document.iter() {
                writer.append(name, simplest(inner).as_ref());
            }
            Value::Document(writer.into())
        }
        ValueRef::Array(array) => {
            let mut writer = ArrayWriter::new();
            for inner in array.iter() {
                writer.push(simplest(inner).as_ref());
            }
            Value::Array(writer.into())
        }
        other => Value::from(other),
    }
}

fn whole(int: i64) -> Value {
    i32::try_from(int).map_or(Value::Int64(int), Value::Int32)
}

fn from_double(double: f64) -> Value {
    match exact_i64(double) {
        Some(int) => whole(int),
        None if double.is_nan() => Value::Double(f64::NAN),
        None => Value::Double(double),
    }
}

/// A decimal that is neither an integer nor a double stays one.
fn from_decimal(decimal: Decimal) -> Value {
    if decimal.is_nan() {
        return Value::Double(f64::NAN);
    }
    if let Some(int) = decimal.to_exact_i64() {
        return whole(int);
    }
    let near = decimal.to_f64();
    if decimal.cmp_f64(near).is_eq() {
        return from_double(near);
    }
    Value::Decimal(decimal.normalized())
}
