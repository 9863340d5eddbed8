//! The groups of some documents.

use std::collections::HashMap;
use std::sync::Arc;

use super::GroupDefinition;
use super::measure::{MeasureState as Measured, MeasureValue};
use super::share::{GroupShare, RetainedShare};
use crate::bson::{Document, DocumentBuf, DocumentWriter, ValueRef};
use crate::error::EvaluationFailure;
use crate::fuel::Fuel;
use crate::sort::{Sort, SystemFields};

#[derive(Debug, Clone)]
struct GroupState {
    id: DocumentBuf,
    documents: u64,
    measured: Box<[Measured]>,
}

impl GroupState {
    fn change(&mut self, given: &[MeasureValue], add: bool) {
        self.documents = self.documents.wrapping_add_signed(if add { 1 } else { -1 });
        for (measured, given) in self.measured.iter_mut().zip(given) {
            measured.change(given, add);
        }
    }
}

/// A row: its key and its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    /// The key of the group, in the order of its values.
    pub key: Arc<[u8]>,
    /// The row.
    pub body: DocumentBuf,
}

/// The groups of some documents.
#[derive(Debug, Clone)]
pub struct GroupTable {
    group: Arc<GroupDefinition>,
    rows: HashMap<Arc<[u8]>, GroupState>,
}

impl GroupTable {
    /// No groups yet.
    #[must_use]
    pub fn new(group: Arc<GroupDefinition>) -> Self {
        Self {
            group,
            rows: HashMap::new(),
        }
    }

    /// How documents are grouped.
    #[must_use]
    pub const fn group(&self) -> &Arc<GroupDefinition> {
        &self.group
    }

    /// The number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no groups.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a document's share; returns what is needed to remove it.
    pub fn add(&mut self, share: GroupShare) -> RetainedShare {
        let key = match self.rows.get_key_value(&share.key) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::clone(&share.key),
        };
        let row = self.rows.entry(Arc::clone(&key)).or_insert_with(|| {
            let measures = self.group.measures.iter();
            let measured = measures.map(|measure| Measured::new(measure.operation));
            GroupState {
                id: share.id.clone(),
                documents: 0,
                measured: measured.collect(),
            }
        });
        row.change(&share.given, true);
        share.into_retained(key)
    }

    /// Removes a share. A group without documents disappears.
    pub fn take(&mut self, kept: &RetainedShare) {
        if let Some(row) = self.rows.get_mut(&kept.key) {
            row.change(&kept.given, false);
            if row.documents == 0 {
                self.rows.remove(&kept.key);
            }
        }
    }

    /// A group's row, if there is one.
    #[must_use]
    pub fn row(&self, key: &[u8]) -> Option<GroupRow> {
        let (key, row) = self.rows.get_key_value(key)?;
        Some(self.shown(key, row))
    }

    /// All rows, in no particular order.
    pub fn rows(&self) -> impl Iterator<Item = GroupRow> + '_ {
        self.rows.iter().map(|(key, row)| self.shown(key, row))
    }

    fn shown(&self, key: &Arc<[u8]>, row: &GroupState) -> GroupRow {
        let mut body = DocumentWriter::with_capacity(2 * row.id.as_bytes().len() + 64);
        let id = row.id.as_ref();
        body.append("_id", ValueRef::Document(id));
        id.elements()
            .for_each(|element| body.append_element(&element));
        for (measure, measured) in self.group.measures.iter().zip(&row.measured) {
            measured.write(measure.operation, row.documents, &measure.name, &mut body);
        }
        GroupRow {
            key: Arc::clone(key),
            body: body.into(),
        }
    }

    /// Some of the rows in order: by `sort`, or by their values.
    pub fn window(
        &self,
        sort: Option<&Sort>,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<GroupRow>, EvaluationFailure> {
        let placed = self.rows().map(|shown| {
            let sort_position = match sort {
                None => Arc::clone(&shown.key),
                Some(sort) => sort_position(sort, shown.body.as_ref())?,
            };
            Ok((sort_position, shown))
        });
        let mut placed: Vec<_> = placed.collect::<Result<_, EvaluationFailure>>()?;
        placed.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let rows = placed.into_iter().skip(offset).take(limit);
        Ok(rows.map(|(_, shown)| shown).collect())
    }

    /// The size of the rows in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(|(key, row)| {
            let measured = row.measured.iter();
            let measured = measured.map(|one| size_of::<Measured>() + one.bytes());
            key.len() + row.id.as_bytes().len() + size_of::<GroupState>() + measured.sum::<usize>()
        });
        rows.sum()
    }
}

/// A row's sort position.
fn sort_position(sort: &Sort, row: Document<'_>) -> Result<Arc<[u8]>, EvaluationFailure> {
    Ok(sort
        .key(row, SystemFields::default(), &Fuel::default())?
        .into())
}
