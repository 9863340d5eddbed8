//! Commands on existing subscriptions: following, reading, acknowledging, ending.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rillbase_engine::Sequence;
use rillbase_pubsub::{PublicationRecord, StoredRecord, SubscriptionLocator, TopicStore};

use super::CommandStep;
use crate::acks::Ack;
use crate::group::CommandWrite;
use crate::live::Listener;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::show;
use crate::sid;
use crate::topic::TopicEntry;
use crate::words::Words;

/// The maximum number of subscriptions that a connection may follow.
const MAX_FOLLOWED: usize = 10_000;
/// The maximum number of missed publications to push; beyond it they must be read.
const MAX_MISSED: usize = 10_000;
const MAX_MISSED_BYTES: usize = 8 << 20;
/// A reply is ended after this many bytes.
pub(super) const REPLY_BYTES: usize = 8 << 20;
/// The default number of publications read.
const DEFAULT_COUNT: usize = 1000;

type LocatedSubscription = (Arc<TopicEntry>, SubscriptionLocator);

fn subscription(session: &CommandSession, words: &mut Words<'_>) -> Result<LocatedSubscription> {
    sid::parse(session.namespace()?, words.text()?)
}

fn ended() -> CommandRefusal {
    CommandRefusal::new("ENDED", "the subscription has ended, or never existed")
}

pub(super) fn needs_version_3(session: &CommandSession) -> Result<()> {
    if session.version >= 3 {
        return Ok(());
    }
    Err(CommandRefusal::new(
        "NOPROTO",
        "pushes need version 3 of the protocol: send HELLO 3, or use RB.SUB.READ",
    ))
}

/// The publications of a subscription after a position; nothing if it has ended.
fn missed(
    node: &NodeCore,
    (topic, name): (&TopicEntry, &SubscriptionLocator),
    position: Sequence,
) -> Result<Option<Vec<StoredRecord<PublicationRecord>>>> {
    Ok(node.store.resume(&topic.topic(), name, position)?)
}

fn listener(
    session: &CommandSession,
    topic: &Arc<TopicEntry>,
    name: &SubscriptionLocator,
) -> Arc<Listener> {
    let named = (sid::text(topic, name), name.sequence(), name.until());
    Listener::new(named, topic, &session.outbox, session.format)
}

/// Pushes the publications after a position to a connection, and then new ones.
pub(super) fn join(
    node: &NodeCore,
    session: &mut CommandSession,
    (topic, name): (&Arc<TopicEntry>, &SubscriptionLocator),
    position: Sequence,
) -> Result<()> {
    leave(node, session, name.sequence());
    if session.follows.len() >= MAX_FOLLOWED {
        return Err(CommandRefusal::new(
            "TOO_MANY",
            "a connection may listen to at most 10,000 subscriptions",
        ));
    }
    let listener = listener(session, topic, name);
    listener.hold();
    node.live.enter(&listener);
    let behind = missed(node, (topic, name), position)
        .and_then(|publications| publications.ok_or_else(ended));
    let behind = behind.and_then(|publications| {
        let bytes: usize = publications
            .iter()
            .map(|publication| publication.record.data.len())
            .sum();
        if publications.len() > MAX_MISSED || bytes > MAX_MISSED_BYTES {
            return Err(CommandRefusal::new(
                "TOO_FAR_BEHIND",
                "too much was missed to be pushed: read it with RB.SUB.READ",
            ));
        }
        Ok(publications)
    });
    match behind {
        Ok(behind) => {
            let sent = listener.catch_up(&behind, position);
            node.live
                .pushed
                .fetch_add(sent as u64, std::sync::atomic::Ordering::Relaxed);
            session.follows.push(listener);
            Ok(())
        }
        Err(refusal) => {
            node.live.leave(&listener);
            Err(refusal)
        }
    }
}

/// Stops pushing a subscription; returns whether the connection followed it.
fn leave(node: &NodeCore, session: &mut CommandSession, subscription: Sequence) -> bool {
    let place = session
        .follows
        .iter()
        .position(|one| one.subscription == subscription);
    let listener = place.map(|place| session.follows.swap_remove(place));
    listener.is_some_and(|listener| node.live.leave(&listener))
}

pub(super) fn resume(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    needs_version_3(session)?;
    let (topic, name) = subscription(session, &mut words)?;
    let position = if words.is_empty() {
        node.acks.position(topic.number, &name)?
    } else {
        words.number()?
    };
    join(node, session, (&topic, &name), position)?;
    reply.ok();
    Ok(CommandStep::Done)
}

pub(super) fn pause(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (_, name) = subscription(session, &mut words)?;
    let was_there = leave(node, session, name.sequence());
    reply.integer(u64::from(was_there));
    Ok(CommandStep::Done)
}

