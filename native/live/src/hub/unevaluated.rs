//! Documents that are in no result because they cannot be evaluated: subscribers receive their
//! number.
//!
//! Documents omitted from the rows that were read count for all subscribers; those written later
//! are counted as they arrive, and reported at most a few times a second. Only documents that the
//! query's access rule lets its subscribers read are counted, here and by nodes.

use crate::message::QueryHash;

use super::{Hub, HubRequest, frames};

/// Documents since the last report.
#[derive(Debug, Default)]
pub(super) struct UnevaluatedCounts {
    /// Among the rows that were read.
    read: u32,
    /// Among later writes, and not yet reported to the app server.
    written: u32,
}

impl UnevaluatedCounts {
    /// The number for a new subscriber.
    pub(super) const fn read(&self) -> u32 {
        self.read
    }
}

impl Hub {
    /// Sets how many documents were omitted from the rows that were registered.
    pub fn unevaluated(&mut self, hash: &QueryHash, count: u32) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        if query.unevaluated.read == count {
            return;
        }
        query.unevaluated.read = count;
        for id in &query.clients {
            if let Some(client) = self.clients.get_mut(id) {
                client.unevaluated = client.unevaluated.max(count);
            }
        }
    }

    /// A document was written that cannot be evaluated.
    pub(super) fn one_unevaluated(&mut self, hash: &QueryHash) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        query.unevaluated.written = query.unevaluated.written.saturating_add(1);
        for id in &query.clients {
            if let Some(client) = self.clients.get_mut(id) {
                client.unevaluated = client.unevaluated.saturating_add(1);
            }
        }
    }

    /// Sends the counts to each client that is due and has room.
    pub(super) fn emit_unevaluated(&mut self) {
        let mut notified = Vec::new();
        for (hash, query) in &mut self.queries {
            let written = std::mem::take(&mut query.unevaluated.written);
            if written > 0 {
                self.requests
                    .push(HubRequest::LogUnevaluated(*hash, written));
            }
        }
        for (id, client) in &mut self.clients {
            let room = !client.over && client.ready && client.outbox.has_room(self.config.bounds);
            if client.unevaluated > 0 && room {
                let count = std::mem::take(&mut client.unevaluated);
                client.outbox.push(frames::unevaluated(&client.name, count));
                notified.push(*id);
            }
        }
        for id in notified {
            self.schedule(id);
        }
    }
}
