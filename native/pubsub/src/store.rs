//! What all stores do.

use std::fmt::Debug;
use std::sync::Arc;

use rillbase_engine::{Durability, Millis, Sequence};

use crate::error::Result;
use crate::look::{Cost, TimeWindow};
use crate::name::SubscriptionLocator;
use crate::place::{Ids, TopicPlace};
use crate::record::{PublicationRecord, StoredRecord, SubscriptionRecord};
use crate::turns::DeliverySink;

/// A topic of a store: ids of different topics never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicSpec {
    /// Its number.
    pub number: u64,
    /// How its ids meet.
    pub ids: Ids,
    /// How long a publication may live at most. No look-up reaches further back.
    pub retention: Millis,
}

/// How a store behaves.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// When an operation is acknowledged.
    pub durability: Durability,
    /// Takes what subscriptions meet after they were made.
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

/// How long the name of what is published once is remembered.
pub const REMEMBERED: Millis = 24 * 60 * 60 * 1000;

/// Something to do.
#[derive(Debug, Clone)]
pub enum TopicOperation {
    /// Publish, and find those who wish to be told.
    Publish {
        /// Where.
        place: TopicPlace,
        /// What.
        publication: PublicationRecord,
        /// Whether to find also the publications before it that are alive.
        self_join: bool,
        /// Whether its name is published no second time: one that says so as well came first, if
        /// it came within [`REMEMBERED`].
        once: bool,
    },
    /// Subscribe, and find what was published before.
    Subscribe {
        /// Where.
        place: TopicPlace,
        /// What about.
        subscription: SubscriptionRecord,
        /// Whether to find also the subscriptions before it that overlap it in time.
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

/// What an operation, or a look-up, found: in the order in which it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoreAnswer {
    /// The sequence of the operation, by which its record is named.
    pub sequence: Sequence,
    /// Publications.
    pub publications: Vec<StoredRecord<PublicationRecord>>,
    /// Subscriptions.
    pub subscriptions: Vec<StoredRecord<SubscriptionRecord>>,
    /// What finding them has cost.
    pub cost: Cost,
    /// The name of the subscription that was made.
    pub name: Option<SubscriptionLocator>,
    /// Nothing was published: the sequence is that of what came first by the same name.
    pub is_repeated: bool,
}

/// A store of publications and subscriptions that find one another. All methods may be called by
/// many threads at once.
pub trait TopicStore: Debug + Send + Sync {
    /// Does several operations, each in its topic; they become durable together. Each meets those
    /// before it, also those before it in the list. If one is refused, none is done.
    fn run_each(&self, operations: &[(&TopicSpec, &TopicOperation)]) -> Result<Vec<StoreAnswer>>;

    /// Does several operations in one topic.
    fn run(&self, topic: &TopicSpec, operations: &[TopicOperation]) -> Result<Vec<StoreAnswer>> {
        let each: Vec<(&TopicSpec, &TopicOperation)> =
            operations.iter().map(|one| (topic, one)).collect();
        self.run_each(&each)
    }

    /// Refuses what would be refused.
    fn check(&self, topic: &TopicSpec, operation: &TopicOperation) -> Result<()>;

    /// Forgets all that is in a topic. Nobody may use it meanwhile, nor its number afterwards.
    fn forget(&self, topic: &TopicSpec) -> Result<()>;

    /// Publishes; finds the subscriptions that it meets.
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

    /// Subscribes; finds the publications that it meets so far.
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

    /// Finds publications of a time that are alive.
    fn get_data(
        &self,
        topic: &TopicSpec,
        place: &TopicPlace,
        window: TimeWindow,
    ) -> Result<StoreAnswer>;

    /// Finds the subscriptions that a publication at a time would meet, filters aside.
    fn get_subscribers(
        &self,
        topic: &TopicSpec,
        place: &TopicPlace,
        at: Millis,
    ) -> Result<StoreAnswer>;

    /// Both, as they are at one moment: of publications a window, of subscriptions a time.
    fn get_data_and_subscribers(
        &self,
        topic: &TopicSpec,
        place: &TopicPlace,
        times: (TimeWindow, Millis),
    ) -> Result<StoreAnswer>;

    /// All subscriptions that have not ended, those that are about the future too.
    fn list(&self, topic: &TopicSpec, place: &TopicPlace) -> Result<StoreAnswer>;

    /// The subscription of a name, if it has not ended.
    fn get_subscription(
        &self,
        topic: &TopicSpec,
        name: &SubscriptionLocator,
    ) -> Result<Option<StoredRecord<SubscriptionRecord>>>;

    /// Ends a subscription. Returns whether there was one.
    fn unsubscribe(&self, topic: &TopicSpec, name: &SubscriptionLocator) -> Result<bool>;

    /// The publications behind a position that a subscription has met and that are alive still;
    /// `None` if the subscription has ended.
    fn resume(
        &self,
        topic: &TopicSpec,
        name: &SubscriptionLocator,
        position: Sequence,
    ) -> Result<Option<Vec<StoredRecord<PublicationRecord>>>>;

    /// What all look-ups have cost so far.
    fn cost(&self) -> Cost;
}
