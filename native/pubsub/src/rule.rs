//! When a publication and a subscription match: the rule of all stores.

use rillbase_engine::Millis;

use crate::condition::Conditions;
use crate::place::Ids;
use crate::record::{MatchSide, PublicationRecord, SubscriptionRecord};

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
pub(crate) struct MatchRule<'a> {
    pub(crate) ids: Ids,
    pub(crate) conditions: &'a Conditions,
}

impl MatchRule<'_> {
    /// Whether they match if the later of them arrived at `now`.
    pub(crate) fn matches(
        &self,
        subscription: MatchSide<'_, SubscriptionRecord>,
        publication: MatchSide<'_, PublicationRecord>,
        now: Millis,
    ) -> bool {
        let passes = |filter: &Vec<u8>| self.conditions.matches(filter, &publication.record.data);
        in_time(subscription.record, publication.record)
            && is_alive(subscription.record.until, now)
            && is_alive(publication.record.until, now)
            && subscription.extent.matches(publication.extent, self.ids)
            && subscription.record.filter.as_ref().is_none_or(passes)
    }

    /// Whether the two matched when the later one was received.
    pub(crate) fn is_match(
        &self,
        subscription: MatchSide<'_, SubscriptionRecord>,
        publication: MatchSide<'_, PublicationRecord>,
    ) -> bool {
        let later = if subscription.sequence > publication.sequence {
            subscription.received
        } else {
            publication.received
        };
        self.matches(subscription, publication, later)
    }
}
