//! Changes of native collections, as after-images: docs/formats/after-image.md specifies them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rillbase_collections::{CollectionFeed, Error, LoggedTransaction};
use rillbase_documents::after_image::{ImageFields, Parcel, ParcelLimits};
use rillbase_documents::id::key_hash;
use rillbase_documents::partition::covering_hashes;
use rillbase_engine::{Millis, Sequence};

use super::CommandStep;
use super::upkeep::chore;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::words::{Words, unknown};

/// How much of the log is read for a reply.
const DEFAULT_BYTES: usize = 4 << 20;
const MAX_BYTES: usize = 16 << 20;
const MAX_BLOCK_MS: u64 = 1000;
/// How often a request that waits checks whether the node is stopping.
const STOP_TICK: Duration = Duration::from_millis(50);
/// The limits of a group, unless its documents changed as one.
const GROUP_LIMITS: ParcelLimits = ParcelLimits {
    images: 250,
    bytes: 512 << 10,
};
/// The largest images of a batch, together, that are one group.
const MAX_ATOMIC_BYTES: usize = 32 << 20;

pub(super) fn info(
    node: &NodeCore,
    _: &mut CommandSession,
    _: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    reply.map(4);
    reply.text("run");
    reply.text(&node.run.id);
    reply.text("sequence");
    reply.integer(node.visible());
    let previous = node.run.previous.as_ref();
    reply.text("previous_run");
    match previous {
        Some(previous) => reply.text(&previous.id),
        None => reply.null(),
    }
    reply.text("previous_sequence");
    match previous {
        Some(previous) => reply.integer(previous.sequence),
        None => reply.null(),
    }
    Ok(CommandStep::Done)
}

pub(super) fn read(
    node: &NodeCore,
    session: &mut CommandSession,
    words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let request = FeedRequest::parse(words)?;
    let mut feed = request.feed(node)?;
    let part = FeedPart::read(node, &mut feed, request.bytes)?;
    if request.block.is_zero() || !part.groups.is_empty() {
        part.write(reply);
        *node.feed.lock() = Some(feed);
        return Ok(CommandStep::Done);
    }
    let until = Instant::now() + request.block;
    let work = move |node: &Arc<NodeCore>| {
        let part = part.or_next(node, &mut feed, (request.bytes, until))?;
        *node.feed.lock() = Some(feed);
        Ok(part)
    };
    Ok(chore(session.version, work, |reply, part| {
        part.write(reply);
    }))
}

/// A request for changes.
#[derive(Debug, Clone, Copy)]
struct FeedRequest {
    after: Sequence,
    /// The position up to which the log may drop changes.
    release: Option<Sequence>,
    bytes: usize,
    /// How long to wait if there are no changes.
    block: Duration,
}

impl FeedRequest {
    fn parse(mut words: Words<'_>) -> Result<Self> {
        let mut request = Self {
            after: words.number()?,
            release: None,
            bytes: DEFAULT_BYTES,
            block: Duration::ZERO,
        };
        while !words.is_empty() {
            match words.keyword()?.as_str() {
                "RELEASE" => request.release = Some(words.number()?),
                "BYTES" => request.bytes = words.number::<usize>()?.clamp(1, MAX_BYTES),
                "BLOCK" => {
                    let milliseconds = words.number::<u64>()?.min(MAX_BLOCK_MS);
                    request.block = Duration::from_millis(milliseconds);
                }
                other => return Err(unknown(other.as_bytes())),
            }
        }
        Ok(request)
    }

    /// The feed at the position: that of the previous reply, or a new one. It belongs to this
    /// request until the reply; after an error it is dropped.
    fn feed(&self, node: &NodeCore) -> Result<CollectionFeed> {
        let cached = node.feed.lock().take();
        let cached = cached.filter(|feed| feed.position() == self.after);
        let mut feed = if let Some(feed) = cached {
            feed
        } else if self.after > node.visible() {
            return Err(CommandRefusal::new(
                "TRUNCATED",
                "the position is beyond the end of the log",
            ));
        } else {
            node.collections.feed(self.after).map_err(refusal)?
        };
        if let Some(position) = self.release {
            feed.release(position);
        }
        Ok(feed)
    }
}

fn refusal(error: Error) -> CommandRefusal {
    match error {
        Error::Engine(rillbase_engine::Error::ChangesTruncated) => CommandRefusal::new(
            "TRUNCATED",
            "the log no longer has the changes after this position",
        ),
        error => error.into(),
    }
}

/// Images that belong together.
struct FeedGroup {
    /// The hashes that cover the keys of a batch whose documents changed as one; otherwise empty.
    hashes: Vec<i32>,
    parcel: Parcel,
}

/// A part of the changes.
struct FeedPart {
    position: Sequence,
    groups: Vec<FeedGroup>,
    /// The age of its first transaction, in milliseconds.
    oldest: Millis,
    /// How old the state at its position is, in milliseconds; 0 if it was the newest.
    behind: Millis,
    /// Whether it extends to the sequence that was visible when it was read.
    is_last: bool,
}

impl FeedPart {
    fn read(node: &NodeCore, feed: &mut CollectionFeed, bytes: usize) -> Result<Self> {
        let visible = node.visible();
        let mut packer = FeedPacker {
            node,
            groups: Vec::new(),
            parcel: Parcel::default(),
        };
        let transactions = feed.read(bytes).map_err(refusal)?;
        let age = |time| node.now().saturating_sub(time);
        let oldest = transactions.first().map_or(0, |first| age(first.time()));
        for transaction in &transactions {
            packer.add(transaction)?;
        }
        packer.end_group();
        let is_last = feed.position() >= visible;
        Ok(Self {
            position: feed.position(),
            groups: packer.groups,
            oldest,
            behind: if is_last { 0 } else { age(feed.time()) },
            is_last,
        })
    }

