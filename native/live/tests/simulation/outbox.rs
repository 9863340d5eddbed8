//! The outbox: what was committed, and whether it is marked as published.

use std::collections::BTreeMap;

use rillbase_live::message::{AfterImage, ImageContent};

use super::database::{Database, number};

/// How long a row is kept after it was marked as published.
const KEPT_US: u64 = 60_000_000;
/// A relay's lease.
const LEASE_US: u64 = 3_000_000;

#[derive(Debug)]
struct Committed {
    images: Vec<AfterImage>,
    at_us: u64,
    marked_us: Option<u64>,
}

/// The outbox and the lease of the relay.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    rows: BTreeMap<u64, Committed>,
    /// Holder, token, end.
    lease: (u64, u64, u64),
}

impl Outbox {
    pub(crate) fn add(&mut self, images: Vec<AfterImage>, now_us: u64) {
        if let Some(xid) = images.first().map(|image| image.xid) {
            let committed = Committed {
                images,
                at_us: now_us,
                marked_us: None,
            };
            self.rows.insert(xid, committed);
        }
    }

    /// The relay's lease: its token, unless another relay has it.
    pub(crate) fn claim(&mut self, holder: u64, now_us: u64) -> Option<u64> {
        let (known, token, until_us) = self.lease;
        if known != holder && until_us > now_us {
            return None;
        }
        let token = if known == holder { token } else { token + 1 };
        self.lease = (holder, token, now_us + LEASE_US);
        Some(token)
    }

    /// Whether a token is still the highest.
    pub(crate) const fn is_held(&self, token: u64) -> bool {
        self.lease.1 == token
    }

    pub(crate) fn unmarked(&self) -> Vec<u64> {
        let unmarked = self.rows.iter().filter(|(_, row)| row.marked_us.is_none());
        unmarked.map(|(xid, _)| *xid).collect()
    }

    pub(crate) fn all(&self) -> Vec<u64> {
        self.rows.keys().copied().collect()
    }

    pub(crate) fn mark(&mut self, xid: u64, now_us: u64) {
        if let Some(row) = self.rows.get_mut(&xid) {
            row.marked_us.get_or_insert(now_us);
        }
    }

    /// Removes rows that were marked long ago.
    pub(crate) fn forget(&mut self, now_us: u64) {
        let old = |row: &Committed| row.marked_us.is_some_and(|us| us + KEPT_US < now_us);
        self.rows.retain(|_, row| !old(row));
    }

    /// What a publisher sends, with a time stamp from before the commit.
    pub(crate) fn as_written(&self, xid: u64) -> Option<(u64, Vec<AfterImage>)> {
        let row = self.rows.get(&xid)?;
        Some((row.at_us, row.images.clone()))
    }

    /// Later transactions that wrote documents of a transaction again.
    pub(crate) fn newer(&self, xid: u64, database: &Database) -> Vec<u64> {
        let images = self.rows.get(&xid).map(|row| row.images.as_slice());
        let images = images.unwrap_or_default().iter();
        let last = |image: &AfterImage| {
            let latest = database.latest(number(&image.key))?;
            let wrote = |row: &Committed| {
                let mut written = row.images.iter();
                written.any(|one| one.key == image.key && one.version == latest.version)
            };
            let (writer, _) = self.rows.iter().find(|(_, row)| wrote(row))?;
            (latest.version > image.version).then_some(*writer)
        };
        let mut newer: Vec<u64> = images.filter_map(last).collect();
        newer.sort_unstable();
        newer.dedup();
        newer
    }

    /// What a relay reads: an image of a document that was written again has no content.
    pub(crate) fn as_read(&self, xid: u64, database: &Database) -> Vec<AfterImage> {
        let images = self.rows.get(&xid).map(|row| row.images.as_slice());
        let images = images.unwrap_or_default().iter();
        let read = |image: &AfterImage| {
            let latest = database.latest(number(&image.key));
            let newer = latest.is_some_and(|latest| latest.version > image.version);
            AfterImage {
                content: if newer {
                    ImageContent::Superseded
                } else {
                    image.content.clone()
                },
                ..image.clone()
            }
        };
        images.map(read).collect()
    }
}
