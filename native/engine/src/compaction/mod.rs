//! Compaction: which files to rewrite, and what of them to keep.
//!
//! - [`layout`] is the interface of who arranges tables; the engine's own, one file each, are
//!   [`leveled`], [`tiered`] (size-tiered and lazy-leveled) and [`window`].
//! - [`plan`] chooses, purely: from a version, options and the time to a [`plan::CompactionPlan`], and refuses
//!   plans that would turn the order of entries around.
//! - [`rules`] says what is folded, kept and dropped; flushes obey the same rules.
//! - [`output`] writes what is kept and cuts it into files.

pub(crate) mod layout;
pub(crate) mod leveled;
pub(crate) mod output;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod rules;
pub(crate) mod tiered;
pub(crate) mod window;

#[cfg(test)]
mod tests;