    /// This part if it has changes, or the next that has, or none at a time or when the node is
    /// stopping.
    fn or_next(
        mut self,
        node: &NodeCore,
        feed: &mut CollectionFeed,
        (bytes, until): (usize, Instant),
    ) -> Result<Self> {
        while self.groups.is_empty() && !node.is_stopping() {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            // Writes to anything else do not end the wait.
            if !self.is_last || feed.wait(rest.min(STOP_TICK)) {
                self = Self::read(node, feed, bytes)?;
            }
        }
        Ok(self)
    }

    fn write(&self, reply: &mut ReplyWriter<'_>) {
        reply.map(4);
        reply.text("position");
        reply.integer(self.position);
        reply.text("oldest_ms");
        reply.integer(self.oldest);
        reply.text("behind_ms");
        reply.integer(self.behind);
        reply.text("groups");
        reply.array(self.groups.len());
        for FeedGroup { hashes, parcel } in &self.groups {
            let hashes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_be_bytes()).collect();
            reply.array(3);
            reply.integer(parcel.images as u64);
            reply.bulk(&hashes);
            reply.bulk(&parcel.arguments);
        }
    }
}

/// Packs transactions into groups, in the order of the log.
struct FeedPacker<'n> {
    node: &'n NodeCore,
    groups: Vec<FeedGroup>,
    /// The group to which documents are added that changed by themselves.
    parcel: Parcel,
}

impl FeedPacker<'_> {
    fn add(&mut self, transaction: &LoggedTransaction) -> Result<()> {
        let mut images = Vec::new();
        for document in transaction.documents() {
            let document = document.map_err(refusal)?;
            // It may have been dropped since.
            let Some(identity) = self.node.catalog.identity(document.collection) else {
                continue;
            };
            images.push(ImageFields {
                xid: transaction.xid(),
                tenant: identity.tenant,
                collection: identity.collection,
                version: document.head.version,
                rules_version: i64::try_from(document.head.rules_version).unwrap_or(i64::MAX),
                created_ms: document.head.created_ms,
                updated_ms: document.head.updated_ms,
                key: document.key,
                key_hash: key_hash(document.key),
                is_deletion: document.head.is_tombstone,
                content: document.body,
            });
        }
        let bytes: usize = images.iter().map(ImageFields::size).sum();
        if transaction.is_atomic() && bytes <= MAX_ATOMIC_BYTES {
            self.end_group();
            images.iter().for_each(|image| self.parcel.add(image));
            let hashes = images.iter().map(|image| image.key_hash).collect();
            self.end_group_with(covering_hashes(hashes));
            return Ok(());
        }
        for image in &images {
            if self.parcel.is_full(image.size(), GROUP_LIMITS) {
                self.end_group();
            }
            self.parcel.add(image);
        }
        Ok(())
    }

    fn end_group(&mut self) {
        self.end_group_with(Vec::new());
    }

    fn end_group_with(&mut self, hashes: Vec<i32>) {
        if self.parcel.images > 0 {
            let parcel = std::mem::take(&mut self.parcel);
            self.groups.push(FeedGroup { hashes, parcel });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rillbase_collections::NativeDefinition;
    use rillbase_engine::{Durability, WriteBatch};
    use rillbase_query::bson::Document;
    use rillbase_query::ejson::parse_document;

    use super::*;
    use crate::options::NodeOptions;

    /// A node in a directory of its own.
    struct TestNode {
        directory: PathBuf,
        node: NodeCore,
    }

    impl TestNode {
        fn new(name: &str) -> Self {
            let name = format!("rillbase-feed-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            let options = NodeOptions::new(&directory, "the-administrators-token");
            let node = NodeCore::open(options).unwrap();
            Self { directory, node }
        }

        /// Writes more than two segments of the log, and flushes them.
        fn write_much(&self) {
            for number in 0_u64..40 {
                let mut batch = WriteBatch::new();
                batch.put(&self.node.values, &number.to_be_bytes(), &vec![7; 1 << 20]);
                self.node.db.write(batch, Durability::Buffered).unwrap();
            }
            self.node.db.flush().unwrap();
        }

        fn read_after(&self, after: Sequence) -> Result<usize> {
            let request = FeedRequest {
                after,
                release: None,
                bytes: DEFAULT_BYTES,
                block: Duration::ZERO,
            };
            let mut feed = request.feed(&self.node)?;
            let part = FeedPart::read(&self.node, &mut feed, request.bytes)?;
            Ok(part.groups.len())
        }
    }

    impl Drop for TestNode {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.directory).unwrap();
        }
    }

    #[test]
    fn nothing_is_retained_while_there_are_no_collections() {
        let test = TestNode::new("unused");
        test.write_much();
        assert_eq!(test.read_after(0), Ok(0));
        test.node.tick();
        test.write_much();
        let refused = test.read_after(0).unwrap_err();
        assert_eq!(refused.code, "TRUNCATED");
        let beyond = test.node.visible() + 1;
        assert_eq!(test.read_after(beyond).unwrap_err().code, "TRUNCATED");
        assert_eq!(test.read_after(beyond - 1), Ok(0));
    }

    #[test]
    fn changes_are_retained_while_there_is_a_collection() {
        let test = TestNode::new("used");
        let definition = parse_document(b"{\"write_version\": 1}").unwrap();
        let definition = NativeDefinition::parse(Document::trusted(definition.as_bytes()));
        test.node
            .collections
            .define(1, definition.unwrap())
            .unwrap();
        test.node.tick();
        test.write_much();
        test.write_much();
        assert_eq!(test.read_after(0), Ok(0));
    }
}
