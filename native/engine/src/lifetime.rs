//! The lifetime of keys that determine their own expiry.

use std::fmt::Debug;

use crate::key::Millis;

/// Determines from a key when all of its versions expire together. Merge operands have no expiry of
/// their own; if their keys end with a period of time, the key determines it.
///
/// The engine drops expired entries when it next rewrites them, and drops files in which everything
/// has expired unread. Until then reads return them: readers know the keys and must skip them.
pub trait Lifetime: Debug + Send + Sync {
    /// When the key expires; `None` if it does not, or if that is not known (yet). The expiry may
    /// move to a later time, or become unknown, as long as it has not passed.
    fn expiry(&self, key: &[u8]) -> Option<Millis>;
}
