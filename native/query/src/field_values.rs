//! The values of several fields of one document, for sorts and indexes.
//!
//! A field whose path passes through an array has one value per element. Fields that pass through
//! the same array are taken from the same element, as MongoDB does. Arrays side by side are
//! independent of each other: a sort uses the least value of each, and an index has their product.

use crate::bson::{Array, Document, ValueRef};
use crate::error::EvaluationFailure;
use crate::fuel::Fuel;
use crate::key::{encode, encode_descending};
use crate::limits::INDEX_KEYS;
use crate::path::{FieldPath, PathSegment};

/// The evaluation of a field in a document: the rest of its path, or the value it reached.
#[derive(Clone, Copy)]
pub(crate) enum FieldCursor<'p, 'a> {
    Open(&'p [PathSegment], Document<'a>),
    Array(&'p [PathSegment], Array<'a>),
    Done(ValueRef<'a>),
}

impl<'p, 'a> FieldCursor<'p, 'a> {
    /// The field at a path of a document.
    pub(crate) fn at(path: &'p FieldPath, document: Document<'a>) -> Self {
        advance(Self::Open(path.segments(), document))
    }

    fn is_in(&self, array: Array<'a>) -> bool {
        matches!(self, FieldCursor::Array(_, other) if std::ptr::eq(other.as_bytes(), array.as_bytes()))
    }

    /// The field in one element of the array that it reached.
    fn of_element(self, element: ValueRef<'a>) -> Self {
        match self {
            FieldCursor::Array([], _) => FieldCursor::Done(element),
            FieldCursor::Array(rest, _) => match element {
                ValueRef::Document(inner) => advance(FieldCursor::Open(rest, inner)),
                _ => FieldCursor::Done(ValueRef::Null),
            },
            other => other,
        }
    }

