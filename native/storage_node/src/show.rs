//! Publications and subscriptions in replies.

use rillbase_pubsub::{PublicationRecord, StoredRecord, SubscriptionLocator, SubscriptionRecord};

use crate::document::{self, Format};
use crate::refusal::Result;
use crate::resp::ReplyWriter;
use crate::sid;
use crate::topic::TopicEntry;

pub(crate) fn publication(
    reply: &mut ReplyWriter<'_>,
    topic: &TopicEntry,
    publication: &StoredRecord<PublicationRecord>,
    format: Format,
) {
    reply.map(6);
    reply.text("position");
    reply.integer(publication.sequence);
    reply.text("name");
    reply.bulk(&publication.record.id);
    reply.text("at");
    reply.integer(publication.record.at);
    reply.text("until");
    reply.integer(publication.record.until);
    reply.text("place");
    topic.kind.write(reply, &publication.extent);
    reply.text("data");
    document::write(reply, &publication.record.data, format);
}

pub(crate) fn publications(
    reply: &mut ReplyWriter<'_>,
    topic: &TopicEntry,
    all: &[StoredRecord<PublicationRecord>],
    format: Format,
) {
    reply.array(all.len());
    all.iter()
        .for_each(|one| publication(reply, topic, one, format));
}

pub(crate) fn subscription(
    reply: &mut ReplyWriter<'_>,
    topic: &TopicEntry,
    wish: &StoredRecord<SubscriptionRecord>,
    format: Format,
) -> Result<()> {
    let name = SubscriptionLocator::of(wish, &topic.kind.ids_of(&wish.extent)?);
    let record = &wish.record;
    reply.map(9);
    reply.text("subscription");
    reply.text(&sid::text(topic, &name));
    reply.text("position");
    reply.integer(wish.sequence);
    reply.text("name");
    reply.bulk(&record.id);
    reply.text("user");
    reply.bulk(&record.user);
    reply.text("from");
    reply.integer(record.from);
    reply.text("until");
    reply.integer(record.until);
    reply.text("place");
    topic.kind.write(reply, &wish.extent);
    reply.text("filter");
    document::write(reply, record.filter.as_deref().unwrap_or_default(), format);
    reply.text("unseen");
    reply.integer(u64::from(record.unseen_only));
    Ok(())
}

pub(crate) fn subscriptions(
    reply: &mut ReplyWriter<'_>,
    topic: &TopicEntry,
    all: &[StoredRecord<SubscriptionRecord>],
    format: Format,
) -> Result<()> {
    reply.array(all.len());
    all.iter()
        .try_for_each(|one| subscription(reply, topic, one, format))
}
