//! Sorting: a total order of documents by the requested keys, then `_id`.
//!
//! A document's place is a string of bytes ([`Sort::key`]); comparing them is
//! comparing documents. Through arrays a field has several values; the least
//! of all combinations counts (for a descending key the greatest, which its
//! reversed bytes make the least). An empty array counts as undefined, a
//! missing field as null.

use crate::bson::{Array, ArrayWriter, Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::ejson::{Form, value_to_string};
use crate::error::{Code, Error, Failure, Place};
use crate::fuel::Fuel;
use crate::index::IndexField;
use crate::key::{encode, encode_descending};
use crate::limits::{INDEX_KEYS, SORT_KEYS};
use crate::path::{Path, Segment};

/// What a sort key orders by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum By {
    /// The values at a path.
    Path(Path),
    /// The score of `$text`, the best first.
    TextScore,
    /// The distance of `$near`, the nearest first.
    Distance,
}

/// One key of a sort.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// What it orders by.
    pub by: By,
    /// From the greatest to the least.
    pub descending: bool,
}

/// The keys of a sort, the last being `_id`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sort {
    keys: Vec<SortKey>,
}

impl Default for Sort {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Sort {
    /// Parses `[["a",1],["b",-1]]` or `{"a":1,"b":-1}`.
    pub fn parse(value: ValueRef<'_>, place: &Place<'_>) -> Result<Self, Error> {
        let mut keys = Vec::new();
        match value {
            ValueRef::Document(document) => {
                for (name, direction) in document.iter() {
                    keys.push(sort_key(name, direction, &place.key(name))?);
                }
            }
            ValueRef::Array(pairs) => {
                for (index, pair) in pairs.iter().enumerate() {
                    keys.push(pair_key(pair, &place.index(index))?);
                }
            }
            _ => return Err(refuse(place, "a sort is a list of pairs or a document")),
        }
        if keys.len() > SORT_KEYS {
            return Err(refuse(
                place,
                format!("a sort has at most {SORT_KEYS} keys"),
            ));
        }
        for (index, key) in keys.iter().enumerate() {
            if keys.iter().take(index).any(|earlier| earlier.by == key.by) {
                return Err(refuse(&place.index(index), "a sort names each field once"));
            }
        }
        Ok(Self::of(keys))
    }

    /// The order of `$near` without a sort: by distance, then `_id`.
    #[must_use]
    pub fn by_distance() -> Self {
        Self::of(vec![SortKey {
            by: By::Distance,
            descending: false,
        }])
    }

    /// The order of an index's fields, without `_id` behind them, or the
    /// reverse of it. For [`Sort::key_of_fields`] only.
    #[must_use]
    pub fn of_fields(fields: &[IndexField], reversed: bool) -> Self {
        let keys = fields.iter().map(|field| SortKey {
            by: By::Path(field.path.clone()),
            descending: field.descending != reversed,
        });
        Self {
            keys: keys.collect(),
        }
    }

    /// The least key of a document in an index with these fields.
    pub fn key_of_fields(&self, document: Document<'_>, fuel: &Fuel) -> Result<Vec<u8>, Failure> {
        self.key(document, 0.0, fuel)
    }

    /// The direction in which an index whose remaining fields these are gives
    /// this order: forward (true), backward (false) or not at all. `_id`,
    /// which every sort ends with, must be ascending: entries with equal keys
    /// are read in the order of their documents.
    #[must_use]
    pub fn direction(&self, fields: &[IndexField]) -> Option<bool> {
        let (last, keys) = self.keys.split_last()?;
        let id_last = last.path().is_some_and(|path| path.text() == "_id") && !last.descending;
        if !id_last || keys.len() != fields.len() || keys.is_empty() {
            return None;
        }
        let pairs = || keys.iter().zip(fields);
        let same_paths = pairs().all(|(key, field)| key.path() == Some(&field.path));
        if !same_paths {
            return None;
        }
        if pairs().all(|(key, field)| key.descending == field.descending) {
            return Some(true);
        }
        pairs()
            .all(|(key, field)| key.descending != field.descending)
            .then_some(false)
    }