    /// The field if the array that it reached is empty.
    const fn of_empty(self) -> Self {
        match self {
            FieldCursor::Array([], _) => FieldCursor::Done(ValueRef::Undefined),
            FieldCursor::Array(..) => FieldCursor::Done(ValueRef::Null),
            other => other,
        }
    }
}

/// The least key of a document by these fields, each with whether it descends.
pub(crate) fn least_key(
    fields: Vec<(FieldCursor<'_, '_>, bool)>,
    fuel: &Fuel,
) -> Result<Vec<u8>, EvaluationFailure> {
    let is_done = |(field, _): &(FieldCursor<'_, '_>, bool)| matches!(field, FieldCursor::Done(_));
    if fields.iter().all(is_done) {
        fuel.steps(fields.len() as u64)?;
        let mut key = Vec::with_capacity(32);
        for (field, descending) in fields {
            append(&mut key, field, descending);
        }
        return Ok(key);
    }
    Ok(least_parts(&fields, fuel)?.concat())
}

/// The part of each field in the least key. Arrays side by side do not depend on each other, so the
/// least parts of each make the least whole.
fn least_parts(
    fields: &[(FieldCursor<'_, '_>, bool)],
    fuel: &Fuel,
) -> Result<Vec<Vec<u8>>, EvaluationFailure> {
    fuel.steps(fields.len() as u64)?;
    let mut parts = vec![Vec::new(); fields.len()];
    for (position, (field, descending)) in fields.iter().enumerate() {
        let FieldCursor::Array(_, array) = field else {
            if let Some(part) = parts.get_mut(position) {
                append(part, *field, *descending);
            }
            continue;
        };
        let earlier = fields.iter().take(position);
        if earlier.clone().any(|(other, _)| other.is_in(*array)) {
            continue;
        }
        let (places, inside): (Vec<usize>, Vec<_>) = (0..)
            .zip(fields)
            .filter(|(_, (other, _))| other.is_in(*array))
            .unzip();
        let least = least_element(*array, &inside, fuel)?;
        for (place, least) in places.into_iter().zip(least) {
            if let Some(part) = parts.get_mut(place) {
                *part = least;
            }
        }
    }
    Ok(parts)
}

/// The parts of fields that pass through one array, of the element in which
/// they are least.
fn least_element(
    array: Array<'_>,
    fields: &[&(FieldCursor<'_, '_>, bool)],
    fuel: &Fuel,
) -> Result<Vec<Vec<u8>>, EvaluationFailure> {
    if array.is_empty() {
        let fields = fields.iter().map(|(field, down)| (field.of_empty(), *down));
        return least_parts(&fields.collect::<Vec<_>>(), fuel);
    }
    let mut least: Option<Vec<Vec<u8>>> = None;
    for element in array.iter() {
        let fields = fields
            .iter()
            .map(|(field, descending)| (field.of_element(element), *descending));
        let parts = least_parts(&fields.collect::<Vec<_>>(), fuel)?;
        if least.as_ref().is_none_or(|least| parts < *least) {
            least = Some(parts);
        }
    }
    Ok(least.unwrap_or_default())
}

fn append(key: &mut Vec<u8>, field: FieldCursor<'_, '_>, descending: bool) {
    let value = value_of(field);
    if descending {
        encode_descending(key, value)
    } else {
        encode(key, value)
    }
}

const fn value_of<'a>(field: FieldCursor<'_, 'a>) -> ValueRef<'a> {
    match field {
        FieldCursor::Done(value) => value,
        _ => ValueRef::Null,
    }
}

/// Passes all combinations of values of the paths to a visitor.
pub(crate) fn combinations<'a>(
    document: Document<'a>,
    paths: &[&FieldPath],
    fuel: &Fuel,
    tell: &mut dyn FnMut(&[ValueRef<'a>]),
) -> Result<(), EvaluationFailure> {
    let fields: Vec<FieldCursor<'_, 'a>> = paths
        .iter()
        .map(|path| FieldCursor::at(path, document))
        .collect();
    expand(&fields, fuel, &mut 0, tell)
}

fn expand<'p, 'a>(
    fields: &[FieldCursor<'p, 'a>],
    fuel: &Fuel,
    count: &mut usize,
    tell: &mut dyn FnMut(&[ValueRef<'a>]),
) -> Result<(), EvaluationFailure> {
    let array = fields.iter().find_map(|field| match field {
        FieldCursor::Array(_, array) => Some(*array),
        _ => None,
    });
    let Some(array) = array else {
        fuel.steps(fields.len() as u64)?;
        *count += 1;
        if *count > INDEX_KEYS {
            return Err(EvaluationFailure::refused(format!(
                "a document may have at most {INDEX_KEYS} keys in an index"
            )));
        }
        let values: Vec<ValueRef<'a>> = fields.iter().map(|field| value_of(*field)).collect();
        tell(&values);
        return Ok(());
    };
    let replaced =
        |replace: &dyn Fn(FieldCursor<'p, 'a>) -> FieldCursor<'p, 'a>| -> Vec<FieldCursor<'p, 'a>> {
            let fields = fields.iter().map(|field| match field {
                field if field.is_in(array) => replace(*field),
                other => *other,
            });
            fields.collect()
        };
    if array.is_empty() {
        return expand(&replaced(&|field| field.of_empty()), fuel, count, tell);
    }
    for element in array.iter() {
        expand(
            &replaced(&|field| field.of_element(element)),
            fuel,
            count,
            tell,
        )?;
    }
    Ok(())
}

/// Follows a field up to an array or its end.
fn advance<'p, 'a>(field: FieldCursor<'p, 'a>) -> FieldCursor<'p, 'a> {
    let FieldCursor::Open(mut rest, mut document) = field else {
        return field;
    };
    while let Some((first, tail)) = rest.split_first() {
        match document.get(&first.name) {
            Some(ValueRef::Array(array)) => return at_array(tail, array),
            Some(value) if tail.is_empty() => return FieldCursor::Done(value),
            Some(ValueRef::Document(inner)) => document = inner,
            _ => return FieldCursor::Done(ValueRef::Null),
        }
        rest = tail;
    }
    FieldCursor::Done(ValueRef::Null)
}

/// A numeric segment names a position, unless elements have such a key.
fn at_array<'p, 'a>(tail: &'p [PathSegment], array: Array<'a>) -> FieldCursor<'p, 'a> {
    let Some((first, after)) = tail.split_first() else {
        return FieldCursor::Array(tail, array);
    };
    let Some(index) = first.index else {
        return FieldCursor::Array(tail, array);
    };
    let named = |value: ValueRef<'a>| {
        value
            .as_document()
            .is_some_and(|inner| inner.get(&first.name).is_some())
    };
    if array.iter().any(named) {
        return FieldCursor::Array(tail, array);
    }
    match array.get(index as usize) {
        Some(ValueRef::Array(inner)) => at_array(after, inner),
        Some(value) if after.is_empty() => FieldCursor::Done(value),
        Some(ValueRef::Document(inner)) => advance(FieldCursor::Open(after, inner)),
        _ => FieldCursor::Done(ValueRef::Null),
    }
}
