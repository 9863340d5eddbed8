//! Event ids that are being written: a writer with the same id waits until its outcome is known.

use std::collections::HashSet;

use parking_lot::{Condvar, Mutex};

/// Ids of events, by their keys in the database.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    claimed: Mutex<HashSet<Vec<u8>>>,
    given_back: Condvar,
}

/// Ids that belong to one writer until this is dropped.
#[derive(Debug)]
pub(crate) struct EventIdClaim<'a> {
    claims: &'a Claims,
    keys: HashSet<Vec<u8>>,
}

impl Claims {
    /// Waits until no other writer has any of the keys: for all at once, which prevents deadlocks.
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
