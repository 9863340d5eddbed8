//! The interface of all stores.

use std::fmt::Debug;
use std::sync::Arc;

use rillbase_engine::{Durability, Millis, Sequence};

use crate::error::Result;
use crate::lookup::{Cost, TimeWindow};
use crate::name::SubscriptionLocator;
use crate::place::{Ids, TopicPlace};
use crate::record::{PublicationRecord, StoredRecord, SubscriptionRecord};
use crate::turns::DeliverySink;

/// A topic of a store: ids of different topics never match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicSpec {
    /// Its number.
    pub number: u64,
    /// How its ids match.
    pub ids: Ids,
    /// The maximum lifetime of a publication. Lookups reach no further back.
    pub retention: Millis,
}

/// The options of a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// When an operation is acknowledged.
    pub durability: Durability,
    /// Receives later publications for subscriptions.
    pub sink: Option<Arc<dyn DeliverySink>>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            sink: None,
        }
    }
}

/// How long the name of a publication applied once is remembered.
pub const REMEMBERED: Millis = 24 * 60 * 60 * 1000;

/// An operation on a topic.
#[derive(Debug, Clone)]
pub enum TopicOperation {
    /// Publish, and find matching subscriptions.
    Publish {
        /// The place.
        place: TopicPlace,
        /// The publication.
        publication: PublicationRecord,
        /// Whether to also find earlier live publications.
        self_join: bool,
        /// Whether the publication is applied only once: it is ignored if another one with this
        /// flag and name arrived within [`REMEMBERED`].
        once: bool,
    },
    /// Subscribe, and find earlier publications.
    Subscribe {
        /// The place.
        place: TopicPlace,
        /// The subscription.
        subscription: SubscriptionRecord,
        /// Whether to also find earlier subscriptions that overlap it in time.
        self_join: bool,
    },
}

impl TopicOperation {
    pub(crate) fn place(&self) -> &TopicPlace {
        match self {
            Self::Publish { place, .. } | Self::Subscribe { place, .. } => place,
        }
    }
}

/// The result of an operation or a lookup, in order of arrival.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoreAnswer {
    /// The sequence of the operation, which identifies its record.
    pub sequence: Sequence,
    /// Publications.
    pub publications: Vec<StoredRecord<PublicationRecord>>,
    /// Subscriptions.
    pub subscriptions: Vec<StoredRecord<SubscriptionRecord>>,
    /// The cost of finding them.
    pub cost: Cost,
    /// The name of the new subscription.
    pub name: Option<SubscriptionLocator>,
    /// Nothing was published: the sequence is that of the first publication with the name.
    pub is_repeated: bool,
    /// The first publication with the name has another place or other data.
    pub is_different: bool,
}

/// A store of publications and subscriptions that find one another. All methods are safe to call
/// concurrently.
pub trait TopicStore: Debug + Send + Sync {
    /// Runs several operations, each in its topic; they become durable together. Each matches those
    /// before it, including earlier ones in the list. If one is rejected, none is applied.
    fn run_each(&self, operations: &[(&TopicSpec, &TopicOperation)]) -> Result<Vec<StoreAnswer>>;

    /// Runs several operations in one topic.
    fn run(&self, topic: &TopicSpec, operations: &[TopicOperation]) -> Result<Vec<StoreAnswer>> {
        let each: Vec<(&TopicSpec, &TopicOperation)> =
            operations.iter().map(|one| (topic, one)).collect();
        self.run_each(&each)
    }

    /// Returns the error with which an operation would be rejected.
    fn check(&self, topic: &TopicSpec, operation: &TopicOperation) -> Result<()>;

    /// Deletes all data of a topic. The topic must not be used meanwhile, nor its number
    /// afterwards.
    fn forget(&self, topic: &TopicSpec) -> Result<()>;

    /// Publishes; returns the matching subscriptions.
    fn publish(
        &self,
        topic: &TopicSpec,
        place: TopicPlace,
        publication: PublicationRecord,
        self_join: bool,
    ) -> Result<StoreAnswer> {
        let operation = TopicOperation::Publish {
            place,
            publication,
            self_join,
            once: false,
        };
        Ok(self.run(topic, &[operation])?.pop().unwrap_or_default())
    }

    /// Subscribes; returns the matching publications so far.
    fn subscribe(
        &self,
        topic: &TopicSpec,
        place: TopicPlace,
        subscription: SubscriptionRecord,
        self_join: bool,
    ) -> Result<StoreAnswer> {
        let operation = TopicOperation::Subscribe {
            place,
            subscription,
            self_join,
        };
        Ok(self.run(topic, &[operation])?.pop().unwrap_or_default())
    }

    /// Finds live publications within a time window.
    fn get_data(
        &self,
        topic: &TopicSpec,
        place: &TopicPlace,
        window: TimeWindow,
    ) -> Result<StoreAnswer>;

    /// Finds the subscriptions that a publication at a time would match, ignoring filters.
    fn get_subscribers(
        &self,
        topic: &TopicSpec,
        place: &TopicPlace,
        at: Millis,
    ) -> Result<StoreAnswer>;

    /// Finds the publications of a window and the subscriptions at a time, in one snapshot.
    fn get_data_and_subscribers(
        &self,
        topic: &TopicSpec,
        place: &TopicPlace,
        times: (TimeWindow, Millis),
    ) -> Result<StoreAnswer>;

    /// All subscriptions that have not ended, including those for the future.
    fn list(&self, topic: &TopicSpec, place: &TopicPlace) -> Result<StoreAnswer>;

    /// The subscription with a name, if it has not ended.
    fn get_subscription(
        &self,
        topic: &TopicSpec,
        name: &SubscriptionLocator,
    ) -> Result<Option<StoredRecord<SubscriptionRecord>>>;

    /// Ends a subscription. Returns whether it existed.
    fn unsubscribe(&self, topic: &TopicSpec, name: &SubscriptionLocator) -> Result<bool>;

    /// The live publications after a position that a subscription has matched; `None` if the
    /// subscription has ended.
    fn resume(
        &self,
        topic: &TopicSpec,
        name: &SubscriptionLocator,
        position: Sequence,
    ) -> Result<Option<Vec<StoredRecord<PublicationRecord>>>>;

    /// The total cost of all lookups.
    fn cost(&self) -> Cost;
}
