//! Commands that list the contents of a topic.

use rillbase_engine::{Millis, Sequence};
use rillbase_pubsub::{StoredRecord, TimeWindow, TopicStore};

use super::CommandStep;
use super::follow::{REPLY_BYTES, fitting_prefix};
use super::publish::place;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::show;
use crate::time::moment;
use crate::words::{Words, unknown};

const DEFAULT_COUNT: usize = 1000;
const MAX_COUNT: usize = 10_000;

/// The bounds of a listing.
struct ListingBounds {
    window: TimeWindow,
    at: Millis,
    after: Sequence,
    count: usize,
}

impl ListingBounds {
    fn read(node: &NodeCore, mut words: Words<'_>, allowed: &[&str]) -> Result<Self> {
        let now = node.now();
        let mut bounds = Self {
            window: TimeWindow::since(0),
            at: now,
            after: 0,
            count: DEFAULT_COUNT,
        };
        while !words.is_empty() {
            let keyword = words.keyword()?;
            if !allowed.contains(&keyword.as_str()) {
                return Err(unknown(keyword.as_bytes()));
            }
            match keyword.as_str() {
                "FROM" => bounds.window.from = moment(words.text()?, now)?,
                "UNTIL" => bounds.window.to = moment(words.text()?, now)?,
                "AT" => bounds.at = moment(words.text()?, now)?,
                "AFTER" => bounds.after = words.number()?,
                _ => bounds.count = words.number()?,
            }
        }
        if !(1..=MAX_COUNT).contains(&bounds.count) {
            return Err(CommandRefusal::new(
                "OUT_OF_RANGE",
                "COUNT is between 1 and 10,000",
            ));
        }
        Ok(bounds)
    }

    /// The requested number of items after a position, in order.
    fn page<'a, T>(&self, records: &'a [StoredRecord<T>]) -> &'a [StoredRecord<T>] {
        let from = records.partition_point(|one| one.sequence <= self.after);
        let rest = records.get(from..).unwrap_or_default();
        rest.get(..self.count.min(rest.len())).unwrap_or_default()
    }
}

pub(super) fn data(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (topic, place) = place(session, &mut words)?;
    let bounds = ListingBounds::read(node, words, &["FROM", "UNTIL", "AFTER", "COUNT"])?;
    let answer = node.store.get_data(&topic.topic(), &place, bounds.window)?;
    let page = bounds.page(&answer.publications);
    let fit = fitting_prefix(page, bounds.count, REPLY_BYTES);
    show::publications(reply, &topic, fit, session.format);
    Ok(CommandStep::Done)
}

pub(super) fn subscribers(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (topic, place) = place(session, &mut words)?;
    let bounds = ListingBounds::read(node, words, &["AT", "AFTER", "COUNT"])?;
    let answer = node
        .store
        .get_subscribers(&topic.topic(), &place, bounds.at)?;
    let page = bounds.page(&answer.subscriptions);
    show::subscriptions(reply, &topic, page, session.format)?;
    Ok(CommandStep::Done)
}

pub(super) fn both(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (topic, place) = place(session, &mut words)?;
    let bounds = ListingBounds::read(node, words, &["FROM", "UNTIL", "AT", "COUNT"])?;
    let times = (bounds.window, bounds.at);
    let answer = node
        .store
        .get_data_and_subscribers(&topic.topic(), &place, times)?;
    reply.map(2);
    reply.text("publications");
    let page = bounds.page(&answer.publications);
    let fit = fitting_prefix(page, bounds.count, REPLY_BYTES);
    show::publications(reply, &topic, fit, session.format);
    reply.text("subscriptions");
    let page = bounds.page(&answer.subscriptions);
    show::subscriptions(reply, &topic, page, session.format)?;
    Ok(CommandStep::Done)
}

pub(super) fn all(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let mut ahead = words.clone();
    ahead.next()?;
    let has_place = ["ID", "CELL", "CIRCLE", "BOX"]
        .iter()
        .any(|word| ahead.take(word));
    let (entry, (topic, place)) = if has_place {
        let (entry, place) = place(session, &mut words)?;
        let topic = entry.topic();
        (entry, (topic, place))
    } else {
        let entry = session.namespace()?.topic(words.text()?)?;
        let everywhere = entry.everywhere()?;
        (entry, everywhere)
    };
    let bounds = ListingBounds::read(node, words, &["AFTER", "COUNT"])?;
    let answer = node.store.list(&topic, &place)?;
    let page = bounds.page(&answer.subscriptions);
    show::subscriptions(reply, &entry, page, session.format)?;
    Ok(CommandStep::Done)
}
