//! What a sort node keeps of a query: its first rows, or all its documents in groups.

use std::sync::Arc;

use rillbase_documents::refusal::Refusal;

use crate::groups;
use crate::message::{Definition, Row, WindowChange};

use super::grouped::Grouped;
use super::order::{Order, Place};
use super::rows::Rows;

/// See the module.
#[derive(Debug)]
pub(super) enum Kept {
    Rows(Rows),
    Groups(Box<Grouped>),
}

impl Kept {
    /// The version of a document, if it is held.
    pub(super) fn version(&self, key: &[u8]) -> Option<u64> {
        match self {
            Self::Rows(rows) => rows.version(key),
            Self::Groups(grouped) => grouped.version(key),
        }
    }

    /// Puts the version of a document in the place of what was held of it; none: it has left.
    /// Returns the document that is not held any more for want of room, or that does not belong
    /// among what is known.
    pub(super) fn change(
        &mut self,
        key: &[u8],
        row: Option<Row>,
        order: &Order,
    ) -> Result<Option<Arc<Row>>, Refusal> {
        match self {
            Self::Rows(rows) => {
                rows.remove(key);
                let Some(row) = row else {
                    return Ok(None);
                };
                let place = order.place(&row)?;
                Ok(rows.insert(place, row))
            }
            Self::Groups(grouped) => {
                grouped.remove(key);
                if let Some(row) = row {
                    grouped.insert(&row)?;
                }
                Ok(None)
            }
        }
    }

    /// Brings what is shown up to date, after some changes; returns what differs, if that is known
    /// without looking at all rows.
    pub(super) fn refresh(&mut self, order: &Order) -> Result<Option<Vec<WindowChange>>, Refusal> {
        match self {
            Self::Rows(_) => Ok(None),
            Self::Groups(grouped) => grouped.refresh(order).map(Some),
        }
    }

    /// Whether `refresh` knows.
    pub(super) const fn knows_changes(&self) -> bool {
        matches!(self, Self::Groups(_))
    }

    /// What is shown: the rows from `offset` on, `limit` at most.
    pub(super) fn window(&self, offset: usize, limit: usize) -> Vec<Arc<Row>> {
        match self {
            Self::Rows(rows) => rows.window(offset, limit),
            Self::Groups(grouped) => grouped.rows().window(offset, limit),
        }
    }

    /// Whether the first `count` rows are known, or all.
    pub(super) fn reaches(&self, count: usize) -> bool {
        match self {
            Self::Rows(rows) => rows.reaches(count),
            Self::Groups(grouped) => !grouped.is_overfull(),
        }
    }

    /// Whether there are more documents than may be grouped.
    pub(super) fn is_overfull(&self) -> bool {
        matches!(self, Self::Groups(grouped) if grouped.is_overfull())
    }

    /// How many documents are held.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Groups(grouped) => grouped.len(),
        }
    }
}

/// What is kept of a query, while its documents are told one by one.
#[derive(Debug)]
pub(super) enum Gathered {
    Rows {
        rows: Vec<(Place, Row)>,
        /// Whether none was left out.
        complete: bool,
        capacity: usize,
    },
    Groups(Box<Grouped>),
}

impl Gathered {
    pub(super) fn new(query: &Definition, capacity: usize, most: usize) -> Result<Self, Refusal> {
        Ok(match groups::group_of(query)? {
            None => Self::Rows {
                rows: Vec::new(),
                complete: true,
                capacity,
            },
            Some(group) => Self::Groups(Box::new(Grouped::new(group, most))),
        })
    }

    pub(super) fn push(&mut self, row: &Row, order: &Order) -> Result<(), Refusal> {
        match self {
            Self::Groups(grouped) => grouped.insert(row),
            Self::Rows {
                rows,
                complete,
                capacity,
            } => {
                rows.push((order.place(row)?, row.clone()));
                if rows.len() > capacity.saturating_mul(2).saturating_add(64) {
                    rows.sort_by(|a, b| a.0.cmp(&b.0));
                    rows.truncate(*capacity);
                    *complete = false;
                }
                Ok(())
            }
        }
    }

    /// All of it; `all` tells whether every document was told.
    pub(super) fn kept(self, all: bool, order: &Order) -> Result<Kept, Refusal> {
        Ok(match self {
            Self::Rows {
                rows,
                complete,
                capacity,
            } => Kept::Rows(Rows::new(rows, complete && all, capacity)),
            Self::Groups(mut grouped) => {
                grouped.refresh(order)?;
                Kept::Groups(grouped)
            }
        })
    }
}
