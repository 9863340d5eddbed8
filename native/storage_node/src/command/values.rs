//! Keys and values of a namespace: `namespace{u64} key → value`.

use std::ops::Bound;

use rillbase_engine::{WriteBatch, prefix_end};

use super::CommandStep;
use super::follow::REPLY_BYTES;
use crate::catalog::Namespace;
use crate::group::CommandWrite;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::snapshots::NamedSnapshot;
use crate::time::duration;
use crate::words::{Words, unknown};

const MAX_KEY_BYTES: usize = 4096;
const DEFAULT_COUNT: usize = 100;
const MAX_COUNT: usize = 10_000;

fn prefix(namespace: &Namespace) -> [u8; 8] {
    namespace.number.to_be_bytes()
}

pub(super) fn key(session: &CommandSession, word: &[u8]) -> Result<Vec<u8>> {
    if word.len() > MAX_KEY_BYTES {
        return Err(CommandRefusal::new(
            "OUT_OF_RANGE",
            "a key may have at most 4,096 bytes",
        ));
    }
    Ok([&prefix(session.namespace()?), word].concat())
}

pub(super) fn set(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
) -> Result<CommandWrite> {
    let key = key(session, words.next()?)?;
    let value = words.next()?.to_vec();
    let expiry = if words.take("FOR") {
        Some(node.now().saturating_add(duration(words.text()?)?))
    } else {
        None
    };
    words.end()?;
    Ok(CommandWrite::Set { key, value, expiry })
}

pub(super) fn get(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let key = key(session, words.next()?)?;
    let moment = at(node, session, &mut words)?;
    words.end()?;
    let value = match &moment {
        None => node.db.get(&node.values, &key)?,
        Some(moment) => node.db.get_at(&node.values, &key, &moment.snapshot)?,
    };
    match value {
        Some(value) => reply.bulk(&value),
        None => reply.null(),
    }
    Ok(CommandStep::Done)
}

/// The named snapshot to read at; `None` for the current state.
pub(super) fn at(
    node: &NodeCore,
    session: &CommandSession,
    words: &mut Words<'_>,
) -> Result<Option<NamedSnapshot>> {
    if !words.take("AT") {
        return Ok(None);
    }
    let namespace = session.namespace()?.number;
    node.snapshots
        .find(words.text()?, namespace, node.now())
        .map(Some)
}

fn keys(session: &CommandSession, mut words: Words<'_>) -> Result<Vec<Vec<u8>>> {
    let mut keys = Vec::with_capacity(words.count());
    while !words.is_empty() {
        keys.push(key(session, words.next()?)?);
    }
    Ok(keys)
}

pub(super) fn get_many(
    node: &NodeCore,
    session: &mut CommandSession,
    words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let keys = keys(session, words)?;
    let snapshot = node.db.snapshot();
    let asked = keys.iter().map(Vec::as_slice);
    let values = node.db.multi_get(&node.values, asked, Some(&snapshot))?;
    reply.array(values.len());
    for value in values {
        match value {
            Some(value) => reply.bulk(&value),
            None => reply.null(),
        }
    }
    Ok(CommandStep::Done)
}

pub(super) fn delete(
    node: &NodeCore,
    session: &mut CommandSession,
    words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let mut batch = WriteBatch::new();
    for key in keys(session, words)? {
        if node.db.get(&node.values, &key)?.is_some() {
            batch.delete(&node.values, &key);
        }
    }
    let count = batch.len() as u64;
    node.db.write(batch, node.options.durability)?;
    reply.integer(count);
    Ok(CommandStep::Done)
}

pub(super) fn scan(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (mut start, mut after, mut count) = (key(session, &[])?, None, DEFAULT_COUNT);
    let mut moment = None;
    while !words.is_empty() {
        if let Some(asked) = at(node, session, &mut words)? {
            moment = Some(asked);
            continue;
        }
        match words.keyword()?.as_str() {
            "PREFIX" => start = key(session, words.next()?)?,
            "AFTER" => after = Some(key(session, words.next()?)?),
            "COUNT" => count = words.number::<usize>()?.clamp(1, MAX_COUNT),
            other => return Err(unknown(other.as_bytes())),
        }
    }
    let end = prefix_end(&start);
    let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let lower = match after.as_deref() {
        Some(after) if after >= start.as_slice() => Bound::Excluded(after),
        _ => Bound::Included(start.as_slice()),
    };
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut bytes = 0;
    let mut scan = {
        let snapshot = moment.as_ref().map(|moment| &*moment.snapshot);
        node.db.scan(&node.values, lower, upper, snapshot)?
    };
    scan.first()?;
    while scan.is_valid() && entries.len() < count && bytes < REPLY_BYTES {
        let name = scan.key().get(8..).unwrap_or_default().to_vec();
        bytes += name.len() + scan.value().len();
        entries.push((name, scan.value().to_vec()));
        scan.advance()?;
    }
    reply.array(entries.len());
    for (name, value) in &entries {
        reply.array(2);
        reply.bulk(name);
        reply.bulk(value);
    }
    Ok(CommandStep::Done)
}

/// Removes all values of a namespace.
pub(super) fn forget(node: &NodeCore, namespace: &Namespace) -> Result<()> {
    let start = prefix(namespace);
    let mut batch = WriteBatch::new();
    if let Some(end) = prefix_end(&start) {
        batch.delete_range(&node.values, &start, &end);
    }
    node.db.write(batch, node.options.durability)?;
    Ok(())
}
