//! Many threads publish and subscribe: each pair that should match is reported exactly once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use crate::support::{DeliveryLog, Disk, Kind, RETENTION, START, publication, subscription, topic};
use rillbase_engine::{Sequence, Strategy};
use rillbase_pubsub::{
    DeliverySink, DeweyId, Ids, StoreAnswer, TopicOperation, TopicPlace, TopicStore,
};

const THREADS: usize = 4;
const ROUNDS: usize = 120;

/// The operations of a run by their sequences, and how often each pair was reported.
#[derive(Debug, Default)]
struct Seen {
    published: BTreeMap<Sequence, DeweyId>,
    subscribed: BTreeMap<Sequence, DeweyId>,
    met: HashMap<(Sequence, Sequence), usize>,
    reported: HashSet<(Sequence, Sequence)>,
}

impl Seen {
    fn take(&mut self, operation: &TopicOperation, answer: &StoreAnswer) {
        match operation {
            TopicOperation::Publish { place, .. } => {
                self.published
                    .insert(answer.sequence, place.ids()[0].clone());
                for wish in &answer.subscriptions {
                    let pair = (answer.sequence, wish.sequence);
                    *self.met.entry(pair).or_default() += 1;
                    self.reported.insert(pair);
                }
            }
            TopicOperation::Subscribe { place, .. } => {
                self.subscribed
                    .insert(answer.sequence, place.ids()[0].clone());
                for published in &answer.publications {
                    *self
                        .met
                        .entry((published.sequence, answer.sequence))
                        .or_default() += 1;
                }
            }
        }
    }
}

fn operation(thread: usize, round: usize, part: usize) -> TopicOperation {
    let dice = (thread * 7919 + round * 104_729 + part * 31) % 24;
    let texts = ["", "1", "1.1", "1.2", "2", "2.1.1", "1.1.3", "2.1"];
    let place = TopicPlace::id(DeweyId::parse(texts[dice % 8]).unwrap());
    let name = format!("{thread}.{round}.{part}");
    if dice < 12 {
        TopicOperation::Publish {
            place,
            publication: publication(&name, START, RETENTION),
            self_join: false,
            once: false,
        }
    } else {
        TopicOperation::Subscribe {
            place,
            subscription: subscription(&name, START, START + 1),
            self_join: false,
        }
    }
}

fn work(store: &dyn TopicStore, thread: usize, seen: &Mutex<Seen>) {
    for round in 0..ROUNDS {
        let parts = 1 + (thread + round) % 3;
        let operations: Vec<TopicOperation> = (0..parts)
            .map(|part| operation(thread, round, part))
            .collect();
        let answers = store.run(&topic(Ids::Hierarchy), &operations).unwrap();
        let mut seen = seen.lock().unwrap();
        for (operation, answer) in operations.iter().zip(&answers) {
            seen.take(operation, answer);
        }
    }
}

fn meets_once(kind: Kind) {
    let disk = Disk::new(Strategy::Leveled { fanout: 4 }, 2);
    let db = disk.open();
    let sink = Arc::new(DeliveryLog::default());
    let store = disk.store(&db, kind, Some(Arc::clone(&sink) as Arc<dyn DeliverySink>));
    let seen = Mutex::new(Seen::default());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, seen) = (&*store, &seen);
            scope.spawn(move || work(store, thread, seen));
        }
    });
    let seen = seen.into_inner().unwrap();
    for (publication, id) in &seen.published {
        for (subscription, wish) in &seen.subscribed {
            let met = seen
                .met
                .get(&(*publication, *subscription))
                .copied()
                .unwrap_or(0);
            assert_eq!(
                met,
                usize::from(id.matches(wish)),
                "{publication} and {subscription}"
            );
        }
    }
    let reported = sink.pairs();
    assert!(reported.is_sorted(), "positions rise");
    assert_eq!(
        reported.iter().copied().collect::<HashSet<_>>(),
        seen.reported
    );
    assert_eq!(reported.len(), seen.reported.len());
    assert!(!reported.is_empty());
}

#[test]
fn publications_and_subscriptions_of_many_threads_meet_exactly_once_in_one_keyspace() {
    meets_once(Kind::Dual);
}

#[test]
fn publications_and_subscriptions_of_many_threads_meet_exactly_once_in_two_keyspaces() {
    meets_once(Kind::Two);
}

#[test]
fn a_subscription_that_ends_during_publishing_receives_exactly_the_earlier_publications() {
    let disk = Disk::new(Strategy::Leveled { fanout: 4 }, 2);
    let db = disk.open();
    let store = disk.store(&db, Kind::Dual, None);
    let topic = topic(Ids::Flat);
    let place = || TopicPlace::id(DeweyId::parse("1").unwrap());
    let reported = Mutex::new(Vec::new());
    for round in 0..40 {
        let wish = subscription(&format!("{round}"), START, START + 1);
        let made = store.subscribe(&topic, place(), wish, false).unwrap();
        let name = made.name.unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for part in 0..4 {
                    let published = publication(&format!("{round}.{part}"), START, RETENTION);
                    let answer = store.publish(&topic, place(), published, false).unwrap();
                    let is_reported = answer
                        .subscriptions
                        .iter()
                        .any(|subscription| subscription.sequence == made.sequence);
                    reported
                        .lock()
                        .unwrap()
                        .push((answer.sequence, is_reported));
                }
            });
            scope.spawn(|| assert!(store.unsubscribe(&topic, &name).unwrap()));
        });
        let mut reported = reported.lock().unwrap();
        reported.sort_unstable();
        let reported: Vec<bool> = reported
            .drain(..)
            .map(|(_, is_reported)| is_reported)
            .collect();
        assert!(
            reported.is_sorted_by(|earlier, later| *earlier || !*later),
            "{reported:?}"
        );
        assert_eq!(store.resume(&topic, &name, 0).unwrap(), None);
    }
}
