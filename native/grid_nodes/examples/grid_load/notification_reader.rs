//! Reads the notification logs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rillbase_grid_nodes::error::ValkeyError;
use rillbase_grid_nodes::resp::{ValkeyConnection, ValkeyReply};
use rillbase_grid_nodes::server::ValkeyServer;
use rillbase_live::message::{NodeEvent, Notification, NotificationSource, WindowChange};
use rillbase_live::wire::notification;

use crate::Fallible;
use crate::clock::now_us;
use crate::options::LoadOptions;
use crate::workload::GridWorkload;

/// The number of empty reads after the last write before the run is considered complete.
const MAX_EMPTY_READS: u32 = 100;
const BLOCK_MS: u64 = 50;

/// A stream and its read position.
struct LogOffset {
    name: String,
    after: String,
}

/// Reads all notification logs.
pub(crate) struct NotificationReader {
    connection: ValkeyConnection,
    workload: Arc<GridWorkload>,
    logs: Vec<LogOffset>,
    active: usize,
    /// Registrations that nodes rejected.
    pub(crate) refused: usize,
    latencies_us: Vec<u64>,
    /// The write partitions whose notifications are not counted.
    uncounted: Vec<u16>,
}

impl NotificationReader {
    pub(crate) fn open(
        server: &ValkeyServer,
        options: &LoadOptions,
        workload: Arc<GridWorkload>,
    ) -> Result<Self, ValkeyError> {
        let log = |partition| LogOffset {
            name: format!("{}:1:log:{partition}", options.prefix),
            after: "0-0".into(),
        };
        Ok(Self {
            connection: ValkeyConnection::open(server)?,
            workload,
            logs: (0..options.query_partitions).map(log).collect(),
            active: 0,
            refused: 0,
            latencies_us: Vec::new(),
            uncounted: Vec::new(),
        })
    }

    /// The number of answers to registrations.
    pub(crate) const fn answered(&self) -> usize {
        self.active + self.refused
    }

    pub(crate) fn read(&mut self, block_ms: u64) -> Result<(), ValkeyError> {
        let connection = &mut self.connection;
        connection.begin(6 + 2 * self.logs.len());
        for part in [
            "XREAD",
            "COUNT",
            "1000",
            "BLOCK",
            &block_ms.to_string(),
            "STREAMS",
        ] {
            connection.argument(part.as_bytes());
        }
        for log in &self.logs {
            connection.argument(log.name.as_bytes());
        }
        for log in &self.logs {
            connection.argument(log.after.as_bytes());
        }
        connection.flush()?;
        let streams = connection.reply()?.list()?;
        let now_us = now_us();
        for stream in streams {
            let mut parts = stream.list()?.into_iter();
            let name = parts.next().unwrap_or(ValkeyReply::Nil).bytes()?;
            for entry in parts.next().unwrap_or(ValkeyReply::Nil).list()? {
                let (id, body) = entry_of(entry)?;
                let mut logs = self.logs.iter_mut();
                if let Some(log) = logs.find(|log| log.name.as_bytes() == name) {
                    log.after = id;
                }
                if let Ok(decoded) = notification::decode(&body) {
                    self.take(&decoded, now_us);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, notification: &Notification, now_us: u64) {
        if let NotificationSource::Filter(partition) = notification.source
            && self.uncounted.contains(&partition)
        {
            return;
        }
        match &notification.event {
            NodeEvent::Active { .. } => self.active += 1,
            NodeEvent::Empty { queries, .. } => self.active += queries.len(),
            NodeEvent::Failed { .. } | NodeEvent::TooOld { .. } => self.refused += 1,
            NodeEvent::Match {
                image,
                added,
                changed,
                removed,
            } => {
                let all = added.iter().chain(changed).chain(removed);
                // Sorted queries are reported by the sort node.
                let count = all
                    .filter(|hash| !self.workload.is_sorted_hash(hash))
                    .count();
                self.record_latency(count, image.written_us, now_us);
            }
            NodeEvent::Window {
                image: Some(image),
                changes,
                ..
            } => {
                // Each document is reported once; for groups, every row that changes is reported.
                let all = self.workload.is_grouped();
                let counts =
                    |change: &&WindowChange| all || matches!(change, WindowChange::Add { .. });
                let count = changes.iter().filter(counts).count();
                self.record_latency(count, image.written_us, now_us);
            }
            _ => {}
        }
    }

    fn record_latency(&mut self, count: usize, written_us: i64, now_us: u64) {
        let latency_us = now_us.saturating_sub(u64::try_from(written_us).unwrap_or(0));
        self.latencies_us
            .extend(std::iter::repeat_n(latency_us, count));
    }

    /// Reads until stopped, or until nothing arrives for a while after the last write.
    pub(crate) fn measure(
        &mut self,
        uncounted: &[u16],
        done: &AtomicBool,
        stop: &AtomicBool,
    ) -> Fallible<Vec<u64>> {
        self.latencies_us.clear();
        self.uncounted = uncounted.to_vec();
        let mut quiet = 0;
        while !stop.load(Ordering::Relaxed) && quiet < MAX_EMPTY_READS {
            let before = self.latencies_us.len();
            self.read(BLOCK_MS)?;
            let over = done.load(Ordering::Relaxed) && self.latencies_us.len() == before;
            quiet = if over { quiet + 1 } else { 0 };
        }
        Ok(std::mem::take(&mut self.latencies_us))
    }
}

/// An entry's id and the value of its first field.
pub(crate) fn entry_of(entry: ValkeyReply) -> Result<(String, Vec<u8>), ValkeyError> {
    let mut parts = entry.list()?.into_iter();
    let id = parts.next().unwrap_or(ValkeyReply::Nil).bytes()?;
    let mut fields = parts.next().unwrap_or(ValkeyReply::Nil).list()?.into_iter();
    let body = fields.nth(1).unwrap_or(ValkeyReply::Nil).bytes()?;
    Ok((String::from_utf8_lossy(&id).into_owned(), body))
}
