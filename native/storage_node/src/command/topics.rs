//! Topics of a namespace.

use rillbase_engine::Millis;

use super::Step;
use crate::node::Node;
use crate::refusal::{Refusal, Result};
use crate::resp::Reply;
use crate::session::Session;
use crate::time::duration;
use crate::topic::{DEFAULT_RETENTION, Kind, MOST_RETENTION};
use crate::words::{Words, unknown};

pub(super) fn create(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let name = words.text()?;
    let (mut kind, mut retention) = (Kind::Hierarchy, DEFAULT_RETENTION);
    while !words.is_empty() {
        if words.take("KIND") {
            kind = Kind::parse(&mut words)?;
        } else if words.take("RETENTION") {
            retention = read_retention(&mut words)?;
        } else {
            return Err(unknown(words.next()?));
        }
    }
    let namespace = session.namespace()?;
    node.catalog
        .create_topic(namespace, name, (kind, retention))?;
    reply.ok();
    Ok(Step::Done)
}

fn read_retention(words: &mut Words<'_>) -> Result<Millis> {
    let retention = duration(words.text()?)?;
    if (1..=MOST_RETENTION).contains(&retention) {
        return Ok(retention);
    }
    Err(Refusal::new(
        "OUT_OF_RANGE",
        "a retention is between 1ms and 3650d",
    ))
}

pub(super) fn alter(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let name = words.text()?;
    if !words.take("RETENTION") {
        return Err(unknown(words.next()?));
    }
    let retention = read_retention(&mut words)?;
    node.catalog
        .alter_topic(session.namespace()?, name, retention)?;
    reply.ok();
    Ok(Step::Done)
}

pub(super) fn info(
    _: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    session.namespace()?.topic(words.text()?)?.write(reply);
    Ok(Step::Done)
}

pub(super) fn list(
    _: &Node,
    session: &mut Session,
    _: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let all = session.namespace()?.topics();
    reply.array(all.len());
    all.iter().for_each(|topic| topic.write(reply));
    Ok(Step::Done)
}

pub(super) fn drop(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let (namespace, name) = (session.namespace()?, words.text()?);
    if namespace.topic(name).is_err() {
        reply.integer(0);
        return Ok(Step::Done);
    }
    let topic = node.catalog.drop_topic(namespace, name)?;
    node.forget(&topic)?;
    reply.integer(1);
    Ok(Step::Done)
}