    fn of(mut keys: Vec<SortKey>) -> Self {
        let id = By::Path(Path::new("_id"));
        match keys.iter().position(|key| key.by == id) {
            // What follows `_id` decides nothing.
            Some(position) => keys.truncate(position + 1),
            None => keys.push(SortKey {
                by: id,
                descending: false,
            }),
        }
        Self { keys }
    }

    /// The keys, `_id` included.
    #[must_use]
    pub fn keys(&self) -> &[SortKey] {
        &self.keys
    }

    /// The sort as text, as [`Sort::parse`] reads it, `_id` included. Equal
    /// sorts have equal texts.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut pairs = ArrayWriter::new();
        for key in &self.keys {
            let mut pair = ArrayWriter::new();
            let (name, rank) = match &key.by {
                By::Path(path) => (path.text(), None),
                By::TextScore => ("score".to_owned(), Some("textScore")),
                By::Distance => ("distance".to_owned(), Some("geoNearDistance")),
            };
            pair.push(ValueRef::String(&name));
            match rank {
                None => pair.push(ValueRef::Int32(if key.descending { -1 } else { 1 })),
                Some(rank) => {
                    let mut meta = DocumentWriter::new();
                    meta.append("$meta", ValueRef::String(rank));
                    pair.push(ValueRef::Document(DocumentBuf::from(meta).as_ref()));
                }
            }
            pairs.push(Value::Array(pair.into()).as_ref());
        }
        value_to_string(Value::Array(pairs.into()).as_ref(), Form::Relaxed)
    }

    /// The document's place: bytes in the order of the sort. `rank` is the
    /// text score or the distance.
    pub fn key(&self, document: Document<'_>, rank: f64, fuel: &Fuel) -> Result<Vec<u8>, Failure> {
        let paths: Vec<&Path> = self.keys.iter().filter_map(|key| key.path()).collect();
        let mut least: Option<Vec<u8>> = None;
        combinations(document, &paths, fuel, &mut |values| {
            let mut bytes = Vec::with_capacity(32);
            let mut values = values.iter();
            for key in &self.keys {
                let value = match key.by {
                    By::Path(_) => values.next().copied().unwrap_or(ValueRef::Null),
                    By::TextScore => ValueRef::Double(-rank),
                    By::Distance => ValueRef::Double(rank),
                };
                if key.descending {
                    encode_descending(&mut bytes, value)
                } else {
                    encode(&mut bytes, value)
                }
            }
            if least.as_ref().is_none_or(|least| bytes < *least) {
                least = Some(bytes);
            }
            Ok(())
        })?;
        Ok(least.unwrap_or_default())
    }
}

impl SortKey {
    /// The path, unless it orders by a rank.
    #[must_use]
    pub const fn path(&self) -> Option<&Path> {
        match &self.by {
            By::Path(path) => Some(path),
            _ => None,
        }
    }
}

fn refuse(place: &Place<'_>, detail: impl Into<String>) -> Error {
    Error::new(Code::InvalidSort, place, detail)
}

fn pair_key(pair: ValueRef<'_>, place: &Place<'_>) -> Result<SortKey, Error> {
    let parts = pair.as_array().filter(|array| array.len() == 2);
    let parts = parts.and_then(|array| Some((array.get(0)?.as_str()?, array.get(1)?)));
    match parts {
        Some((name, direction)) => sort_key(name, direction, place),
        None => Err(refuse(place, "a sort key is a pair of field and direction")),
    }
}

fn sort_key(name: &str, direction: ValueRef<'_>, place: &Place<'_>) -> Result<SortKey, Error> {
    if name
        .split('.')
        .any(|part| part.is_empty() || part.starts_with('$'))
    {
        return Err(refuse(place, "a sort key names a field"));
    }
    match (direction, direction.as_exact_i64()) {
        (_, Some(1)) => Ok(SortKey {
            by: By::Path(Path::new(name)),
            descending: false,
        }),
        (_, Some(-1)) => Ok(SortKey {
            by: By::Path(Path::new(name)),
            descending: true,
        }),
        (ValueRef::Document(meta), _) => match meta.get("$meta").and_then(|meta| meta.as_str()) {
            Some("textScore") => Ok(SortKey {
                by: By::TextScore,
                descending: false,
            }),
            _ => Err(refuse(place, "$meta sorts by \"textScore\" only")),
        },
        _ => Err(refuse(place, "a direction is 1 or -1")),
    }
}

