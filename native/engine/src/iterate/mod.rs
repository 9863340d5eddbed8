//! Walking entries of several sources as if they were one.

pub(crate) mod merging;
pub(crate) mod run;
pub(crate) mod source;
pub(crate) mod zones;
