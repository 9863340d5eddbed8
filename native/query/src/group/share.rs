//! The contribution of a document to its group.

use std::sync::Arc;

use super::measure::MeasureValue;
use super::simplest::simplest;
use super::value_counts::check_value_size;
use super::{BranchContent, GroupDefinition, IdBranch, at};
use crate::bson::{Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::error::EvaluationFailure;
use crate::key::encode;

/// The contribution of a document: its group, and a value for each measure.
#[derive(Debug, Clone)]
pub struct GroupShare {
    /// The group's values as bytes in their order.
    pub(super) key: Arc<[u8]>,
    /// The row's `_id`.
    pub(super) id: DocumentBuf,
    pub(super) given: Box<[MeasureValue]>,
}

impl GroupShare {
    /// The key of the group: equal for documents of one group, and in the order of its values.
    #[must_use]
    pub const fn key(&self) -> &Arc<[u8]> {
        &self.key
    }

    /// The compact form in which the share is kept: with the group's own key and no `_id`.
    #[must_use]
    pub fn into_retained(self, key: Arc<[u8]>) -> RetainedShare {
        RetainedShare {
            key,
            given: self.given,
        }
    }
}

/// A share in the form in which it is kept, so that it can be removed.
#[derive(Debug, Clone)]
pub struct RetainedShare {
    pub(super) key: Arc<[u8]>,
    pub(super) given: Box<[MeasureValue]>,
}

impl RetainedShare {
    /// The key of the group.
    #[must_use]
    pub const fn key(&self) -> &Arc<[u8]> {
        &self.key
    }

    /// Its size in bytes, without the group's key.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let given = self.given.iter().map(MeasureValue::bytes).sum::<usize>();
        size_of::<Self>() + given
    }
}

impl GroupDefinition {
    /// A document's contribution to its group.
    pub fn share(&self, document: Document<'_>) -> Result<GroupShare, EvaluationFailure> {
        let values = self.by.iter().map(|path| {
            let value = at(document, path).unwrap_or(ValueRef::Null);
            check_value_size(value)?;
            Ok(simplest(value))
        });
        let values: Vec<Value> = values.collect::<Result<_, EvaluationFailure>>()?;
        let id = written(&self.shape, &values);
        let mut key = Vec::with_capacity(32);
        encode(&mut key, ValueRef::Document(id.as_ref()));
        let given = self.measures.iter().map(|measure| {
            let value = measure.field.as_ref().and_then(|path| at(document, path));
            MeasureValue::of(measure.operation, value)
        });
        Ok(GroupShare {
            key: key.into(),
            id,
            given: given.collect::<Result<_, EvaluationFailure>>()?,
        })
    }
}

fn written(shape: &[IdBranch], values: &[Value]) -> DocumentBuf {
    let mut writer = DocumentWriter::new();
    for branch in shape {
        match &branch.inner {
            BranchContent::Leaf(number) => {
                let value = values.get(*number).map_or(ValueRef::Null, Value::as_ref);
                writer.append(&branch.name, value);
            }
            BranchContent::Branches(inner) => {
                let inner = written(inner, values);
                writer.append(&branch.name, ValueRef::Document(inner.as_ref()));
            }
        }
    }
    writer.into()
}
