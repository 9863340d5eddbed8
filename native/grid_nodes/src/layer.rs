//! The grid's streams and its function in Valkey, as a node uses them.

use std::sync::Arc;

use rillbase_live::message::{FencingToken, QueryDefinition, StreamId};
use rillbase_live::wire::request::decode_definition;

use crate::error::ValkeyError;
use crate::resp::{ValkeyConnection, ValkeyReply};
use crate::server::ValkeyServer;

/// The maximum number of entries of each stream in one read.
pub const ENTRIES_AT_ONCE: usize = 512;
/// About how many bytes of each stream one read returns: more would take the server more than a few
/// milliseconds. Reads are adjusted to the size of the entries that the last one returned.
const READ_BYTES: usize = 2 << 20;
const DEFINITIONS_AT_ONCE: &[u8] = b"500";
const MISSING: &str = "Function not found";

/// The identity of this node, and the services that it needs.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// The event layer's address.
    pub server: ValkeyServer,
    /// The prefix of all names of the installation.
    pub prefix: String,
    /// The number of the grid epoch.
    pub epoch: u32,
    /// The node's query partition.
    pub query_partition: u16,
    /// The number of write partitions of the epoch.
    pub write_partitions: u16,
    /// The node's name in leases.
    pub node: String,
    /// The function's source, for a server that lacks it.
    pub function: Arc<[u8]>,
}

impl NodeSettings {
    /// The name of a stream of this epoch.
    pub fn stream(&self, name: &str) -> String {
        format!("{}:{}:{name}", self.prefix, self.epoch)
    }
}

/// The positions where reading starts, all read at the same time.
#[derive(Debug, Clone, Copy, Default)]
pub struct StartPositions {
    /// The end of the node's write stream.
    pub writes: StreamId,
    /// How many entries had been appended up to there.
    pub write_count: u64,
    /// The end of the request stream.
    pub requests: StreamId,
    /// The number of the last request.
    pub request_number: u64,
    /// The end of the notification log.
    pub log: StreamId,
    /// The number of its last entry.
    pub log_number: u64,
}

/// An entry of a stream.
#[derive(Debug)]
pub struct ValkeyEntry {
    /// Its id.
    pub id: StreamId,
    /// The field `e`.
    pub body: Vec<u8>,
    /// The field `p`: partitions of a batch.
    pub parts: Option<Vec<u8>>,
    /// The field `n`: a request's or a notification's number.
    pub number: Option<u64>,
}

/// The server's answer to a node's request for a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseReply {
    /// The lease was granted, with this token.
    Granted(FencingToken),
    /// Another node holds it.
    Held,
}

/// A request for the lease, or its release.
#[derive(Debug, Clone, Copy)]
pub struct LeaseCall<'a> {
    /// The name of the holder.
    pub holder: &'a str,
    /// Its duration; 0 releases it.
    pub ttl_ms: u64,
    /// Figures in JSON.
    pub report: &'a str,
}

/// The outcome of one round trip.
#[derive(Debug, Default)]
pub struct RoundTripResult {
    /// Whether notifications were passed and are in the log now.
    pub appended: bool,
    /// Whether the partition has another holder.
    pub fenced: bool,
    /// The entries of each stream that was read.
    pub entries: Vec<Vec<ValkeyEntry>>,
    /// Whether there were no more.
    pub all_read: bool,
}

