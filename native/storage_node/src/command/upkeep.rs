//! Maintenance commands.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Chore, CommandStep};
use crate::name;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::words::Words;

/// Runs long work and writes its result.
pub(super) fn chore<T>(
    version: u8,
    work: impl FnOnce(&Arc<NodeCore>) -> Result<T> + Send + 'static,
    answer: impl FnOnce(&mut ReplyWriter<'_>, T) + Send + 'static,
) -> CommandStep {
    CommandStep::Chore(boxed_chore(version, work, answer))
}

pub(super) fn boxed_chore<T>(
    version: u8,
    work: impl FnOnce(&Arc<NodeCore>) -> Result<T> + Send + 'static,
    answer: impl FnOnce(&mut ReplyWriter<'_>, T) + Send + 'static,
) -> Chore {
    Box::new(move |node| {
        let mut out = Vec::new();
        let mut reply = ReplyWriter::new(&mut out, version);
        match work(node) {
            Ok(report) => answer(&mut reply, report),
            Err(refusal) => node.refuse(&refusal, &mut reply),
        }
        out
    })
}

pub(super) fn checkpoint(
    _: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    _: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let name = words.text()?;
    name::check(name)?;
    let name = name.to_owned();
    let work = move |node: &Arc<NodeCore>| {
        let parent = node.options.directory.join("checkpoints");
        let target = parent.join(&name);
        std::fs::create_dir_all(&parent).map_err(|error| {
            CommandRefusal::new("IO_ERROR", format!("{}: {error}", parent.display()))
        })?;
        node.db.checkpoint(&target)?;
        Ok(target)
    };
    Ok(chore(session.version, work, |reply, target| {
        reply.text(&target.display().to_string());
    }))
}

pub(super) fn verify(
    _: &NodeCore,
    session: &mut CommandSession,
    _: Words<'_>,
    _: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let work = |node: &Arc<NodeCore>| Ok(node.db.verify(&mut |_, _| ())?);
    Ok(chore(session.version, work, |reply, report| {
        reply.map(3);
        for (name, count) in [
            ("tables", report.tables),
            ("entries", report.entries),
            ("bytes", report.table_bytes),
        ] {
            reply.text(name);
            reply.integer(count);
        }
    }))
}

pub(super) fn shutdown(
    node: &NodeCore,
    _: &mut CommandSession,
    _: Words<'_>,
    _: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    node.is_stopping.store(true, Ordering::Release);
    Ok(CommandStep::Close)
}
