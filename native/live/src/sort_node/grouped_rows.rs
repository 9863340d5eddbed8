//! A grouped query: all documents that match, reduced to what their groups need, and the rows that
//! stand for the groups, in order.
//!
//! For each document it keeps the version, the group and its contribution to the measures, so that
//! it can be removed without its old content.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rillbase_query::bson::Document;
use rillbase_query::group::{GroupDefinition, GroupTable, RetainedShare};

use crate::groups;
use crate::message::{RemovalReason, ResultRow, WindowChange};

use super::rows::SortedRows;
use crate::sort_order::SortOrder;

#[derive(Debug)]
struct GroupedDocument {
    version: u64,
    kept: RetainedShare,
}

/// See the module.
#[derive(Debug)]
pub(super) struct GroupedRows {
    groups: GroupTable,
    documents: HashMap<Arc<[u8]>, GroupedDocument>,
    /// The rows, in order.
    rows: SortedRows,
    /// Groups whose rows are out of date.
    touched: BTreeSet<Arc<[u8]>>,
    /// The maximum number of documents.
    most: usize,
    overfull: bool,
}

impl GroupedRows {
    pub(super) fn new(group: Arc<GroupDefinition>, most: usize) -> Self {
        Self {
            groups: GroupTable::new(group),
            documents: HashMap::new(),
            rows: SortedRows::new(Vec::new(), true, usize::MAX),
            touched: BTreeSet::new(),
            most,
            overfull: false,
        }
    }

    /// Whether there were more documents than can be kept; the rows are wrong then.
    pub(super) const fn is_overfull(&self) -> bool {
        self.overfull
    }

    pub(super) fn version(&self, key: &[u8]) -> Option<u64> {
        self.documents.get(key).map(|member| member.version)
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        if let Some(member) = self.documents.remove(key) {
            self.groups.take(&member.kept);
            self.touched.insert(Arc::clone(member.kept.key()));
        }
    }

    /// Inserts a document of which no version is kept. Returns false if it cannot be grouped and is
    /// omitted.
    pub(super) fn insert(&mut self, row: &ResultRow) -> bool {
        let Ok(share) = self.groups.group().share(Document::trusted(&row.body)) else {
            return false;
        };
        if self.documents.len() >= self.most {
            self.overfull = true;
            return true;
        }
        let kept = self.groups.add(share);
        self.touched.insert(Arc::clone(kept.key()));
        let version = row.version;
        let member = GroupedDocument { version, kept };
        self.documents.insert(Arc::clone(&row.key), member);
        true
    }

    /// Updates rows after documents were added or removed; returns the changes. The cost per row
    /// does not depend on the number of rows.
    pub(super) fn refresh(&mut self, order: &SortOrder) -> Vec<WindowChange> {
        let mut changes = Vec::new();
        while let Some(key) = self.touched.pop_first() {
            let row = self.groups.row(&key).map(|shown| groups::row(&shown));
            let version = row.as_ref().map(|row| row.version);
            if version != self.rows.version(&key) {
                changes.extend(self.replace(&key, row, order));
            }
        }
        changes
    }

    /// Replaces a row; `None` removes it.
    fn replace(
        &mut self,
        key: &[u8],
        row: Option<ResultRow>,
        order: &SortOrder,
    ) -> Option<WindowChange> {
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let old = self.rows.index(key);
        let before = old.and_then(|index| self.rows.at(index)).map(Arc::clone);
        self.rows.remove(key);
        let placed = row.and_then(|row| Some((order.sort_position(&row)?, row)));
        let Some((place, row)) = placed else {
            return old.zip(before).map(|(index, before)| WindowChange::Remove {
                old_index: number(index),
                key: Arc::clone(&before.key),
                id: before.id(),
                version: before.version,
                reason: RemovalReason::Left,
            });
        };
        self.rows.insert(place, row.clone());
        let index = self.rows.index(key).map_or(u32::MAX, number);
        Some(match old.map(number) {
            None => WindowChange::Add { index, row },
            Some(old) if old == index => WindowChange::Change { index, row },
            Some(old_index) => WindowChange::Move {
                old_index,
                index,
                row,
            },
        })
    }

    pub(super) const fn rows(&self) -> &SortedRows {
        &self.rows
    }

    /// How many documents are kept.
    pub(super) fn len(&self) -> usize {
        self.documents.len()
    }
}