/// A field on its way through a document: what is left of its path, or the
/// value that it came to.
#[derive(Clone, Copy)]
enum Field<'p, 'a> {
    Open(&'p [Segment], Document<'a>),
    Array(&'p [Segment], Array<'a>),
    Done(ValueRef<'a>),
}

/// Tells all combinations of values of the paths. Paths that go through one
/// array take their values from the same element; two arrays side by side
/// are refused.
pub(crate) fn combinations<'a>(
    document: Document<'a>,
    paths: &[&Path],
    fuel: &Fuel,
    tell: &mut dyn FnMut(&[ValueRef<'a>]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let fields: Vec<Field<'_, 'a>> = paths
        .iter()
        .map(|path| Field::Open(path.segments(), document))
        .collect();
    expand(fields, fuel, &mut 0, tell)
}

fn expand<'a>(
    mut fields: Vec<Field<'_, 'a>>,
    fuel: &Fuel,
    count: &mut usize,
    tell: &mut dyn FnMut(&[ValueRef<'a>]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    fields.iter_mut().for_each(|field| *field = advance(*field));
    let mut arrays = fields.iter().filter_map(|field| match field {
        Field::Array(_, array) => Some(*array),
        _ => None,
    });
    let Some(array) = arrays.next() else {
        fuel.steps(fields.len() as u64)?;
        *count += 1;
        if *count > INDEX_KEYS {
            return Err(Failure::refused(format!(
                "a document has at most {INDEX_KEYS} combinations of keys"
            )));
        }
        let values: Vec<ValueRef<'a>> = fields
            .iter()
            .map(|field| match field {
                Field::Done(value) => *value,
                _ => ValueRef::Null,
            })
            .collect();
        return tell(&values);
    };
    if arrays.any(|other| !std::ptr::eq(other.as_bytes(), array.as_bytes())) {
        return Err(Failure::refused(
            "two arrays side by side cannot both be sorted by or indexed together",
        ));
    }
    if array.is_empty() {
        let fields = fields.into_iter().map(|field| match field {
            Field::Array([], _) => Field::Done(ValueRef::Undefined),
            Field::Array(..) => Field::Done(ValueRef::Null),
            other => other,
        });
        return expand(fields.collect(), fuel, count, tell);
    }
    for element in array.iter() {
        let fields = fields.iter().map(|field| match field {
            Field::Array([], _) => Field::Done(element),
            Field::Array(rest, _) => match element {
                ValueRef::Document(inner) => Field::Open(rest, inner),
                _ => Field::Done(ValueRef::Null),
            },
            other => *other,
        });
        expand(fields.collect(), fuel, count, tell)?;
    }
    Ok(())
}

/// Follows a field up to an array or its end.
fn advance<'p, 'a>(field: Field<'p, 'a>) -> Field<'p, 'a> {
    let Field::Open(mut rest, mut document) = field else {
        return field;
    };
    while let Some((first, tail)) = rest.split_first() {
        match document.get(&first.name) {
            Some(ValueRef::Array(array)) => return at_array(tail, array),
            Some(value) if tail.is_empty() => return Field::Done(value),
            Some(ValueRef::Document(inner)) => document = inner,
            _ => return Field::Done(ValueRef::Null),
        }
        rest = tail;
    }
    Field::Done(ValueRef::Null)
}

/// A numeric segment names a position, unless elements have such a key.
fn at_array<'p, 'a>(tail: &'p [Segment], array: Array<'a>) -> Field<'p, 'a> {
    let Some((first, after)) = tail.split_first() else {
        return Field::Array(tail, array);
    };
    let Some(index) = first.index else {
        return Field::Array(tail, array);
    };
    let named = |value: ValueRef<'a>| {
        value
            .as_document()
            .is_some_and(|inner| inner.get(&first.name).is_some())
    };
    if array.iter().any(named) {
        return Field::Array(tail, array);
    }
    match array.get(index as usize) {
        Some(ValueRef::Array(inner)) => at_array(after, inner),
        Some(value) if after.is_empty() => Field::Done(value),
        Some(ValueRef::Document(inner)) => advance(Field::Open(after, inner)),
        _ => Field::Done(ValueRef::Null),
    }
}
