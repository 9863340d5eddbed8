//! Compares the indexes of native collections with the documents.

use std::sync::Arc;

use rillbase_collections::{CandidatePosition, CheckedPart};

use super::CommandStep;
use super::collections::{count, place};
use super::upkeep::chore;
use crate::node::NodeCore;
use crate::refusal::Result;
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::words::Words;

const DEFAULT_COUNT: usize = 1_000;
const MAX_COUNT: usize = 10_000;
/// Instead of an index: the documents, whose entries are looked up.
const DOCUMENTS: u32 = 0;

pub(super) fn collection(
    _: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    _: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let place = place(session, &mut words)?;
    let index = words.number::<u32>()?;
    let mut after = None;
    if words.take("AFTER") {
        after = Some(CandidatePosition {
            entry: words.next()?.to_vec(),
            document: words.next()?.to_vec(),
        });
    }
    let count = count(&mut words, DEFAULT_COUNT, MAX_COUNT)?;
    words.end()?;
    let work = move |node: &Arc<NodeCore>| {
        let collections = &node.collections;
        Ok(if index == DOCUMENTS {
            let after = after.as_ref().map(|after| &*after.document);
            collections.check_documents(place, after, count)?
        } else {
            collections.check_entries(place, index, after, count)?
        })
    };
    Ok(chore(session.version, work, |reply, part| {
        write_part(reply, &part);
    }))
}

fn write_part(reply: &mut ReplyWriter<'_>, part: &CheckedPart) {
    reply.map(3);
    reply.text("examined");
    reply.integer(part.examined as u64);
    reply.text("faults");
    reply.array(part.faults.len());
    for fault in &part.faults {
        reply.array(2);
        reply.integer(u64::from(fault.index));
        reply.bulk(&fault.document);
    }
    reply.text("after");
    match &part.after {
        Some(after) => {
            reply.array(2);
            reply.bulk(&after.entry);
            reply.bulk(&after.document);
        }
        None => reply.null(),
    }
}
