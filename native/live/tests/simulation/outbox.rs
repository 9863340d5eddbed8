//! Publishers and relay: every committed write comes out at least once, in any order, and ticks
//! never lie.

use std::collections::BTreeMap;

use rillbase_live::message::{AfterImage, Content};
use rillbase_live::snapshot::Snapshot;

use crate::database::Database;
use crate::valkey::Valkey;

/// Beyond this a stamp is refused.
const LATE_US: u64 = 5_000_000;
/// For this long the relay leaves a write to its publisher, and a snapshot untold.
const PATIENCE_US: u64 = 250_000;
/// For this long a row is kept.
const KEPT_US: u64 = 60_000_000;

#[derive(Debug)]
struct Committed {
    images: Vec<AfterImage>,
    at_us: u64,
    /// In which life it was marked.
    marked: Option<u8>,
}

/// What was committed and may have to be published.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    rows: BTreeMap<u64, Committed>,
    /// The relay's snapshot that waits to be told: when and in which life it was taken.
    snapshot: Option<(Snapshot, u64, u8)>,
    /// The life in which the relay has published everything again.
    life: u8,
}

impl Outbox {
    pub(crate) fn add(&mut self, images: Vec<AfterImage>, now_us: u64) {
        let Some(xid) = images.first().map(|image| image.xid) else {
            return;
        };
        let committed = Committed {
            at_us: now_us,
            marked: None,
            images,
        };
        self.rows.insert(xid, committed);
    }

    pub(crate) fn unmarked(&self) -> Vec<u64> {
        let unmarked = self.rows.iter().filter(|(_, row)| row.marked.is_none());
        unmarked.map(|(xid, _)| *xid).collect()
    }

    pub(crate) fn any(&self) -> Vec<u64> {
        self.rows.keys().copied().collect()
    }

    /// A publisher does its part, or does it again; too late it is refused.
    pub(crate) fn publish(&mut self, xid: u64, valkey: &mut Valkey) {
        let now_us = valkey.now_us;
        if let Some(row) = self.rows.get_mut(&xid)
            && row.at_us + LATE_US >= now_us
        {
            valkey.publish(&row.images);
            row.marked.get_or_insert(valkey.life);
        }
    }

    /// One round of the relay.
    pub(crate) fn round(&mut self, database: &Database, valkey: &mut Valkey) {
        let (now_us, life) = (valkey.now_us, valkey.life);
        self.rows
            .retain(|_, row| row.marked.is_none() || row.at_us + KEPT_US > now_us);
        if self.life != life {
            self.life = life;
            self.snapshot = None;
            for row in self.rows.values_mut() {
                row.marked = None;
            }
        }
        for row in self.rows.values_mut() {
            if row.marked != Some(life) && row.at_us + PATIENCE_US <= now_us {
                let images: Vec<_> = row
                    .images
                    .iter()
                    .map(|image| read(image, database))
                    .collect();
                valkey.publish(&images);
                row.marked = Some(life);
            }
        }
        let Some((snapshot, taken_us, taken_life)) = &self.snapshot else {
            self.snapshot = Some((database.snapshot(), now_us, life));
            return;
        };
        if taken_us + PATIENCE_US > now_us {
            return;
        }
        let told =
            |(xid, row): (&u64, &Committed)| !snapshot.sees(*xid) || row.marked == Some(life);
        if *taken_life == life && self.rows.iter().all(told) {
            valkey.tick(snapshot);
        }
        self.snapshot = Some((database.snapshot(), now_us, life));
    }
}

/// The relay reads documents when it publishes them: of one that was written again only the fact is
/// left.
fn read(image: &AfterImage, database: &Database) -> AfterImage {
    let key = image.key[0];
    let newer = database
        .latest(key)
        .is_some_and(|latest| latest.version > image.version);
    AfterImage {
        content: if newer {
            Content::Superseded
        } else {
            image.content.clone()
        },
        ..image.clone()
    }
}
