//! Resume tokens for a client at its current position.

use crate::message::StreamId;
use crate::snapshot::PgSnapshot;

use super::HubConfig;
use super::query::HubQuery;
use super::sources::NotificationLog;
use super::token::ResumeToken;

/// What all tokens of a client have in common at one time.
pub(super) struct TokenStamp<'s> {
    config: &'s HubConfig,
    query: &'s HubQuery,
    log: &'s NotificationLog,
    holder: [u8; 16],
}

impl<'s> TokenStamp<'s> {
    pub(super) fn new(
        config: &'s HubConfig,
        query: &'s HubQuery,
        log: &'s NotificationLog,
        holder: [u8; 16],
    ) -> Self {
        Self {
            config,
            query,
            log,
            holder,
        }
    }

    /// A token for a client that has been sent everything.
    pub(super) fn seal(&self, seq: u64) -> String {
        let position = self.query.resume_from(self.log);
        self.at(&self.query.snapshot, position, seq)
    }

    /// A token for a client that has been sent everything up to a position in the log, and
    /// everything that `seen` sees.
    pub(super) fn at(&self, seen: &PgSnapshot, position: StreamId, seq: u64) -> String {
        self.config.sealer.seal(&ResumeToken {
            holder: self.holder,
            query: self.query.definition.hash,
            activation: self.query.activation,
            installation: self.config.installation,
            epoch: self.config.epoch,
            incarnation: self.log.incarnation,
            position,
            seq,
            seen: seen.clone(),
        })
    }
}
