//! Copies of native collections, part by part at one snapshot: a rebuild of live queries reads them;
//! and copies of other collections, which move here.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use rillbase_collections::{CopiedDocument, DocumentScan};
use rillbase_documents::id::{key, key_hash};
use rillbase_documents::partition::hash_partition;
use rillbase_query::bson::Document;

use super::CommandStep;
use super::collections::{MAX_EXAMINED, MAX_TIME, count, place};
use super::follow::REPLY_BYTES;
use super::upkeep::chore;
use crate::copy_row::put_copy_row;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::snapshots::{ADMIN, NamedSnapshot};
use crate::words::{Words, unknown};

const DEFAULT_BYTES: usize = 1 << 20;
const DEFAULT_COUNT: usize = 100;
const MAX_COUNT: usize = 1_000;

/// What is copied.
struct CopyRequest {
    /// The UUID that is the collection's name.
    id: u128,
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
    let part = match find(node, namespace, (name, request.id)) {
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

pub(super) fn apply(
    _: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    _: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let place = place(session, &mut words)?;
    let mut copies = Vec::new();
    while !words.is_empty() {
        copies.push(OwnedCopy::read(&mut words)?);
    }
    let keys: HashSet<&[u8]> = copies.iter().map(|copy| &*copy.key).collect();
    if keys.len() < copies.len() {
        return Err(CommandRefusal::syntax("a key occurs more than once"));
    }
    let work = move |node: &Arc<NodeCore>| {
        let copies: Vec<CopiedDocument<'_>> = copies.iter().map(OwnedCopy::document).collect();
        Ok(node.collections.store_copies(place, &copies)?)
    };
    Ok(chore(session.version, work, |reply, stored| {
        reply.integer(stored as u64);
    }))
}

pub(super) fn changed(
    _: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    _: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let place = place(session, &mut words)?;
    let count = count(&mut words, DEFAULT_COUNT, MAX_COUNT)?;
    words.end()?;
    let work = move |node: &Arc<NodeCore>| {
        Ok(node
            .collections
            .changed_documents(place, (count, REPLY_BYTES))?)
    };
    Ok(chore(session.version, work, |reply, changed| {
        reply.array(changed.len());
        for copy in &changed {
            reply.array(5);
            reply.bulk(&copy.key);
            reply.integer(u64::try_from(copy.version).unwrap_or(0));
            let head = copy.document.as_ref().map(|document| document.head);
            let head = head.unwrap_or_default();
            for time in [head.created_ms, head.updated_ms] {
                reply.integer(u64::try_from(time).unwrap_or(0));
            }
            match &copy.document {
                Some(document) => reply.bulk(&document.body),
                None => reply.null(),
            }
        }
    }))
}

pub(super) fn copied(
    _: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    _: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let place = place(session, &mut words)?;
    let mut copied = Vec::new();
    while !words.is_empty() {
        copied.push((words.next()?.to_vec(), words.number()?));
    }
    let work = move |node: &Arc<NodeCore>| {
        let copied: Vec<(&[u8], i64)> = copied
            .iter()
            .map(|(key, version)| (&**key, *version))
            .collect();
        Ok(node.collections.forget_changes(place, &copied)?)
    };
    Ok(chore(session.version, work, |reply, ()| reply.ok()))
}

/// A document of another backend.
struct OwnedCopy {
    key: Vec<u8>,
    version: i64,
    created_ms: i64,
    updated_ms: i64,
    /// Empty if it was deleted.
    body: Vec<u8>,
}

impl OwnedCopy {
    fn read(words: &mut Words<'_>) -> Result<Self> {
        let copy = Self {
            key: words.next()?.to_vec(),
            version: words.number()?,
            created_ms: words.number()?,
            updated_ms: words.number()?,
            body: words.next()?.to_vec(),
        };
        if copy.version < 1 || copy.created_ms < 0 || copy.updated_ms < 0 {
            return Err(CommandRefusal::syntax("versions and times are positive"));
        }
        if copy.key.is_empty() || !copy.has_its_key() {
            return Err(CommandRefusal::syntax(
                "the key is not that of the document",
            ));
        }
        Ok(copy)
    }

    /// Whether the body, if there is one, is a document with this key.
    fn has_its_key(&self) -> bool {
        let id = |body| Some(Document::parse(body).ok()?.get("_id").map(key));
        self.body.is_empty() || matches!(id(&self.body), Some(Some(Ok(key))) if key == self.key)
    }

    fn document(&self) -> CopiedDocument<'_> {
        CopiedDocument {
            key: &self.key,
            version: self.version,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            body: (!self.body.is_empty()).then_some(&self.body),
        }
    }
}

/// The number of a collection, by any spelling of its name.
fn find(node: &NodeCore, namespace: &str, (name, id): (&str, u128)) -> Option<u64> {
    let namespace = node.catalog.namespace(namespace).ok()?;
    let spellings = [name.to_owned(), hyphenated(id), format!("{id:032x}")];
    let mut numbers = spellings.iter().map(|name| namespace.collection(name));
    numbers.find_map(Result::ok)
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
                    let id = request.id.to_be_bytes();
                    put_copy_row(&mut part.rows, id, key, (&head, body));
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

/// Parses a UUID with or without hyphens.
fn parse_uuid(text: &str) -> Option<u128> {
    let digits = text.replace('-', "");
    let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = u128::from_str_radix(&digits, 16).ok().filter(|_| is_hex)?;
    (text == digits || text.eq_ignore_ascii_case(&hyphenated(id))).then_some(id)
}

fn hyphenated(id: u128) -> String {
    let [first, second, third, fourth] = [96, 80, 64, 48].map(|shift| id >> shift);
    format!(
        "{first:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        second & 0xffff,
        third & 0xffff,
        fourth & 0xffff,
        id & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_read_with_and_without_hyphens() {
        let id = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;
        let text = "01234567-89ab-cdef-0011-223344556677";
        assert_eq!(hyphenated(id), text);
        let plain = text.replace('-', "");
        for spelling in [text, &plain, &text.to_uppercase(), &plain.to_uppercase()] {
            assert_eq!(parse_uuid(spelling), Some(id), "{spelling}");
        }
        let shifted = "0123456-789ab-cdef-0011-223344556677";
        let short = plain.replacen('0', "", 1);
        let signed = plain.replacen('0', "+", 1);
        for other in ["goods", "", "é", shifted, &short, &signed] {
            assert_eq!(parse_uuid(other), None, "{other}");
        }
    }
}
