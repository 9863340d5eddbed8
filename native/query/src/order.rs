//! The order over all values: first by type, then within the type.
//!
//! MinKey < undefined < null < numbers < strings and symbols < documents <
//! arrays < binary < ObjectId < booleans < dates < timestamps < regular
//! expressions < pointers < code < MaxKey. Documents compare field by field,
//! each by type, then key, then value, so that the order of keys matters.

use std::cmp::Ordering;

use crate::bson::{Array, BsonElement, Document, ValueRef};
use crate::number;

/// Compares two values.
#[must_use]
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    a.rank().cmp(&b.rank()).then_with(|| same_rank(a, b))
}

/// Whether two values are equal in that order.
#[must_use]
pub fn equal(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    a.rank() == b.rank() && same_rank(a, b) == Ordering::Equal
}

/// Compares values of one rank.
fn same_rank(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    use ValueRef as V;
    match (a, b) {
        (V::Int32(a), V::Int32(b)) => a.cmp(&b),
        (V::String(a) | V::Symbol(a), V::String(b) | V::Symbol(b)) | (V::Code(a), V::Code(b)) => {
            a.as_bytes().cmp(b.as_bytes())
        }
        (V::Document(a), V::Document(b)) => documents(a, b),
        (V::Array(a), V::Array(b)) => arrays(a, b),
        (V::Binary(a), V::Binary(b)) => {
            let lengths = a.bytes.len().cmp(&b.bytes.len());
            lengths
                .then(a.subtype.cmp(&b.subtype))
                .then_with(|| a.bytes.cmp(b.bytes))
        }
        (V::ObjectId(a), V::ObjectId(b)) => a.cmp(&b),
        (V::Bool(a), V::Bool(b)) => a.cmp(&b),
        (V::Date(a), V::Date(b)) => a.cmp(&b),
        (V::Timestamp(a), V::Timestamp(b)) => a.cmp(&b),
        (V::Regex(a), V::Regex(b)) => a
            .pattern
            .cmp(b.pattern)
            .then_with(|| a.options.cmp(b.options)),
        (V::DbPointer(a, x), V::DbPointer(b, y)) => a.cmp(b).then(x.cmp(&y)),
        (V::CodeWithScope(a, x), V::CodeWithScope(b, y)) => a.cmp(b).then_with(|| documents(x, y)),
        _ if a.is_number() => number::compare(a, b),
        _ => Ordering::Equal,
    }
}

/// Compares documents field by field.
#[must_use]
pub fn documents(a: Document<'_>, b: Document<'_>) -> Ordering {
    walk(a, b, |a, b| a.key_bytes().cmp(b.key_bytes()))
}

/// Compares arrays element by element.
#[must_use]
pub fn arrays(a: Array<'_>, b: Array<'_>) -> Ordering {
    walk(a.as_document(), b.as_document(), |_, _| Ordering::Equal)
}

fn walk(
    a: Document<'_>,
    b: Document<'_>,
    keys: impl Fn(&BsonElement<'_>, &BsonElement<'_>) -> Ordering,
) -> Ordering {
    let (mut left, mut right) = (a.elements(), b.elements());
    loop {
        let (x, y) = match (left.next(), right.next()) {
            (Some(x), Some(y)) => (x, y),
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
        };
        let order = x
            .kind()
            .rank()
            .cmp(&y.kind().rank())
            .then_with(|| keys(&x, &y));
        if order != Ordering::Equal {
            return order;
        }
        if let (Some(x), Some(y)) = (x.value(), y.value()) {
            let order = same_rank(x, y);
            if order != Ordering::Equal {
                return order;
            }
        }
    }
}
