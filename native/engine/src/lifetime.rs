//! How long keys live, where a key itself says so.

use std::fmt::Debug;

use crate::key::Millis;

/// Says of a key when all of its versions expire together. Merge operands have no expiry of their
/// own; where their keys end with a period of time, the key can tell.
///
/// The engine drops what has expired when it next rewrites it, and files in which everything has
/// expired unread. Until then reads show it: whoever reads knows the keys, and passes over them.
pub trait Lifetime: Debug + Send + Sync {
    /// When the key expires; `None` if it does not, or if that is not known (yet). It may become
    /// later, or unknown, as long as it is not past.
    fn expiry(&self, key: &[u8]) -> Option<Millis>;
}
