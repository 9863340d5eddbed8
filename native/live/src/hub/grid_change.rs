//! From one grid to another: the nodes of a new epoch take over from those of the old one.
//!
//! What is shown stays. Every query is registered with the new nodes, whose rows are read in a
//! snapshot that sees whatever the old ones have told here, since they are read later. So what is
//! told then is the difference: nothing is missing and nothing comes twice.
//!
//! Whoever is live stays so for as long as the ticks of the old nodes count, two seconds as ever:
//! most queries are registered by then, and their subscribers notice nothing.

use crate::partition::query_partition;

use super::client::ClientPhase;
use super::parts::GridShape;
use super::{Hub, HubRequest};

impl Hub {
    /// Follows another grid. Logs that are read from here on are its own.
    pub fn moved(&mut self, grid: GridShape) {
        self.config.installation = grid.installation;
        self.config.epoch = grid.epoch;
        self.config.write_partitions = grid.write_partitions;
        let before = std::mem::take(&mut self.logs);
        // What was to be asked of the old grid need not be.
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
            // What it missed was in the old log, of which its token is.
            if let ClientPhase::Replaying(token, _) = &client.phase {
                client.phase = ClientPhase::Resuming(token.clone());
            }
        }
    }
}
