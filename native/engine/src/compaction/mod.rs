//! Compaction: which files to rewrite, and which entries to keep.
//!
//! - [`layout`] is the interface for arranging tables, [`shape`] what a layout sees of them;
//!   [`strategy`] selects one of the engine's own layouts: [`leveled`], [`tiered`] (size-tiered and
//!   lazy-leveled) or [`window`].
//! - [`plan`] derives a [`plan::CompactionPlan`] purely from a version, options and the time, and
//!   rejects plans that would violate the order of entries.
//! - [`rules`] determines what is folded, kept and dropped; flushes follow the same rules.
//! - [`output`] writes what is kept and splits it into files.

pub(crate) mod layout;
pub(crate) mod leveled;
pub(crate) mod output;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod rules;
pub(crate) mod shape;
pub(crate) mod strategy;
pub(crate) mod tiered;
pub(crate) mod window;

#[cfg(test)]
mod tests;
