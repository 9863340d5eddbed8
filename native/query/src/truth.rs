//! The truth of values.

use crate::bson::ValueRef;

/// Whether a value counts as true: all except false, null, undefined and zero.
pub(crate) fn is_true(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Bool(bool) => bool,
        ValueRef::Null | ValueRef::Undefined => false,
        number if number.is_number() => number.as_exact_i64() != Some(0),
        _ => true,
    }
}
