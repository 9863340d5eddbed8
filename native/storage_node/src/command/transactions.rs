//! Transaction commands: reads at one snapshot, and writes that are committed together or not at
//! all.

use std::sync::Arc;

use rillbase_aggregates::{Add, SnapshotSelector as Asked};

use super::CommandStep;
use super::aggregates::{ROWS, find, parse};
use super::values::key;
use crate::group::CommandWrite;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::transactions::{OpenTransaction, TransactionState};
use crate::words::Words;

/// The transaction that a command refers to.
fn open(
    node: &NodeCore,
    session: &CommandSession,
    words: &mut Words<'_>,
) -> Result<Arc<OpenTransaction>> {
    let number = words.number()?;
    node.transactions.find(number, session.namespace()?.number)
}

pub(super) fn begin(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let only_reads = words.take("READONLY");
    words.end()?;
    let namespace = session.namespace()?.number;
    reply.integer(node.transactions.begin(&node.db, namespace, only_reads)?);
    Ok(CommandStep::Done)
}

pub(super) fn get(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let open = open(node, session, &mut words)?;
    let key = key(session, words.next()?)?;
    let value = match &*open.lock() {
        TransactionState::Writing(transaction, _) => transaction.get(&node.values, &key)?,
        under => node.db.get_at(&node.values, &key, under.snapshot()?)?,
    };
    match value {
        Some(value) => reply.bulk(&value),
        None => reply.null(),
    }
    Ok(CommandStep::Done)
}

pub(super) fn set(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let open = open(node, session, &mut words)?;
    let key = key(session, words.next()?)?;
    let value = words.next()?;
    open.lock().writing()?.0.put(&node.values, &key, value);
    reply.ok();
    Ok(CommandStep::Done)
}

pub(super) fn delete(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let open = open(node, session, &mut words)?;
    let key = key(session, words.next()?)?;
    open.lock().writing()?.0.delete(&node.values, &key);
    reply.ok();
    Ok(CommandStep::Done)
}

pub(super) fn add(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let open = open(node, session, &mut words)?;
    let aggregate = find(node, session, words.text()?)?;
    let add = Add::read(&aggregate, words.rest().iter().copied(), node.now())?;
    let mut under = open.lock();
    let (_, staged) = under.writing()?;
    let fresh = node.aggregates.stage(staged, &add)?;
    reply.array(fresh.len());
    fresh.iter().for_each(|new| reply.integer(u64::from(*new)));
    Ok(CommandStep::Done)
}

pub(super) fn query(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let open = open(node, session, &mut words)?;
    let aggregate = find(node, session, words.text()?)?;
    let query = parse(node, words.text()?)?;
    if query.moment != Asked::Shared {
        let text = "a transaction reads the snapshot at which it began";
        return Err(CommandRefusal::new("BADQUERY", format!("/snapshot {text}")));
    }
    let under = open.lock();
    let own = match &*under {
        TransactionState::Writing(_, staged) => Some(staged.deltas()),
        _ => None,
    };
    let mut text = String::from(ROWS);
    let seen = (under.snapshot()?, own);
    node.aggregates
        .query_json((&aggregate, &query), seen, &mut text)?;
    text.push('}');
    reply.text(&text);
    Ok(CommandStep::Done)
}

pub(super) fn commit(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
) -> Result<CommandWrite> {
    let number = words.number()?;
    let open = node
        .transactions
        .take(number, session.namespace()?.number)?;
    Ok(CommandWrite::Commit(open))
}

pub(super) fn rollback(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let number = words.number()?;
    let open = node
        .transactions
        .take(number, session.namespace()?.number)?;
    open.end();
    reply.ok();
    Ok(CommandStep::Done)
}
