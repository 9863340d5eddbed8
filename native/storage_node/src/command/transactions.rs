//! Transactions: reads at one moment, and writes that happen together or not at all.

use std::sync::Arc;

use rillbase_aggregates::{Add, SnapshotSelector as Asked};

use super::Step;
use super::aggregates::{ROWS, find, parse};
use super::values::key;
use crate::group::Pending;
use crate::node::Node;
use crate::refusal::{Refusal, Result};
use crate::resp::Reply;
use crate::session::Session;
use crate::transactions::{Open, Under};
use crate::words::Words;

/// The transaction that a command is about.
fn open(node: &Node, session: &Session, words: &mut Words<'_>) -> Result<Arc<Open>> {
    let number = words.number()?;
    node.transactions.find(number, session.namespace()?.number)
}

pub(super) fn begin(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let only_reads = words.take("READONLY");
    words.end()?;
    let namespace = session.namespace()?.number;
    reply.integer(node.transactions.begin(&node.db, namespace, only_reads)?);
    Ok(Step::Done)
}

pub(super) fn get(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let open = open(node, session, &mut words)?;
    let key = key(session, words.next()?)?;
    let found = match &*open.lock() {
        Under::Writing(transaction, _) => transaction.get(&node.values, &key)?,
        under => node.db.get_at(&node.values, &key, under.snapshot()?)?,
    };
    match found {
        Some(value) => reply.bulk(&value),
        None => reply.null(),
    }
    Ok(Step::Done)
}

pub(super) fn set(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let open = open(node, session, &mut words)?;
    let key = key(session, words.next()?)?;
    let value = words.next()?;
    open.lock().writing()?.0.put(&node.values, &key, value);
    reply.ok();
    Ok(Step::Done)
}

pub(super) fn delete(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let open = open(node, session, &mut words)?;
    let key = key(session, words.next()?)?;
    open.lock().writing()?.0.delete(&node.values, &key);
    reply.ok();
    Ok(Step::Done)
}

pub(super) fn add(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let open = open(node, session, &mut words)?;
    let aggregate = find(node, session, words.text()?)?;
    let add = Add::read(&aggregate, words.rest().iter().copied(), node.now())?;
    let mut under = open.lock();
    let (_, staged) = under.writing()?;
    let fresh = node.aggregates.stage(staged, &add)?;
    reply.array(fresh.len());
    fresh.iter().for_each(|new| reply.integer(u64::from(*new)));
    Ok(Step::Done)
}

pub(super) fn query(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let open = open(node, session, &mut words)?;
    let aggregate = find(node, session, words.text()?)?;
    let query = parse(node, words.text()?)?;
    if query.moment != Asked::Shared {
        let text = "a transaction sees the moment at which it began";
        return Err(Refusal::new("BADQUERY", format!("/snapshot {text}")));
    }
    let under = open.lock();
    let own = match &*under {
        Under::Writing(_, staged) => Some(staged.deltas()),
        _ => None,
    };
    let mut text = String::from(ROWS);
    let seen = (under.snapshot()?, own);
    node.aggregates
        .query_json((&aggregate, &query), seen, &mut text)?;
    text.push('}');
    reply.text(&text);
    Ok(Step::Done)
}

pub(super) fn commit(node: &Node, session: &mut Session, mut words: Words<'_>) -> Result<Pending> {
    let number = words.number()?;
    let open = node
        .transactions
        .take(number, session.namespace()?.number)?;
    Ok(Pending::Commit(open))
}

pub(super) fn rollback(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let number = words.number()?;
    let open = node
        .transactions
        .take(number, session.namespace()?.number)?;
    open.end();
    reply.ok();
    Ok(Step::Done)
}
