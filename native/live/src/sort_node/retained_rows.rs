//! What a sort node keeps of a query: its first rows, with or without others that they refer to, or
//! all its documents in groups.

use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;

use crate::message::{
    AfterImage, FetchedDocument, Foreign, QueryDefinition, QueryHash, ResultRow, WindowChange,
};
use crate::{groups, lookups};

use super::grouped_rows::GroupedRows;
use super::joined::{JoinedRows, JoinedSides, Judge};
use super::rows::SortedRows;
use crate::sort_order::{SortOrder, SortPosition};

/// See the module.
#[derive(Debug)]
pub(super) enum RetainedRows {
    Rows(SortedRows),
    Groups(Box<GroupedRows>),
    Joined(Box<JoinedRows>),
}

/// What became of a document in a query's rows.
#[derive(Debug)]
pub(super) enum RowEffect {
    /// It is not among them.
    Absent,
    /// It is not, as it cannot be evaluated.
    Unevaluated,
    /// It is, and this row is no longer kept for lack of room, or does not belong to the known
    /// rows.
    Present(Option<Arc<ResultRow>>),
}

impl RetainedRows {
    /// The version of a document, if it is kept.
    pub(super) fn version(&self, key: &[u8]) -> Option<u64> {
        match self {
            Self::Rows(rows) => rows.version(key),
            Self::Groups(grouped) => grouped.version(key),
            Self::Joined(joined) => joined.version(key),
        }
    }

    /// Replaces the version of a document; `None` if it has left.
    pub(super) fn change(
        &mut self,
        key: &[u8],
        row: Option<ResultRow>,
        order: &SortOrder,
    ) -> Result<RowEffect, DocumentRefusal> {
        if let Self::Groups(grouped) = self {
            grouped.remove(key);
            return Ok(match row {
                None => RowEffect::Absent,
                Some(row) if grouped.insert(&row) => RowEffect::Present(None),
                Some(_) => RowEffect::Unevaluated,
            });
        }
        let matched = row.is_some();
        let placed = row.and_then(|row| Some((order.sort_position(&row)?, row)));
        let present = placed.is_some();
        let beyond = match self {
            Self::Rows(rows) => {
                rows.remove(key);
                placed.and_then(|(place, row)| rows.insert(place, row))
            }
            Self::Joined(joined) => joined.change(key, placed)?,
            Self::Groups(_) => None,
        };
        Ok(match (present, matched) {
            (true, _) => RowEffect::Present(beyond),
            (false, true) => RowEffect::Unevaluated,
            (false, false) => RowEffect::Absent,
        })
    }

    /// Applies a write of a collection that is looked up. Returns whether it was made under access
    /// rules other than the query's.
    pub(super) fn write(&mut self, side: &QueryHash, image: &AfterImage, may: bool) -> bool {
        match self {
            Self::Rows(_) | Self::Groups(_) => false,
            Self::Joined(joined) => joined.write(side, image, may),
        }
    }

    /// Whether an unknown document is referred to.
    pub(super) fn has_unknown_references(&self) -> bool {
        matches!(self, Self::Joined(joined) if joined.has_unknown_references())
    }

    /// The unknown documents of each side that are referred to and have not been read.
    pub(super) fn unread(&self) -> Vec<Vec<Arc<[u8]>>> {
        match self {
            Self::Rows(_) | Self::Groups(_) => Vec::new(),
            Self::Joined(joined) => joined.unread(),
        }
    }

    /// Takes documents that were requested.
    pub(super) fn fetched(&mut self, documents: Vec<Vec<FetchedDocument>>) {
        if let Self::Joined(joined) = self {
            joined.fetched(documents);
        }
    }

    /// Uses documents that were read, as far as they count.
    pub(super) fn resolve(&mut self, judge: &Judge<'_>) {
        if let Self::Joined(joined) = self {
            joined.resolve(judge);
        }
    }

    /// Updates what is shown after some changes; returns the difference, if that is known without
    /// examining all rows.
    pub(super) fn refresh(
        &mut self,
        order: &SortOrder,
    ) -> Result<Option<Vec<WindowChange>>, DocumentRefusal> {
        match self {
            Self::Rows(_) => Ok(None),
            Self::Groups(grouped) => Ok(Some(grouped.refresh(order))),
            Self::Joined(joined) => joined.refresh().map(|()| None),
        }
    }

    /// Whether `refresh` returns the changes.
    pub(super) const fn knows_changes(&self) -> bool {
        matches!(self, Self::Groups(_))
    }

