//! Copies of native collections, part by part at one snapshot: a rebuild of live queries reads them.

use std::time::Instant;

use rillbase_collections::DocumentScan;
use rillbase_documents::id::key_hash;
use rillbase_documents::partition::hash_partition;

use super::CommandStep;
use super::collections::{MAX_EXAMINED, MAX_TIME};
use super::follow::REPLY_BYTES;
use crate::catalog::parse_uuid;
use crate::copy_row::put_copy_row;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::snapshots::{ADMIN, NamedSnapshot};
use crate::words::{Words, unknown};

const DEFAULT_BYTES: usize = 1 << 20;

/// What is copied.
struct CopyRequest {
    /// The UUID that is the collection's name.
    id: [u8; 16],
    partition: u16,
    partitions: u16,
    after: Option<Vec<u8>>,
    bytes: usize,
}

impl CopyRequest {
    /// The request without its options.
    fn read(name: &str, words: &mut Words<'_>) -> Result<Self> {
        let id = parse_uuid(name).ok_or_else(|| {
            CommandRefusal::syntax("only a collection whose name is a UUID can be copied")
        })?;
        let (partition, partitions) = (words.number()?, words.number()?);
        if partition >= partitions {
            return Err(CommandRefusal::syntax(
                "a partition has a number from 0 to partitions - 1",
            ));
        }
        Ok(Self {
            id,
            partition,
            partitions,
            after: None,
            bytes: DEFAULT_BYTES,
        })
    }
}

pub(super) fn copy(
    node: &NodeCore,
    _: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (namespace, name) = (words.text()?, words.text()?);
    let mut request = CopyRequest::read(name, &mut words)?;
    let mut snapshot = None;
    while !words.is_empty() {
        match words.keyword()?.as_str() {
            "AT" => snapshot = Some(words.text()?),
            "AFTER" => request.after = Some(words.next()?.to_vec()),
            "BYTES" => request.bytes = words.number::<usize>()?.clamp(1, REPLY_BYTES),
            other => return Err(unknown(other.as_bytes())),
        }
    }
    let snapshot = match snapshot {
        Some(name) => node.snapshots.renewed(name, node.now())?,
        None => node.snapshots.open(&node.db, ADMIN)?,
    };
    let part = match find(node, namespace, name) {
        Some(number) => {
            let after = request.after.as_deref();
            let scan = node
                .collections
                .documents(number, after, &snapshot.snapshot)?;
            CopyPart::read(scan, &request)?
        }
        // It was dropped, or never installed.
        None => CopyPart::default(),
    };
    part.write(reply, &snapshot);
    Ok(CommandStep::Done)
}

fn find(node: &NodeCore, namespace: &str, name: &str) -> Option<u64> {
    let namespace = node.catalog.namespace(namespace).ok()?;
    namespace.collection(name).ok()
}

/// The documents of a reply.
#[derive(Default)]
struct CopyPart {
    rows: Vec<u8>,
    /// The key of the last document that was examined, unless it is the last of all.
    after: Option<Vec<u8>>,
}

impl CopyPart {
    fn read(mut scan: DocumentScan, request: &CopyRequest) -> Result<Self> {
        let started = Instant::now();
        let (mut part, mut examined) = (Self::default(), 0);
        while let Some(key) = scan.key() {
            if hash_partition(key_hash(key), request.partitions) == request.partition {
                let (head, body) = scan.document()?;
                if !head.is_tombstone {
                    put_copy_row(&mut part.rows, request.id, key, (&head, body));
                }
            }
            examined += 1;
            let is_full = part.rows.len() >= request.bytes || examined >= MAX_EXAMINED;
            let last = (is_full || started.elapsed() > MAX_TIME).then(|| key.to_vec());
            scan.advance()?;
            if last.is_some() {
                part.after = last.filter(|_| scan.key().is_some());
                break;
            }
        }
        Ok(part)
    }

    fn write(&self, reply: &mut ReplyWriter<'_>, snapshot: &NamedSnapshot) {
        reply.map(4);
        reply.text("snapshot");
        reply.text(&snapshot.name);
        reply.text("sequence");
        reply.integer(snapshot.snapshot.sequence());
        reply.text("rows");
        reply.bulk(&self.rows);
        reply.text("after");
        match &self.after {
            Some(key) => reply.bulk(key),
            None => reply.null(),
        }
    }
}
