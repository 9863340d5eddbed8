//! What keeps a node well.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Step;
use crate::name;
use crate::node::Node;
use crate::refusal::{Refusal, Result};
use crate::resp::Reply;
use crate::session::Session;
use crate::words::Words;

/// Runs long work and writes what came of it.
fn chore<T>(
    version: u8,
    work: impl FnOnce(&Arc<Node>) -> Result<T> + Send + 'static,
    answer: impl FnOnce(&mut Reply<'_>, T) + Send + 'static,
) -> Step {
    Step::Chore(Box::new(move |node| {
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, version);
        match work(node) {
            Ok(found) => answer(&mut reply, found),
            Err(refusal) => node.refuse(&refusal, &mut reply),
        }
        out
    }))
}

pub(super) fn checkpoint(
    _: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    _: &mut Reply<'_>,
) -> Result<Step> {
    let name = words.text()?;
    name::check(name)?;
    let name = name.to_owned();
    let work = move |node: &Arc<Node>| {
        let parent = node.options.directory.join("checkpoints");
        let target = parent.join(&name);
        std::fs::create_dir_all(&parent)
            .map_err(|error| Refusal::new("IO_ERROR", format!("{}: {error}", parent.display())))?;
        node.db.checkpoint(&target)?;
        Ok(target)
    };
    Ok(chore(session.version, work, |reply, target| {
        reply.text(&target.display().to_string());
    }))
}

pub(super) fn verify(
    _: &Node,
    session: &mut Session,
    _: Words<'_>,
    _: &mut Reply<'_>,
) -> Result<Step> {
    let work = |node: &Arc<Node>| Ok(node.db.verify(&mut |_, _| ())?);
    Ok(chore(session.version, work, |reply, found| {
        reply.map(3);
        for (name, count) in [
            ("tables", found.tables),
            ("entries", found.entries),
            ("bytes", found.table_bytes),
        ] {
            reply.text(name);
            reply.integer(count);
        }
    }))
}

pub(super) fn shutdown(
    node: &Node,
    _: &mut Session,
    _: Words<'_>,
    _: &mut Reply<'_>,
) -> Result<Step> {
    node.is_stopping.store(true, Ordering::Release);
    Ok(Step::Close)
}
