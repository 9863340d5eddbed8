//! Compaction: which files to rewrite, and what of them to keep.
//!
//! - [`plan`] chooses, purely: from a version, options and the time to a [`plan::Plan`]. One file a
//!   strategy: [`leveled`], [`tiered`] (size-tiered and lazy-leveled), [`window`].
//! - [`rules`] says what is folded, kept and dropped; flushes obey the same rules.
//! - [`output`] writes what is kept and cuts it into files.

pub(crate) mod leveled;
pub(crate) mod output;
pub(crate) mod plan;
pub(crate) mod rules;
pub(crate) mod tiered;
pub(crate) mod window;

#[cfg(test)]
mod tests;
