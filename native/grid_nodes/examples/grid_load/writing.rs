//! Appends writes as a publisher does: due writes are sent together, each as its own group.
//!
//! Writes are due at a steady rate whether or not the system keeps up, and count as written when
//! they were due, so that delays here are included in the measurement.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rillbase_grid_nodes::resp::{ValkeyConnection, ValkeyReply};
use rillbase_grid_nodes::server::ValkeyServer;
use rillbase_live::message::{AfterImage, ImageContent, WriteEntry};
use rillbase_live::wire::write_entry;

use crate::Fallible;
use crate::clock::now_us;
use crate::options::LoadOptions;
use crate::workload::{COLLECTION, ExpectedWrite, GridWorkload, WorkloadRandom};

/// The maximum number of writes per call.
const BATCH_WRITES: u64 = 500;
const NAP: Duration = Duration::from_micros(200);

/// The result of writing.
pub(crate) struct WriteSummary {
    pub(crate) writes: u64,
    /// The expected number of notifications.
    pub(crate) expected: usize,
    pub(crate) seconds: f64,
}

/// Writes documents; every call of `write` writes new ones.
pub(crate) struct Writer<'a> {
    connection: ValkeyConnection,
    options: &'a LoadOptions,
    workload: &'a GridWorkload,
    random: WorkloadRandom,
    /// The number of the next write.
    next: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn open(
        server: &ValkeyServer,
        options: &'a LoadOptions,
        workload: &'a GridWorkload,
    ) -> Fallible<Self> {
        Ok(Self {
            connection: ValkeyConnection::open(server)?,
            options,
            workload,
            random: WorkloadRandom(2),
            next: 0,
        })
    }

    /// Writes until the time has elapsed. Notifications of these write partitions are not expected.
    pub(crate) fn write(&mut self, uncounted: &[u16]) -> Fallible<WriteSummary> {
        let options = self.options;
        let total = options.writes * options.seconds;
        let (began, began_us) = (Instant::now(), now_us());
        let (mut sent, mut expected) = (0, 0);
        while sent < total {
            let passed_us = u64::try_from(began.elapsed().as_micros())?;
            let due = (passed_us * options.writes / 1_000_000).min(total);
            if due == sent {
                thread::sleep(NAP);
                continue;
            }
            let until = due.min(sent + BATCH_WRITES);
            begin(&mut self.connection, options, until - sent);
            for number in sent..until {
                let written = self.workload.write(self.next, &mut self.random);
                let partition = written.partition % options.write_partitions;
                if !uncounted.contains(&u16::try_from(partition)?) {
                    expected += written.expected;
                }
                let due_us = began_us + number * 1_000_000 / options.writes;
                append(&mut self.connection, self.next, written, due_us);
                self.next += 1;
            }
            self.connection.flush()?;
            let mut answer = self.connection.reply()?.list()?.into_iter();
            if answer.next().unwrap_or(ValkeyReply::Nil).bytes()? != b"ok" {
                return Err("a write was rejected".into());
            }
            sent = until;
        }
        Ok(WriteSummary {
            writes: sent,
            expected,
            seconds: began.elapsed().as_secs_f64(),
        })
    }
}

/// Starts a call for this many writes.
fn begin(connection: &mut ValkeyConnection, options: &LoadOptions, writes: u64) {
    connection.begin(6 + 4 * usize::try_from(writes).unwrap_or(0));
    let stamp = now_us().to_string();
    let function = "rillbase_events_4_append";
    for part in ["FCALL", function, "1", &options.prefix, &stamp, ""] {
        connection.argument(part.as_bytes());
    }
}

/// Adds a write to the call, as a single entry without a batch.
fn append(connection: &mut ValkeyConnection, number: u64, written: ExpectedWrite, due_us: u64) {
    let image = AfterImage {
        xid: 1_000 + number,
        tenant: [1; 16],
        collection: COLLECTION,
        version: written.version,
        rules_version: 0,
        created_ms: 0,
        written_us: i64::try_from(due_us).unwrap_or(0),
        key: written.id.as_bytes().into(),
        content: ImageContent::Document(written.body.into()),
        parts: Arc::default(),
    };
    let (entry, _) = write_entry::encode(&WriteEntry::Image(image));
    let partition = written.partition.to_string();
    for part in [&b""[..], b"1", partition.as_bytes(), &entry] {
        connection.argument(part);
    }
}
