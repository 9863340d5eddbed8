//! Sorting: a total order of documents by the requested keys, then `_id`.
//!
//! A document's sort position is a byte string ([`Sort::key`]); comparing these compares documents.
//! Through arrays a field has several values, of which the least counts (or for a descending key
//! the greatest, whose reversed bytes are the least): [`crate::field_values`]. An empty array
//! counts as undefined, a missing field as null.

use crate::bson::{ArrayWriter, Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::ejson::{Form, value_to_string};
use crate::error::{Error, ErrorCode, EvaluationFailure, ParseLocation};
use crate::field_values::{FieldCursor, least_key};
use crate::fuel::Fuel;
use crate::index::IndexField;
use crate::limits::SORT_KEYS;
use crate::path::FieldPath;

/// The criterion of a sort key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SortCriterion {
    /// The values at a path.
    Path(FieldPath),
    /// The score of `$text`, the best first.
    TextScore,
    /// The distance of `$near`, the nearest first.
    Distance,
}

/// One key of a sort.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// The criterion.
    pub by: SortCriterion,
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
    pub fn parse(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        let mut keys = Vec::new();
        match value {
            ValueRef::Document(document) => {
                for (name, direction) in document.iter() {
                    keys.push(sort_key(name, direction, &location.key(name))?);
                }
            }
            ValueRef::Array(pairs) => {
                for (index, pair) in pairs.iter().enumerate() {
                    keys.push(pair_key(pair, &location.index(index))?);
                }
            }
            _ => return Err(refuse(location, "a sort is a list of pairs or a document")),
        }
        if keys.len() > SORT_KEYS {
            return Err(refuse(
                location,
                format!("a sort may have at most {SORT_KEYS} keys"),
            ));
        }
        for (index, key) in keys.iter().enumerate() {
            if keys.iter().take(index).any(|earlier| earlier.by == key.by) {
                return Err(refuse(
                    &location.index(index),
                    "a sort names each field once",
                ));
            }
        }
        Ok(Self::of(keys))
    }

    /// The order of `$near` without a sort: by distance, then `_id`.
    #[must_use]
    pub fn by_distance() -> Self {
        Self::of(vec![SortKey {
            by: SortCriterion::Distance,
            descending: false,
        }])
    }

    /// The order of an index's fields, without a final `_id`, or its reverse. For
    /// [`Sort::key_of_fields`] only.
    #[must_use]
    pub fn of_fields(fields: &[IndexField], reversed: bool) -> Self {
        let keys = fields.iter().map(|field| SortKey {
            by: SortCriterion::Path(field.path.clone()),
            descending: field.descending != reversed,
        });
        Self {
            keys: keys.collect(),
        }
    }

    /// The least key of a document in an index with these fields.
    pub fn key_of_fields(
        &self,
        document: Document<'_>,
        fuel: &Fuel,
    ) -> Result<Vec<u8>, EvaluationFailure> {
        self.key(document, 0.0, fuel)
    }

    /// The direction in which an index with these remaining fields yields this order: forward
    /// (true), backward (false) or not at all. `_id`, which every sort ends with, must be
    /// ascending: entries with equal keys are read in the order of their documents.
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
        let id = SortCriterion::Path(FieldPath::new("_id"));
        match keys.iter().position(|key| key.by == id) {
            // Keys after `_id` have no effect.
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
                SortCriterion::Path(path) => (path.text(), None),
                SortCriterion::TextScore => ("score".to_owned(), Some("textScore")),
                SortCriterion::Distance => ("distance".to_owned(), Some("geoNearDistance")),
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

    /// The document's sort position: bytes in the order of the sort. `rank` is the text score or
    /// the distance.
    pub fn key(
        &self,
        document: Document<'_>,
        rank: f64,
        fuel: &Fuel,
    ) -> Result<Vec<u8>, EvaluationFailure> {
        let fields = self.keys.iter().map(|key| {
            let field = match &key.by {
                SortCriterion::Path(path) => FieldCursor::at(path, document),
                SortCriterion::TextScore => FieldCursor::Done(ValueRef::Double(-rank)),
                SortCriterion::Distance => FieldCursor::Done(ValueRef::Double(rank)),
            };
            (field, key.descending)
        });
        least_key(fields.collect(), fuel)
    }
}

impl SortKey {
    /// The path, unless it orders by a rank.
    #[must_use]
    pub const fn path(&self) -> Option<&FieldPath> {
        match &self.by {
            SortCriterion::Path(path) => Some(path),
            _ => None,
        }
    }
}

fn refuse(location: &ParseLocation<'_>, detail: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidSort, location, detail)
}

fn pair_key(pair: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<SortKey, Error> {
    let parts = pair.as_array().filter(|array| array.len() == 2);
    let parts = parts.and_then(|array| Some((array.get(0)?.as_str()?, array.get(1)?)));
    match parts {
        Some((name, direction)) => sort_key(name, direction, location),
        None => Err(refuse(
            location,
            "a sort key is a pair of field and direction",
        )),
    }
}

fn sort_key(
    name: &str,
    direction: ValueRef<'_>,
    location: &ParseLocation<'_>,
) -> Result<SortKey, Error> {
    if name
        .split('.')
        .any(|part| part.is_empty() || part.starts_with('$'))
    {
        return Err(refuse(location, "a sort key names a field"));
    }
    match (direction, direction.as_exact_i64()) {
        (_, Some(1)) => Ok(SortKey {
            by: SortCriterion::Path(FieldPath::new(name)),
            descending: false,
        }),
        (_, Some(-1)) => Ok(SortKey {
            by: SortCriterion::Path(FieldPath::new(name)),
            descending: true,
        }),
        (ValueRef::Document(meta), _) => match meta.get("$meta").and_then(|meta| meta.as_str()) {
            Some("textScore") => Ok(SortKey {
                by: SortCriterion::TextScore,
                descending: false,
            }),
            _ => Err(refuse(location, "$meta sorts by \"textScore\" only")),
        },
        _ => Err(refuse(location, "a direction is 1 or -1")),
    }
}