/// The contents of one round trip, all optional.
#[derive(Debug, Default)]
pub struct RoundTrip<'a> {
    /// Notifications to append, with the token.
    pub notifications: Option<(FencingToken, &'a [Vec<u8>])>,
    /// The lease to renew.
    pub renewal: Option<LeaseCall<'a>>,
    /// The streams to read, from which positions, and how many ms to wait for entries.
    pub reads: Option<(&'a [(String, StreamId)], u64)>,
}

/// Some queries of the partition.
#[derive(Debug, Default)]
pub struct RegistryPage {
    /// The queries.
    pub definitions: Vec<QueryDefinition>,
    /// How many could not be decoded.
    pub unreadable: u64,
    /// The cursor of the next page, if there is one.
    pub next: Option<Vec<u8>>,
}

/// A connection to the grid's part of the event layer.
#[derive(Debug)]
pub struct Layer {
    connection: ValkeyConnection,
    settings: NodeSettings,
    entries_at_once: usize,
}

impl Layer {
    /// Connects, and loads the function if it is missing.
    pub fn open(settings: NodeSettings) -> Result<Self, ValkeyError> {
        let connection = ValkeyConnection::open(&settings.server)?;
        Ok(Self {
            connection,
            settings,
            entries_at_once: ENTRIES_AT_ONCE,
        })
    }

    /// The server's time in microseconds.
    pub fn time_us(&mut self) -> Result<u64, ValkeyError> {
        let mut time = self.connection.call(&[b"TIME"])?.list()?.into_iter();
        let mut part = || -> Result<u64, ValkeyError> {
            let bytes = time.next().unwrap_or(ValkeyReply::Nil).bytes()?;
            decimal(&bytes).ok_or(ValkeyError::UnexpectedReply("a time was expected"))
        };
        Ok(part()? * 1_000_000 + part()?)
    }

    /// Requests the lease once.
    pub fn lease(&mut self, ask: LeaseCall<'_>) -> Result<LeaseReply, ValkeyError> {
        self.queue_lease(ask);
        self.connection.flush()?;
        let reply = self.connection.reply()?;
        if self.loaded_for(&reply)? {
            self.queue_lease(ask);
            self.connection.flush()?;
            return leased(self.connection.reply()?);
        }
        leased(reply)
    }

    /// Sends a heartbeat: how many preceded it, and how many steps the node's loop has made.
    pub fn beat(&mut self, holder: &str, sign: &str) -> Result<(), ValkeyError> {
        let reply = self.send_beat(holder, sign)?;
        if self.loaded_for(&reply)? {
            self.send_beat(holder, sign)?;
        }
        Ok(())
    }

    fn send_beat(&mut self, holder: &str, sign: &str) -> Result<ValkeyReply, ValkeyError> {
        self.queue_function("beat", 2);
        self.connection.argument(holder.as_bytes());
        self.connection.argument(sign.as_bytes());
        self.connection.flush()?;
        self.connection.reply()
    }

    /// The positions where reading starts. A sort node has no write partition.
    pub fn begin(&mut self, write_partition: Option<u16>) -> Result<StartPositions, ValkeyError> {
        let writes = write_partition.map_or_else(String::new, |number| number.to_string());
        let qp = self.settings.query_partition.to_string();
        self.queue_function("begin", 2);
        self.connection.argument(writes.as_bytes());
        self.connection.argument(qp.as_bytes());
        self.connection.flush()?;
        let mut replies = self.connection.reply()?.list()?.into_iter();
        let mut next = || replies.next().unwrap_or(ValkeyReply::Nil);
        Ok(StartPositions {
            writes: stream_id(next())?,
            write_count: next().number()?,
            requests: stream_id(next())?,
            request_number: next().number()?,
            log: stream_id(next())?,
            log_number: next().number()?,
        })
    }

    /// The next page of the partition's queries; some may be returned twice.
    pub fn registry_page(&mut self, cursor: &[u8]) -> Result<RegistryPage, ValkeyError> {
        let name = format!("registry:{}", self.settings.query_partition);
        let key = self.settings.stream(&name);
        let command = [
            b"HSCAN",
            key.as_bytes(),
            cursor,
            b"COUNT",
            DEFINITIONS_AT_ONCE,
        ];
        let mut reply = self.connection.call(&command)?.list()?.into_iter();
        let cursor = reply.next().unwrap_or(ValkeyReply::Nil).bytes()?;
        let mut page = RegistryPage {
            next: (cursor != b"0").then_some(cursor),
            ..RegistryPage::default()
        };
        let mut fields = reply.next().unwrap_or(ValkeyReply::Nil).list()?.into_iter();
        while let (Some(_), Some(value)) = (fields.next(), fields.next()) {
            match decode_definition(&value.bytes()?) {
                Ok(definition) => page.definitions.push(definition),
                Err(_) => page.unreadable += 1,
            }
        }
        Ok(page)
    }

    /// Appends, renews and reads, in this order and in one round trip.
    pub fn exchange(&mut self, round: &RoundTrip<'_>) -> Result<RoundTripResult, ValkeyError> {
        self.queue_round(round);
        self.connection.flush()?;
        let mut reply = |requested| {
            if requested {
                self.connection.reply()
            } else {
                Ok(ValkeyReply::Nil)
            }
        };
        let appended = reply(round.notifications.is_some())?;
        let renewed = reply(round.renewal.is_some())?;
        let read = reply(round.reads.is_some())?;
        let mut done = RoundTripResult::default();
        if round.notifications.is_some() {
            self.appended(appended, &mut done)?;
        }
        if round.renewal.is_some() {
            done.fenced |= leased(renewed)? == LeaseReply::Held;
        }
        if let Some((streams, _)) = round.reads {
            done.entries = read_entries(read, streams)?;
            let full = |entries: &Vec<ValkeyEntry>| entries.len() >= self.entries_at_once;
            done.all_read = !done.entries.iter().any(full);
            self.entries_at_once = next_read_size(&done.entries, self.entries_at_once);
        }
        Ok(done)
    }

    fn queue_round(&mut self, round: &RoundTrip<'_>) {
        if let Some((token, notifications)) = round.notifications {
            self.queue_function("append", 3 + notifications.len());
            let qp = self.settings.query_partition.to_string();
            let token = token.0.to_string();
            self.connection.argument(self.settings.node.as_bytes());
            self.connection.argument(token.as_bytes());
            self.connection.argument(qp.as_bytes());
            for notification in notifications {
                self.connection.argument(notification);
            }
        }
        if let Some(ask) = round.renewal {
            self.queue_lease(ask);
        }
        if let Some((streams, block_ms)) = round.reads {
            self.queue_read(streams, block_ms);
        }
    }

    fn queue_read(&mut self, streams: &[(String, StreamId)], block_ms: u64) {
        let (count, block) = (self.entries_at_once.to_string(), block_ms.to_string());
        self.connection.begin(6 + 2 * streams.len());
        for part in ["XREAD", "COUNT", &count, "BLOCK", &block, "STREAMS"] {
            self.connection.argument(part.as_bytes());
        }
        for (name, _) in streams {
            self.connection.argument(name.as_bytes());
        }
        for (_, after) in streams {
            let id = format!("{}-{}", after.ms, after.number);
            self.connection.argument(id.as_bytes());
        }
    }

    fn queue_lease(&mut self, ask: LeaseCall<'_>) {
        self.queue_function("lease", 4);
        let ttl = ask.ttl_ms.to_string();
        for part in [&self.settings.node, ask.holder, &ttl, ask.report] {
            self.connection.argument(part.as_bytes());
        }
    }

    /// Starts a call with this many arguments after the grid epoch.
    fn queue_function(&mut self, name: &str, arguments: usize) {
        self.connection.begin(5 + arguments);
        let name = format!("rillbase_grid_2_{name}");
        let epoch = self.settings.epoch.to_string();
        for part in ["FCALL", &name, "1", &self.settings.prefix, &epoch] {
            self.connection.argument(part.as_bytes());
        }
    }

    /// A server without memory, or without the function, has appended nothing: this can be retried.
    fn appended(
        &mut self,
        reply: ValkeyReply,
        done: &mut RoundTripResult,
    ) -> Result<(), ValkeyError> {
        if matches!(&reply, ValkeyReply::Error(_)) {
            self.loaded_for(&reply)?;
            return Ok(());
        }
        let verdict = reply.list()?.into_iter().next().unwrap_or(ValkeyReply::Nil);
        let accepted = verdict.bytes()? == b"ok";
        done.appended = accepted;
        done.fenced |= !accepted;
        Ok(())
    }

    /// Loads the function if a call failed because it is missing; returns whether it did.
    fn loaded_for(&mut self, reply: &ValkeyReply) -> Result<bool, ValkeyError> {
        match reply {
            ValkeyReply::Error(text) if text.contains(MISSING) => {
                let function = Arc::clone(&self.settings.function);
                let command: [&[u8]; 4] = [b"FUNCTION", b"LOAD", b"REPLACE", &function];
                self.connection.call(&command)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// How many entries the next read returns at most, after one that returned these.
fn next_read_size(read: &[Vec<ValkeyEntry>], last: usize) -> usize {
    let mean = |entries: &Vec<ValkeyEntry>| {
        let bytes = entries.iter().map(|entry| entry.body.len()).sum::<usize>();
        bytes.checked_div(entries.len())
    };
    let largest = read.iter().filter_map(mean).max();
    largest.map_or(last, |mean| {
        (READ_BYTES / mean.max(1)).clamp(1, ENTRIES_AT_ONCE)
    })
}

fn leased(reply: ValkeyReply) -> Result<LeaseReply, ValkeyError> {
    let mut parts = reply.list()?.into_iter();
    let verdict = parts.next().unwrap_or(ValkeyReply::Nil).bytes()?;
    let token = parts.next().unwrap_or(ValkeyReply::Nil).number()?;
    Ok(if verdict == b"ok" {
        LeaseReply::Granted(FencingToken(token))
    } else {
        LeaseReply::Held
    })
}

/// The entries of each stream, in the order in which the streams were requested.
fn read_entries(
    reply: ValkeyReply,
    streams: &[(String, StreamId)],
) -> Result<Vec<Vec<ValkeyEntry>>, ValkeyError> {
    let mut entries: Vec<Vec<ValkeyEntry>> = streams.iter().map(|_| Vec::new()).collect();
    for stream in reply.list()? {
        let mut parts = stream.list()?.into_iter();
        let name = parts.next().unwrap_or(ValkeyReply::Nil).bytes()?;
        let items = parts.next().unwrap_or(ValkeyReply::Nil).list()?;
        let index = streams
            .iter()
            .position(|(requested, _)| requested.as_bytes() == name);
        if let Some(settings) = index.and_then(|index| entries.get_mut(index)) {
            *settings = items.into_iter().map(entry).collect::<Result<_, _>>()?;
        }
    }
    Ok(entries)
}

fn entry(reply: ValkeyReply) -> Result<ValkeyEntry, ValkeyError> {
    let mut parts = reply.list()?.into_iter();
    let mut entry = ValkeyEntry {
        id: stream_id(parts.next().unwrap_or(ValkeyReply::Nil))?,
        body: Vec::new(),
        parts: None,
        number: None,
    };
    let mut fields = parts.next().unwrap_or(ValkeyReply::Nil).list()?.into_iter();
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        let value = value.bytes()?;
        match name.bytes()?.as_slice() {
            b"e" => entry.body = value,
            b"p" => entry.parts = Some(value),
            b"n" => entry.number = decimal(&value),
            _ => {}
        }
    }
    Ok(entry)
}

fn stream_id(reply: ValkeyReply) -> Result<StreamId, ValkeyError> {
    let bytes = reply.bytes()?;
    let parsed = bytes
        .iter()
        .position(|&byte| byte == b'-')
        .and_then(|dash| {
            let (ms, number) = bytes.split_at_checked(dash)?;
            Some(StreamId {
                ms: decimal(ms)?,
                number: decimal(number.get(1..)?)?,
            })
        });
    parsed.ok_or(ValkeyError::UnexpectedReply("an id was expected"))
}

fn decimal(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> ValkeyReply {
        ValkeyReply::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn entries_are_in_the_order_of_the_requested_streams() {
        let fields = ValkeyReply::List(vec![bytes("e"), bytes("body"), bytes("n"), bytes("7")]);
        let one = ValkeyReply::List(vec![bytes("5-1"), fields]);
        let stream = ValkeyReply::List(vec![bytes("second"), ValkeyReply::List(vec![one])]);
        let streams = ["first", "second"].map(|name| (name.to_owned(), StreamId::default()));
        let entries = read_entries(ValkeyReply::List(vec![stream]), &streams).unwrap();
        assert!(entries[0].is_empty());
        assert_eq!(entries[1][0].id, StreamId { ms: 5, number: 1 });
        assert_eq!(entries[1][0].body, b"body");
        assert_eq!(entries[1][0].number, Some(7));
    }

    #[test]
    fn large_entries_are_read_in_small_numbers() {
        let read = |size, count| {
            let entry = || ValkeyEntry {
                id: StreamId::default(),
                body: vec![0; size],
                parts: None,
                number: None,
            };
            vec![Vec::new(), (0..count).map(|_| entry()).collect()]
        };
        assert_eq!(next_read_size(&read(100, 3), 1), ENTRIES_AT_ONCE);
        assert_eq!(next_read_size(&read(READ_BYTES / 4, 9), ENTRIES_AT_ONCE), 4);
        assert_eq!(next_read_size(&read(3 * READ_BYTES, 1), 9), 1);
        assert_eq!(next_read_size(&read(100, 0), 7), 7);
    }

    #[test]
    fn a_read_that_came_back_with_nothing_has_no_entries() {
        let streams = [("only".to_owned(), StreamId::default())];
        assert!(read_entries(ValkeyReply::Nil, &streams).unwrap()[0].is_empty());
    }
}
