//! Namespaces, which only the admin manages.

use std::sync::atomic::Ordering;

use super::Step;
use crate::node::Node;
use crate::refusal::{Refusal, Result};
use crate::resp::Reply;
use crate::session::Session;
use crate::words::Words;

pub(super) fn create(
    node: &Node,
    _: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let name = words.text()?;
    if name == "admin" || name == "default" {
        return Err(Refusal::syntax("this name is the admin's"));
    }
    node.catalog.create(name, words.next()?)?;
    reply.ok();
    Ok(Step::Done)
}

pub(super) fn rotate(
    node: &Node,
    _: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    node.catalog.rotate(words.text()?, words.next()?)?;
    node.has_revoked.store(true, Ordering::Release);
    reply.ok();
    Ok(Step::Done)
}

pub(super) fn drop(
    node: &Node,
    _: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let name = words.text()?;
    if node.catalog.namespace(name).is_err() {
        reply.integer(0);
        return Ok(Step::Done);
    }
    let namespace = node.catalog.drop_namespace(name)?;
    node.has_revoked.store(true, Ordering::Release);
    for topic in namespace.topics() {
        node.forget(&topic)?;
    }
    node.aggregates.forget_namespace(namespace.number)?;
    super::values::forget(node, &namespace)?;
    reply.integer(1);
    Ok(Step::Done)
}

pub(super) fn list(
    node: &Node,
    _: &mut Session,
    _: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let all = node.catalog.namespaces();
    reply.array(all.len());
    for namespace in all {
        reply.map(2);
        reply.text("name");
        reply.text(&namespace.name);
        reply.text("topics");
        reply.integer(namespace.topics().len() as u64);
    }
    Ok(Step::Done)
}
