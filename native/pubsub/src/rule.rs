//! When a publication and a subscription match: the rule of all stores.

use rillbase_engine::Millis;

use crate::condition::Conditions;
use crate::place::Ids;
use crate::record::{MeetingSide, PublicationRecord, SubscriptionRecord};

/// Whether a record that lives `until` a time is alive.
pub(crate) fn is_alive(until: Millis, now: Millis) -> bool {
    until >= now
}

/// Whether a publication is within the time of a subscription.
pub(crate) fn in_time(subscription: &SubscriptionRecord, publication: &PublicationRecord) -> bool {
    (subscription.from..=subscription.until).contains(&publication.at)
}

/// Decides matches within a topic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeetingRule<'a> {
    pub(crate) ids: Ids,
    pub(crate) conditions: &'a Conditions,
}

impl MeetingRule<'_> {
    /// Whether they match if the later of them arrived at `now`.
    pub(crate) fn meets(
        &self,
        subscription: MeetingSide<'_, SubscriptionRecord>,
        publication: MeetingSide<'_, PublicationRecord>,
        now: Millis,
    ) -> bool {
        let (wish, message) = (subscription.record, publication.record);
        let passes = |filter: &Vec<u8>| self.conditions.matches(filter, &message.data);
        in_time(wish, message)
            && is_alive(wish.until, now)
            && is_alive(message.until, now)
            && subscription.extent.meets(publication.extent, self.ids)
            && wish.filter.as_ref().is_none_or(passes)
    }

    /// Whether the two matched when the later one was received.
    pub(crate) fn is_match(
        &self,
        subscription: MeetingSide<'_, SubscriptionRecord>,
        publication: MeetingSide<'_, PublicationRecord>,
    ) -> bool {
        let later = if subscription.sequence > publication.sequence {
            subscription.received
        } else {
            publication.received
        };
        self.meets(subscription, publication, later)
    }
}
