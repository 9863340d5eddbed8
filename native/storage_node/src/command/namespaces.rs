//! Namespace commands, which only the admin may use.

use std::sync::atomic::Ordering;

use super::CommandStep;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::words::Words;

pub(super) fn create(
    node: &NodeCore,
    _: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let name = words.text()?;
    if name == "admin" || name == "default" {
        return Err(CommandRefusal::syntax("this name is the admin's"));
    }
    node.catalog.create(name, words.next()?)?;
    reply.ok();
    Ok(CommandStep::Done)
}

pub(super) fn rotate(
    node: &NodeCore,
    _: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    node.catalog.rotate(words.text()?, words.next()?)?;
    node.has_revoked.store(true, Ordering::Release);
    reply.ok();
    Ok(CommandStep::Done)
}

pub(super) fn drop(
    node: &NodeCore,
    _: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let name = words.text()?;
    if node.catalog.namespace(name).is_err() {
        reply.integer(0);
        return Ok(CommandStep::Done);
    }
    let namespace = node.catalog.drop_namespace(name)?;
    node.has_revoked.store(true, Ordering::Release);
    for topic in namespace.topics() {
        node.forget(&topic)?;
    }
    for collection in namespace.collections() {
        node.collections.remove(collection)?;
    }
    node.collections.remove_claims(namespace.number)?;
    node.aggregates.forget_namespace(namespace.number)?;
    super::values::forget(node, &namespace)?;
    reply.integer(1);
    Ok(CommandStep::Done)
}

pub(super) fn list(
    node: &NodeCore,
    _: &mut CommandSession,
    _: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let all = node.catalog.namespaces();
    reply.array(all.len());
    for namespace in all {
        reply.map(2);
        reply.text("name");
        reply.text(&namespace.name);
        reply.text("topics");
        reply.integer(namespace.topics().len() as u64);
    }
    Ok(CommandStep::Done)
}