    /// What is shown: at most `limit` rows from `offset` on.
    pub(super) fn window(&self, offset: usize, limit: usize) -> Vec<Arc<ResultRow>> {
        match self {
            Self::Rows(rows) => rows.window(offset, limit),
            Self::Groups(grouped) => grouped.rows().window(offset, limit),
            Self::Joined(joined) => joined.rows().window(offset, limit),
        }
    }

    /// Whether the first `count` rows are known, or all.
    pub(super) fn reaches(&self, count: usize) -> bool {
        match self {
            Self::Rows(rows) => rows.reaches(count),
            Self::Groups(grouped) => !grouped.is_overfull(),
            Self::Joined(joined) => joined.rows().reaches(count),
        }
    }

    /// Whether there are more documents than may be grouped, or more to be shown than may be kept.
    pub(super) fn is_overfull(&self) -> bool {
        match self {
            Self::Rows(_) => false,
            Self::Groups(grouped) => grouped.is_overfull(),
            Self::Joined(joined) => joined.is_overfull(),
        }
    }

    /// How many documents are kept.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Groups(grouped) => grouped.len(),
            Self::Joined(joined) => joined.rows().len(),
        }
    }
}

/// The first rows of all that are passed.
#[derive(Debug)]
pub(super) struct FirstRows {
    rows: Vec<(SortPosition, ResultRow)>,
    /// Whether none was omitted.
    complete: bool,
    capacity: usize,
}

impl FirstRows {
    fn new(capacity: usize) -> Self {
        Self {
            rows: Vec::new(),
            complete: true,
            capacity,
        }
    }

    /// Adds a row. Returns false if it cannot be evaluated and is omitted.
    fn push(&mut self, row: &ResultRow, order: &SortOrder) -> bool {
        let Some(sort_position) = order.sort_position(row) else {
            return false;
        };
        self.rows.push((sort_position, row.clone()));
        if self.rows.len() > self.capacity.saturating_mul(2).saturating_add(64) {
            self.rows.sort_by(|a, b| a.0.cmp(&b.0));
            self.rows.truncate(self.capacity);
            self.complete = false;
        }
        true
    }

    fn rows(self, all: bool) -> SortedRows {
        SortedRows::new(self.rows, self.complete && all, self.capacity)
    }
}

/// What is kept of a query while its documents are passed one by one.
#[derive(Debug)]
pub(super) enum RowCollector {
    Rows(FirstRows),
    Groups(Box<GroupedRows>),
    Joined(FirstRows, Box<JoinedSides>),
}

impl RowCollector {
    /// Nothing yet. `foreign` is what was read of the sides; `None` if they will be passed, too.
    pub(super) fn new(
        query: &QueryDefinition,
        foreign: Option<&[Foreign]>,
        capacity: usize,
        most: usize,
    ) -> Result<Self, DocumentRefusal> {
        if let Some(group) = groups::group_of(query)? {
            return Ok(Self::Groups(Box::new(GroupedRows::new(group, most))));
        }
        let first = FirstRows::new(capacity);
        Ok(match (lookups::join_of(query)?, foreign) {
            (None, _) => Self::Rows(first),
            (Some(join), None) => {
                Self::Joined(first, Box::new(JoinedSides::new(query, join, |_| true)))
            }
            (Some(join), Some(foreign)) => {
                Self::Joined(first, Box::new(JoinedSides::read(query, join, foreign)))
            }
        })
    }

    /// Adds a document. Returns false if it cannot be evaluated and is omitted.
    pub(super) fn push(&mut self, row: &ResultRow, order: &SortOrder) -> bool {
        match self {
            Self::Groups(grouped) => grouped.insert(row),
            Self::Rows(first) | Self::Joined(first, _) => first.push(row, order),
        }
    }

    /// Adds a visible document of a side.
    pub(super) fn push_other(&mut self, side: &QueryHash, row: &ResultRow) {
        if let Self::Joined(_, sides) = self {
            sides.push(side, row);
        }
    }

    /// The collected rows; `all` says whether every document was read.
    pub(super) fn into_rows(
        self,
        all: bool,
        order: &SortOrder,
    ) -> Result<RetainedRows, DocumentRefusal> {
        Ok(match self {
            Self::Rows(first) => RetainedRows::Rows(first.rows(all)),
            Self::Joined(first, sides) => {
                RetainedRows::Joined(Box::new(JoinedRows::new(*sides, first.rows(all))?))
            }
            Self::Groups(mut grouped) => {
                grouped.refresh(order);
                RetainedRows::Groups(grouped)
            }
        })
    }
}