pub(super) fn unsubscribe(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (topic, name) = subscription(session, &mut words)?;
    let was_there = node.store.unsubscribe(&topic.topic(), &name)?;
    if was_there {
        node.live.end(name.sequence(), "unsubscribed");
    }
    reply.integer(u64::from(was_there));
    Ok(CommandStep::Done)
}

pub(super) fn ack(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
) -> Result<CommandWrite> {
    let (topic, name) = subscription(session, &mut words)?;
    let position = words.number()?;
    if position > node.db.snapshot().sequence() {
        return Err(CommandRefusal::new(
            "OUT_OF_RANGE",
            "no publication has this position yet",
        ));
    }
    if node
        .store
        .get_subscription(&topic.topic(), &name)?
        .is_none()
    {
        return Err(ended());
    }
    Ok(CommandWrite::Ack(Ack::new(topic.number, &name, position)))
}

/// The arguments of RB.SUB.READ.
struct SubscriptionRead {
    wait_ms: Option<u64>,
    count: usize,
    subscriptions: Vec<(LocatedSubscription, Sequence)>,
}

fn parse_read(
    node: &NodeCore,
    session: &CommandSession,
    mut words: Words<'_>,
) -> Result<SubscriptionRead> {
    let mut wanted = SubscriptionRead {
        wait_ms: None,
        count: DEFAULT_COUNT,
        subscriptions: Vec::new(),
    };
    loop {
        if words.take("BLOCK") {
            wanted.wait_ms = Some(words.number()?);
        } else if words.take("COUNT") {
            wanted.count = words.number::<usize>()?.clamp(1, MAX_MISSED);
        } else {
            break;
        }
    }
    while !words.is_empty() {
        let known = subscription(session, &mut words)?;
        let position = if words.take(">") {
            node.acks.position(known.0.number, &known.1)?
        } else {
            words.number()?
        };
        wanted.subscriptions.push((known, position));
    }
    if wanted.subscriptions.is_empty() {
        return Err(CommandRefusal::syntax(
            "RB.SUB.READ needs a subscription and a position",
        ));
    }
    Ok(wanted)
}

pub(super) fn read(
    node: &NodeCore,
    session: &mut CommandSession,
    words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let wanted = parse_read(node, session, words)?;
    if wanted.wait_ms.is_some() && session.awaits.is_empty() && !session.is_late {
        // Before the store is read, so that no publication is missed in between.
        for ((topic, name), _) in &wanted.subscriptions {
            let listener = listener(session, topic, name);
            node.live.enter(&listener);
            session.awaits.push(listener);
        }
    }
    let mut pending = Vec::new();
    for ((topic, name), position) in &wanted.subscriptions {
        match missed(node, (topic, name), *position)? {
            Some(publications) if publications.is_empty() => {}
            publications => pending.push((topic, name, publications)),
        }
    }
    if pending.is_empty() {
        let is_late = session.is_late;
        return match wanted.wait_ms {
            Some(wait_ms) if !is_late => Ok(CommandStep::Wait(deadline(wait_ms))),
            _ => {
                session.stop_waiting(&node.live);
                reply.null();
                Ok(CommandStep::Done)
            }
        };
    }
    session.stop_waiting(&node.live);
    reply.array(pending.len());
    for (topic, name, publications) in pending {
        reply.array(2);
        reply.text(&sid::text(topic, name));
        match publications {
            None => reply.null(),
            Some(publications) => {
                let fit = fitting_prefix(
                    &publications,
                    wanted.count,
                    REPLY_BYTES.saturating_sub(reply.len()),
                );
                show::publications(reply, topic, fit, session.format);
            }
        }
    }
    Ok(CommandStep::Done)
}

/// When a reader's wait ends; `None` for never.
fn deadline(wait_ms: u64) -> Option<Instant> {
    let wait = (wait_ms > 0).then(|| Duration::from_millis(wait_ms));
    wait.and_then(|wait| Instant::now().checked_add(wait))
}

/// The leading publications that fit in a reply; at least one.
pub(super) fn fitting_prefix(
    publications: &[StoredRecord<PublicationRecord>],
    count: usize,
    bytes: usize,
) -> &[StoredRecord<PublicationRecord>] {
    let mut sum = 0;
    let fits = |publications: &&StoredRecord<PublicationRecord>| {
        sum += publications.record.data.len() + 128;
        sum <= bytes
    };
    let count_that_fits = publications.iter().take(count).take_while(fits).count();
    publications
        .get(..count_that_fits.max(1).min(publications.len()))
        .unwrap_or_default()
}
