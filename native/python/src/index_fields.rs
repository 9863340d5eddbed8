//! The fields of an index: paths, with a direction or the name of a spatial order.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rillbase_documents::entry::fields;
use rillbase_query::index::{FieldOrder, IndexField};

/// The order of a field as it is declared.
#[derive(FromPyObject)]
pub(crate) enum DeclaredOrder {
    Direction(i32),
    Spatial(String),
}

pub(crate) type DeclaredFields = Vec<(String, DeclaredOrder)>;

pub(crate) fn index_fields(declared: DeclaredFields) -> PyResult<Vec<IndexField>> {
    let pairs = declared.into_iter().map(|(path, order)| {
        let order = match order {
            DeclaredOrder::Direction(direction) => FieldOrder::directed(direction),
            DeclaredOrder::Spatial(name) => FieldOrder::spatial(&name)
                .ok_or_else(|| PyValueError::new_err(format!("{name} is not an order")))?,
        };
        Ok((path, order))
    });
    Ok(fields(&pairs.collect::<PyResult<Vec<_>>>()?))
}
