//! How native collections and their indexes are used.

use std::sync::Arc;

use rillbase_collections::CollectionUsage;

use super::CommandStep;
use super::upkeep::chore;
use crate::node::NodeCore;
use crate::refusal::Result;
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::words::Words;

pub(super) fn collection(
    _: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    _: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let number = session.namespace()?.collection(words.text()?)?;
    let work = move |node: &Arc<NodeCore>| CollectionReport::of(node, number);
    Ok(chore(session.version, work, |reply, report| {
        report.write(reply);
    }))
}

/// How a collection was used in a run of the node.
struct CollectionReport {
    run: String,
    usage: CollectionUsage,
    /// By index, as in the usage.
    block_shares: Vec<Option<u32>>,
}

impl CollectionReport {
    fn of(node: &NodeCore, number: u64) -> Result<Self> {
        let usage = node.collections.usage(number)?;
        let indexes = usage.indexes.iter();
        let shares = indexes.map(|index| node.collections.block_share(number, index.number));
        let block_shares = shares.collect::<rillbase_collections::Result<_>>()?;
        Ok(Self {
            run: node.run.id.clone(),
            usage,
            block_shares,
        })
    }

    fn write(&self, reply: &mut ReplyWriter<'_>) {
        reply.map(4);
        reply.text("run");
        reply.text(&self.run);
        reply.text("reads");
        reply.integer(self.usage.reads);
        reply.text("writes");
        reply.integer(self.usage.writes);
        reply.text("indexes");
        reply.array(self.usage.indexes.len());
        for (index, share) in self.usage.indexes.iter().zip(&self.block_shares) {
            reply.map(7);
            for (name, figure) in [
                ("number", u64::from(index.number)),
                ("lookups", index.lookups),
                ("newest", index.newest),
                ("ordered", index.ordered),
                ("counted", index.counted),
                ("entries", index.entries),
            ] {
                reply.text(name);
                reply.integer(figure);
            }
            reply.text("block_share");
            match share {
                Some(share) => reply.integer(u64::from(*share)),
                None => reply.null(),
            }
        }
    }
}
