//! Topics of a namespace.

use rillbase_engine::Millis;

use super::CommandStep;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::time::duration;
use crate::topic::{DEFAULT_RETENTION, MAX_RETENTION, TopicKind};
use crate::words::{Words, unknown};

pub(super) fn create(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let name = words.text()?;
    let (mut kind, mut retention) = (TopicKind::Hierarchy, DEFAULT_RETENTION);
    while !words.is_empty() {
        if words.take("KIND") {
            kind = TopicKind::parse(&mut words)?;
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
    Ok(CommandStep::Done)
}

fn read_retention(words: &mut Words<'_>) -> Result<Millis> {
    let retention = duration(words.text()?)?;
    if (1..=MAX_RETENTION).contains(&retention) {
        return Ok(retention);
    }
    Err(CommandRefusal::new(
        "OUT_OF_RANGE",
        "a retention is between 1ms and 3650d",
    ))
}

pub(super) fn alter(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let name = words.text()?;
    if !words.take("RETENTION") {
        return Err(unknown(words.next()?));
    }
    let retention = read_retention(&mut words)?;
    node.catalog
        .alter_topic(session.namespace()?, name, retention)?;
    reply.ok();
    Ok(CommandStep::Done)
}

pub(super) fn info(
    _: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    session.namespace()?.topic(words.text()?)?.write(reply);
    Ok(CommandStep::Done)
}

pub(super) fn list(
    _: &NodeCore,
    session: &mut CommandSession,
    _: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let all = session.namespace()?.topics();
    reply.array(all.len());
    all.iter().for_each(|topic| topic.write(reply));
    Ok(CommandStep::Done)
}

pub(super) fn drop(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (namespace, name) = (session.namespace()?, words.text()?);
    if namespace.topic(name).is_err() {
        reply.integer(0);
        return Ok(CommandStep::Done);
    }
    let topic = node.catalog.drop_topic(namespace, name)?;
    node.forget(&topic)?;
    reply.integer(1);
    Ok(CommandStep::Done)
}
