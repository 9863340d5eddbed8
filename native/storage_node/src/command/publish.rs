//! Publishing and subscribing: parsing the arguments and writing the replies.

use std::sync::Arc;

use rillbase_pubsub::{
    PublicationRecord, StoreAnswer, SubscriptionRecord, TopicOperation, TopicPlace, TopicStore,
};

use super::follow::{self, REPLY_BYTES, fitting_prefix};
use crate::document;
use crate::group::CommandWrite;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::show;
use crate::sid;
use crate::time::{duration, moment};
use crate::topic::TopicEntry;
use crate::words::{Words, unknown};

/// The default duration of a subscription.
const DEFAULT_REACH: &str = "1h";
/// The maximum length of names of publications, subscriptions and users.
const MAX_NAME_BYTES: usize = 1024;
/// The maximum number of earlier publications in a reply.
const MAX_SHOWN: usize = 10_000;

/// Parses the topic and the place at the start of a command.
pub(super) fn place(
    session: &CommandSession,
    words: &mut Words<'_>,
) -> Result<(Arc<TopicEntry>, TopicPlace)> {
    let topic = session.namespace()?.topic(words.text()?)?;
    let place = topic.kind.place(words)?;
    Ok((topic, place))
}

fn named(words: &mut Words<'_>) -> Result<Vec<u8>> {
    let name = words.next()?;
    if name.len() > MAX_NAME_BYTES {
        return Err(CommandRefusal::new(
            "OUT_OF_RANGE",
            "a name may have at most 1,024 bytes",
        ));
    }
    Ok(name.to_vec())
}

pub(super) fn publish(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
) -> Result<CommandWrite> {
    let now = node.now();
    let (topic, place) = place(session, &mut words)?;
    let mut publication = PublicationRecord {
        at: now,
        ..PublicationRecord::default()
    };
    let (mut until, mut once, mut self_join) = (None, false, false);
    while !words.is_empty() {
        match words.keyword()?.as_str() {
            "DATA" => publication.data = document::from_json(words.next()?)?,
            "BSON" => publication.data = document::from_bson(words.next()?)?,
            "NAME" => publication.id = named(&mut words)?,
            "AT" => publication.at = moment(words.text()?, now)?,
            "UNTIL" => until = Some(moment(words.text()?, now)?),
            "ONCE" => once = true,
            "JOIN" => self_join = true,
            other => return Err(unknown(other.as_bytes())),
        }
    }
    publication.until = until.unwrap_or_else(|| publication.at.saturating_add(topic.retention));
    if publication.until < publication.at {
        return Err(CommandRefusal::new("OUT_OF_RANGE", "UNTIL lies before AT"));
    }
    if once && publication.id.is_empty() {
        return Err(CommandRefusal::syntax("ONCE needs a NAME"));
    }
    let operation = TopicOperation::Publish {
        place,
        publication,
        self_join,
        once,
    };
    pending(node, topic, operation, false)
}

pub(super) fn subscribe(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
) -> Result<CommandWrite> {
    let now = node.now();
    let (topic, place) = place(session, &mut words)?;
    let mut wish = SubscriptionRecord {
        from: now,
        until: now.saturating_add(duration(DEFAULT_REACH)?),
        at: now,
        ..SubscriptionRecord::default()
    };
    let (mut self_join, mut follow) = (false, false);
    while !words.is_empty() {
        match words.keyword()?.as_str() {
            "FROM" => wish.from = moment(words.text()?, now)?,
            "UNTIL" => wish.until = moment(words.text()?, now)?,
            "NAME" => wish.id = named(&mut words)?,
            "USER" => wish.user = named(&mut words)?,
            "FILTER" => wish.filter = Some(document::from_json(words.next()?)?),
            "FILTERBSON" => wish.filter = Some(document::from_bson(words.next()?)?),
            "UNSEEN" => wish.unseen_only = true,
            "JOIN" => self_join = true,
            "FOLLOW" => follow = true,
            other => return Err(unknown(other.as_bytes())),
        }
    }
    if wish.until < wish.from {
        return Err(CommandRefusal::new(
            "OUT_OF_RANGE",
            "UNTIL lies before FROM",
        ));
    }
    if follow {
        follow::needs_version_3(session)?;
    }
    let operation = TopicOperation::Subscribe {
        place,
        subscription: wish,
        self_join,
    };
    pending(node, topic, operation, follow)
}

fn pending(
    node: &NodeCore,
    topic: Arc<TopicEntry>,
    operation: TopicOperation,
    follow: bool,
) -> Result<CommandWrite> {
    node.store.check(&topic.topic(), &operation)?;
    Ok(CommandWrite::Operation {
        topic,
        operation: Box::new(operation),
        follow,
    })
}

/// Replies to an operation that is durable.
pub(super) fn answer(
    node: &NodeCore,
    session: &mut CommandSession,
    (topic, operation, follow): (&Arc<TopicEntry>, &TopicOperation, bool),
    answer: &StoreAnswer,
    reply: &mut ReplyWriter<'_>,
) -> Result<()> {
    match operation {
        TopicOperation::Publish {
            self_join, once, ..
        } => {
            if answer.is_different {
                let text = "a publication with this name has another place or other data";
                return Err(CommandRefusal::new("MISMATCH", text));
            }
            reply.map(2 + usize::from(*once) + usize::from(*self_join));
            reply.text("position");
            reply.integer(answer.sequence);
            reply.text("matched");
            reply.integer(answer.subscriptions.len() as u64);
            if *once {
                reply.text("duplicate");
                reply.integer(u64::from(answer.is_repeated));
            }
            if *self_join {
                reply.text("publications");
                let fit = fitting_prefix(&answer.publications, MAX_SHOWN, REPLY_BYTES);
                show::publications(reply, topic, fit, session.format);
            }
            Ok(())
        }
        TopicOperation::Subscribe { self_join, .. } => {
            let name = answer.name.as_ref();
            let name = name.ok_or_else(|| CommandRefusal::syntax("a subscription has no name"))?;
            if follow {
                follow::join(node, session, (topic, name), answer.sequence)?;
            }
            let fit = fitting_prefix(&answer.publications, MAX_SHOWN, REPLY_BYTES);
            reply.map(4 + usize::from(*self_join));
            reply.text("subscription");
            reply.text(&sid::text(topic, name));
            reply.text("position");
            reply.integer(answer.sequence);
            reply.text("publications");
            show::publications(reply, topic, fit, session.format);
            // RB.SUB.READ returns those that follow.
            reply.text("more");
            reply.integer(u64::from(fit.len() < answer.publications.len()));
            if *self_join {
                reply.text("subscriptions");
                let shown = answer.subscriptions.get(..MAX_SHOWN);
                let shown = shown.unwrap_or(&answer.subscriptions);
                show::subscriptions(reply, topic, shown, session.format)?;
            }
            Ok(())
        }
    }
}
