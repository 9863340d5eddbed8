//! The keys of a document in an index.
//!
//! There are two kinds of keys. For **finding**, every value that a filter's path can find has a
//! key, so that looking up an operand or a range returns a superset of the matches, whichever
//! combination of elements satisfies a conjunction. For **ordering**, the keys are the combinations
//! of [`crate::field_values`]; the first key of a document in index order is its sort position. An
//! entry states its kind.
//!
//! A spatial index has one field, and keys for finding only: the cells of geometries
//! (`geo/cell.rs`).

use std::collections::{BTreeMap, BTreeSet};

use crate::bson::{Document, ValueRef};
use crate::error::EvaluationFailure;
use crate::field_values::combinations;
use crate::fuel::Fuel;
use crate::geo::locate;
use crate::key::{encode, encode_descending};
use crate::limits::INDEX_KEYS;
use crate::path::{FieldPath, Leaf};

/// The order of an index's keys by one of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FieldOrder {
    /// By value, ascending.
    #[default]
    Ascending,
    /// By value, descending.
    Descending,
    /// Geometries by cells of the sphere.
    Sphere,
    /// Pairs of coordinates by cells of the plane.
    Plane,
}

impl FieldOrder {
    /// All of them, in the order of their bytes.
    const ALL: [Self; 4] = [Self::Ascending, Self::Descending, Self::Sphere, Self::Plane];

    /// By value, in a direction: 1 or -1.
    #[must_use]
    pub const fn directed(direction: i32) -> Self {
        if direction < 0 {
            Self::Descending
        } else {
            Self::Ascending
        }
    }

    /// By cells, as a declaration names them.
    #[must_use]
    pub fn spatial(name: &str) -> Option<Self> {
        match name {
            "2dsphere" => Some(Self::Sphere),
            "2d" => Some(Self::Plane),
            _ => None,
        }
    }

    /// Its name in declarations, if it is by cells.
    #[must_use]
    pub const fn spatial_name(self) -> Option<&'static str> {
        match self {
            Self::Sphere => Some("2dsphere"),
            Self::Plane => Some("2d"),
            Self::Ascending | Self::Descending => None,
        }
    }

    /// Whether keys are cells. They support neither comparisons nor sorts.
    #[must_use]
    pub const fn is_spatial(self) -> bool {
        matches!(self, Self::Sphere | Self::Plane)
    }

    /// Its byte in stored definitions.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Ascending => 0,
            Self::Descending => 1,
            Self::Sphere => 2,
            Self::Plane => 3,
        }
    }

    /// The order with a byte.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.byte() == byte)
    }
}

/// One field of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexField {
    /// The path.
    pub path: FieldPath,
    /// The order of its keys.
    pub order: FieldOrder,
}

impl IndexField {
    /// Whether its keys descend.
    #[must_use]
    pub const fn is_descending(&self) -> bool {
        matches!(self.order, FieldOrder::Descending)
    }
}

/// A key of a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexKey {
    /// Bytes in the order of the fields' values and directions.
    pub key: Vec<u8>,
    /// Whether it is used for ordering; all keys are used for finding.
    pub ordering: bool,
}

/// The keys of a document in ascending order, each once. Two arrays side by
/// side have the product of their elements.
pub fn index_keys(
    document: Document<'_>,
    fields: &[IndexField],
    fuel: &Fuel,
) -> Result<Vec<IndexKey>, EvaluationFailure> {
    if let [field] = fields
        && field.order.is_spatial()
    {
        return cell_keys(document, field, fuel);
    }
    let mut entries = BTreeMap::new();
    let paths: Vec<&FieldPath> = fields.iter().map(|field| &field.path).collect();
    combinations(document, &paths, fuel, &mut |values| {
        entries.insert(key_of(fields, values), true);
    })?;
    let mut values = Vec::with_capacity(fields.len());
    for field in fields {
        values.push(values_at(document, &field.path, fuel)?);
    }
    let product = values.iter().try_fold(1_usize, |product, values| {
        product.checked_mul(values.len().max(1))
    });
    if product.is_none_or(|product| product > INDEX_KEYS) {
        return Err(too_many_keys());
    }
    let mut keys = vec![Vec::new()];
    for (field, values) in fields.iter().zip(&values) {
        let mut longer = Vec::with_capacity(keys.len() * values.len());
        for key in &keys {
            for value in values {
                fuel.step()?;
                let mut key: Vec<u8> = key.clone();
                append(&mut key, field, *value);
                longer.push(key);
            }
        }
        keys = longer;
    }
    for key in keys {
        entries.entry(key).or_insert(false);
    }
    Ok(entries
        .into_iter()
        .map(|(key, ordering)| IndexKey { key, ordering })
        .collect())
}

/// The cells of the geometries that a filter can find at a path. Other values have no key.
fn cell_keys(
    document: Document<'_>,
    field: &IndexField,
    fuel: &Fuel,
) -> Result<Vec<IndexKey>, EvaluationFailure> {
    let values = values_at(document, &field.path, fuel)?;
    let located = values.into_iter().filter_map(locate);
    let keys: BTreeSet<Vec<u8>> = located
        .filter_map(|located| match field.order {
            FieldOrder::Plane => located.plane_cell(),
            _ => located.sphere_cell(),
        })
        .collect();
    if keys.len() > INDEX_KEYS {
        return Err(too_many_keys());
    }
    let keys = keys.into_iter().map(|key| IndexKey {
        key,
        ordering: false,
    });
    Ok(keys.collect())
}

fn too_many_keys() -> EvaluationFailure {
    EvaluationFailure::refused(format!(
        "a document may have at most {INDEX_KEYS} keys in an index"
    ))
}

fn append(key: &mut Vec<u8>, field: &IndexField, value: ValueRef<'_>) {
    if field.is_descending() {
        encode_descending(key, value)
    } else {
        encode(key, value)
    }
}

fn key_of(fields: &[IndexField], values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut key = Vec::with_capacity(32);
    fields
        .iter()
        .zip(values)
        .for_each(|(field, value)| append(&mut key, field, *value));
    key
}

/// What a filter can find at a path: missing counts as null, and finding
/// nothing as undefined.
fn values_at<'a>(
    document: Document<'a>,
    path: &FieldPath,
    fuel: &Fuel,
) -> Result<Vec<ValueRef<'a>>, EvaluationFailure> {
    let mut values = Vec::new();
    path.any(document, Leaf::Elements, fuel, &mut |value, _| {
        fuel.step()?;
        values.push(value.unwrap_or(ValueRef::Null));
        Ok(false)
    })?;
    if values.is_empty() {
        values.push(ValueRef::Undefined);
    }
    Ok(values)
}
