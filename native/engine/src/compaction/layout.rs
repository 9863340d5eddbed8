//! Layouts: how the tables of a keyspace are arranged, and what is compacted next to keep them so.
//!
//! A [`TableLayout`] receives the [`KeyspaceShape`] of a keyspace and returns a [`CompactionPlan`].
//! It sees tables by number, size, keys and zone, and never reads or writes; [`crate::Strategy`]
//! contains the engine's own. State from one plan to the next, such as where to continue, is its *cursor*:
//! the manifest updates it atomically with the tables of the plan.

use std::fmt::Debug;

use super::plan::CompactionPlan;
use super::shape::{KeyspaceShape, Separation};
use crate::error::{Error, Result};
use crate::extract::ZoneMap;
use crate::options::KeyspaceOptions;

/// Arranges tables. Must be pure: the same plan for the same shape.
pub trait TableLayout: Debug + Send + Sync {
    /// A stable name. The cursor of a layout with another name is not passed to it.
    fn name(&self) -> &'static str;

    /// How the tables below level 0 are separated. Must never change.
    fn separation(&self) -> Separation {
        Separation::Keys
    }

    /// Whether deletes must describe what they delete, so that they reach the part of their target.
    /// Then [`crate::WriteBatch::delete`] is rejected in favour of
    /// [`crate::WriteBatch::delete_with`].
    fn requires_attributes(&self) -> bool {
        false
    }

    /// The most urgent compaction, if one is needed.
    fn choose(&self, shape: &KeyspaceShape<'_>) -> Option<CompactionPlan>;

    /// The target level of a full compaction.
    fn bottom(&self, shape: &KeyspaceShape<'_>) -> usize {
        shape.version.deepest().max(1)
    }

    /// The part of a level to which an entry with this zone belongs, if parts are separated by
    /// zone. All parts are written at once: a few dozen are fine, and each needs up to 1 MiB
    /// meanwhile.
    fn part_of(&self, _zone: &ZoneMap, _level: usize) -> u8 {
        0
    }
}

/// Rejects incompatible options.
pub(crate) fn check(options: &KeyspaceOptions) -> Result<()> {
    let what = match options.layout().separation() {
        Separation::Zones if options.merge.is_some() => {
            "tables separated by zone cannot hold merge operands"
        }
        Separation::Zones if options.extractor.is_none() => {
            "tables separated by zone need an extractor, which returns the zones"
        }
        _ => return Ok(()),
    };
    Err(Error::InvalidArgument { what: what.into() })
}
