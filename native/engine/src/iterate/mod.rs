//! Iterating over the entries of several sources in one order.

pub(crate) mod merging;
pub(crate) mod run;
pub(crate) mod source;
