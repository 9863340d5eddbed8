//! Event ids that are being written: whoever comes with the same one waits until it is known what
//! became of it.

use std::collections::HashSet;

use parking_lot::{Condvar, Mutex};

/// Ids of events, by what their key in the database is.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    claimed: Mutex<HashSet<Vec<u8>>>,
    given_back: Condvar,
}

/// Ids that are one writer's alone until it is dropped.
#[derive(Debug)]
pub(crate) struct EventIdClaim<'a> {
    claims: &'a Claims,
    keys: HashSet<Vec<u8>>,
}

impl Claims {
    /// Waits until nobody else writes any of the keys: for all at once, so that no two wait for one
    /// another.
    pub(crate) fn claim(&self, keys: HashSet<Vec<u8>>) -> EventIdClaim<'_> {
        if !keys.is_empty() {
            let mut claimed = self.claimed.lock();
            while keys.iter().any(|key| claimed.contains(key)) {
                self.given_back.wait(&mut claimed);
            }
            claimed.extend(keys.iter().cloned());
        }
        EventIdClaim { claims: self, keys }
    }
}

impl Drop for EventIdClaim<'_> {
    fn drop(&mut self) {
        if !self.keys.is_empty() {
            let mut claimed = self.claims.claimed.lock();
            claimed.retain(|key| !self.keys.contains(key));
            drop(claimed);
            self.claims.given_back.notify_all();
        }
    }
}
