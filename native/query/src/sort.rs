//! Sorting: a total order of documents by the requested keys, then `_id`.
//!
//! A document's sort position is a byte string ([`Sort::key`]); comparing these compares documents.
//! Through arrays a field has several values, of which the least counts (or for a descending key
//! the greatest, whose reversed bytes are the least): [`crate::field_values`]. An empty array
//! counts as undefined, a missing field as null. `$created` and `$updated` are not fields of the
//! document but its times ([`SystemFields`]).

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
    /// When the document was created.
    Created,
    /// When the document was last changed.
    Updated,
}

const CREATED: &str = "$created";
const UPDATED: &str = "$updated";

/// What a document may be sorted by that its content does not have. The default is for documents
/// that are not rows of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SystemFields {
    /// The text score or the distance.
    pub rank: f64,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was last changed, in milliseconds since 1970.
    pub updated_ms: i64,
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
    /// Parses `[["a",1],["b",-1]]` or `{"a":1,"b":-1}`. Instead of a field, `$created` and
    /// `$updated` name the document's times.
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

    /// Parses a sort of values that are not documents of a collection and so have no times.
    pub fn parse_of_values(
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<Self, Error> {
        let sort = Self::parse(value, location)?;
        if sort.keys.iter().any(SortKey::is_time) {
            let detail = format!("only documents of a collection have {CREATED} and {UPDATED}");
            return Err(refuse(location, detail));
        }
        Ok(sort)
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
            descending: field.is_descending() != reversed,
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
        self.key(document, SystemFields::default(), fuel)
    }

    /// The direction in which an index with these remaining fields yields this order: forward
    /// (true), backward (false) or not at all. `_id`, which every sort ends with, must be
    /// ascending: entries with equal keys are read in the order of their documents.
    #[must_use]
    pub fn direction(&self, fields: &[IndexField]) -> Option<bool> {
        let (last, keys) = self.keys.split_last()?;
        let id_last = last.path().is_some_and(|path| path.text() == "_id") && !last.descending;
        let is_spatial = fields.iter().any(|field| field.order.is_spatial());
        if !id_last || is_spatial || keys.len() != fields.len() || keys.is_empty() {
            return None;
        }
        let pairs = || keys.iter().zip(fields);
        let same_paths = pairs().all(|(key, field)| key.path() == Some(&field.path));
        if !same_paths {
            return None;
        }
        if pairs().all(|(key, field)| key.descending == field.is_descending()) {
            return Some(true);
        }
        pairs()
            .all(|(key, field)| key.descending != field.is_descending())
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

    /// Whether it is by the time of the last change alone, the newest first.
    #[must_use]
    pub fn is_newest_first(&self) -> bool {
        let [time, id] = self.keys.as_slice() else {
            return false;
        };
        let is_id = id.path().is_some_and(|path| path.text() == "_id");
        time.by == SortCriterion::Updated && time.descending && is_id && !id.descending
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
                SortCriterion::Created => (CREATED.to_owned(), None),
                SortCriterion::Updated => (UPDATED.to_owned(), None),
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

    /// The document's sort position: bytes in the order of the sort.
    pub fn key(
        &self,
        document: Document<'_>,
        system: SystemFields,
        fuel: &Fuel,
    ) -> Result<Vec<u8>, EvaluationFailure> {
        let fields = self.keys.iter().map(|key| {
            let field = match &key.by {
                SortCriterion::Path(path) => FieldCursor::at(path, document),
                SortCriterion::TextScore => FieldCursor::Done(ValueRef::Double(-system.rank)),
                SortCriterion::Distance => FieldCursor::Done(ValueRef::Double(system.rank)),
                SortCriterion::Created => FieldCursor::Done(ValueRef::Date(system.created_ms)),
                SortCriterion::Updated => FieldCursor::Done(ValueRef::Date(system.updated_ms)),
            };
            (field, key.descending)
        });
        least_key(fields.collect(), fuel)
    }
}

impl SortKey {
    /// Whether it orders by the text score or the distance.
    #[must_use]
    pub const fn is_rank(&self) -> bool {
        matches!(self.by, SortCriterion::TextScore | SortCriterion::Distance)
    }

    /// Whether it orders by a time of the document.
    #[must_use]
    pub const fn is_time(&self) -> bool {
        matches!(self.by, SortCriterion::Created | SortCriterion::Updated)
    }

    /// The path, unless it orders by a rank or a time.
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
    let by = criterion(name, location)?;
    match (direction, direction.as_exact_i64()) {
        (_, Some(way @ (1 | -1))) => Ok(SortKey {
            by,
            descending: way == -1,
        }),
        (ValueRef::Document(meta), _) if matches!(by, SortCriterion::Path(_)) => {
            match meta.get("$meta").and_then(|meta| meta.as_str()) {
                Some("textScore") => Ok(SortKey {
                    by: SortCriterion::TextScore,
                    descending: false,
                }),
                _ => Err(refuse(location, "$meta sorts by \"textScore\" only")),
            }
        }
        _ => Err(refuse(location, "a direction is 1 or -1")),
    }
}

fn criterion(name: &str, location: &ParseLocation<'_>) -> Result<SortCriterion, Error> {
    match name {
        CREATED => return Ok(SortCriterion::Created),
        UPDATED => return Ok(SortCriterion::Updated),
        _ => {}
    }
    let is_invalid = |part: &str| part.is_empty() || part.starts_with('$');
    if name.split('.').any(is_invalid) {
        let detail = format!("a sort key names a field, {CREATED} or {UPDATED}");
        return Err(refuse(location, detail));
    }
    Ok(SortCriterion::Path(FieldPath::new(name)))
}
