//! Changing the grid: the nodes of a new epoch take over from those of the old one.
//!
//! The displayed results stay. Every query is registered with the new nodes. Its rows are read
//! later than anything the old nodes reported, so their snapshot sees all of that. Only the
//! difference is sent, so nothing is lost and nothing is repeated.
//!
//! Live queries stay live for as long as the ticks of the old nodes count, two seconds as always:
//! most queries are registered by then, and their subscribers notice nothing.

use crate::partition::query_partition;

use super::client::ClientPhase;
use super::parts::GridShape;
use super::{Hub, HubRequest};

impl Hub {
    /// Switches to another grid. Logs that are read from here on belong to it.
    pub fn moved(&mut self, grid: GridShape) {
        self.config.installation = grid.installation;
        self.config.epoch = grid.epoch;
        self.config.write_partitions = grid.write_partitions;
        let before = std::mem::take(&mut self.logs);
        // Requests to the old grid are obsolete.
        self.requests.retain(|request| {
            matches!(request, HubRequest::RecheckAccess(_) | HubRequest::Fail(..))
        });
        for (hash, query) in &mut self.queries {
            let partition = query_partition(hash, grid.query_partitions);
            let log = before.get(&query.partition);
            query.moved((partition, grid.write_partitions), log, self.now_us);
            self.logs.entry(partition).or_default();
            self.waiting.insert(*hash);
            self.requests.push(HubRequest::Register(*hash));
        }
        for client in self.clients.values_mut() {
            // What it missed is in the old log, to which its token belongs.
            if let ClientPhase::Replaying(token, _) = &client.phase {
                client.phase = ClientPhase::Resuming(token.clone());
            }
        }
    }
}
