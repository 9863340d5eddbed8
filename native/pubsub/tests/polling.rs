//! The polling store, compared with a model of polling.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{
    Disk, START, publication, publication_names, publications, subscription, topic,
};
use proptest::prelude::*;
use rillbase_engine::{Durability, Strategy as Compaction};
use rillbase_pubsub::{
    DeweyId, Error, Ids, PublicationRecord, RepQueries, StoreOptions, SubscriptionRecord,
    TopicPlace, TopicStore,
};

const INTERVAL: u64 = 1000;

/// A subscription that is polled for.
#[derive(Debug)]
struct Polling {
    id: u64,
    record: SubscriptionRecord,
    last: u64,
    due: u64,
    /// How many publications had been made at the last poll.
    known: usize,
}

#[derive(Debug, Clone)]
enum Action {
    Publish(u64, u64, u64),
    Subscribe(u64, u64, u64),
    Wait(u64),
    Flush,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        5 => (1..4_u64, 0..3000_u64, 0..6000_u64).prop_map(|(id, ago, life)| Action::Publish(id, ago, life)),
        3 => (1..4_u64, 0..3000_u64, 0..6000_u64).prop_map(|(id, ago, span)| Action::Subscribe(id, ago, span)),
        4 => (0..900_u64).prop_map(Action::Wait),
        1 => Just(Action::Flush),
    ]
}

fn open(disk: &Disk, db: &Arc<rillbase_engine::Db>) -> RepQueries {
    let options = StoreOptions {
        durability: Durability::Buffered,
        sink: None,
    };
    RepQueries::open(db, "polled", disk.keyspace(), (options, INTERVAL)).unwrap()
}

fn place(id: u64) -> TopicPlace {
    TopicPlace::id(DeweyId::root().child(id))
}

/// The model: what a poll at `now` finds that did not exist, or was in the future, at the last one.
fn poll_results(log: &[(u64, PublicationRecord)], polling: &Polling, now: u64) -> Vec<String> {
    let found = log.iter().enumerate().filter(|(made, (id, published))| {
        let is_new =
            published.at > polling.last || (*made >= polling.known && published.at == polling.last);
        *id == polling.id
            && is_new
            && published.at >= polling.record.from
            && published.at <= polling.record.until.min(now)
            && published.until >= now
    });
    found
        .map(|(_, (_, published))| String::from_utf8(published.id.clone()).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn polls_find_what_a_model_of_polling_finds(actions in prop::collection::vec(action(), 1..120)) {
        let disk = Disk::new(Compaction::Leveled { fanout: 2 }, 0);
        let db = disk.open();
        let store = open(&disk, &db);
        let topic = topic(Ids::Flat);
        let mut now = START;
        let mut log: Vec<(u64, PublicationRecord)> = Vec::new();
        let mut polled: BTreeMap<u64, Polling> = BTreeMap::new();
        for action in actions {
            match action {
                Action::Publish(id, ago, life) => {
                    let record = publication(&log.len().to_string(), now - ago, life);
                    store.publish(&topic, place(id), record.clone(), false).unwrap();
                    log.push((id, record));
                }
                Action::Subscribe(id, ago, span) => {
                    let record = subscription("s", now - ago, now - ago + span);
                    let answer = store.subscribe(&topic, place(id), record.clone(), false).unwrap();
                    let past = Polling { id, record: record.clone(), last: 0, due: 0, known: 0 };
                    if record.until < now {
                        prop_assert!(answer.publications.is_empty());
                        continue;
                    }
                    prop_assert_eq!(publications(&answer), poll_results(&log, &past, now));
                    if record.until > now {
                        let due = (now + INTERVAL).min(record.until);
                        let polling = Polling { id, record, last: now, due, known: log.len() };
                        polled.insert(answer.sequence, polling);
                    }
                }
                Action::Wait(by) => {
                    now += by;
                    disk.clock.advance(by);
                }
                Action::Flush => db.flush().unwrap(),
            }
            let polls = store.poll().unwrap();
            let found_now: BTreeMap<u64, Vec<String>> = polls
                .iter()
                .map(|poll| (poll.name.sequence(), publication_names(&poll.publications)))
                .collect();
            let mut expected = BTreeMap::new();
            for (number, polling) in &mut polled {
                if polling.due <= now {
                    expected.insert(*number, poll_results(&log, polling, now));
                    polling.last = now;
                    polling.known = log.len();
                    polling.due = (now + INTERVAL).min(polling.record.until);
                }
            }
            polled.retain(|_, polling| polling.record.until > polling.last);
            prop_assert_eq!(found_now, expected);
        }
    }
}

#[test]
fn messages_that_expire_between_two_polls_are_missed() {
    let disk = Disk::new(Compaction::Leveled { fanout: 2 }, 0);
    let db = disk.open();
    let store = open(&disk, &db);
    let topic = topic(Ids::Flat);
    let wish = subscription("s", START, START + 10_000);
    store.subscribe(&topic, place(1), wish, false).unwrap();
    disk.clock.advance(100);
    let brief = publication("brief", START + 100, 200);
    store.publish(&topic, place(1), brief, false).unwrap();
    let lasting = publication("lasting", START + 100, 5000);
    store.publish(&topic, place(1), lasting, false).unwrap();
    assert!(store.poll().unwrap().is_empty());
    assert_eq!(store.next_poll(), Some(START + INTERVAL));
    disk.clock.set(START + INTERVAL);
    let polls = store.poll().unwrap();
    assert_eq!(publication_names(&polls[0].publications), ["lasting"]);
}

#[test]
fn operations_that_need_stored_subscriptions_are_rejected() {
    let disk = Disk::new(Compaction::Leveled { fanout: 2 }, 0);
    let db = disk.open();
    let store = open(&disk, &db);
    let topic = topic(Ids::Flat);
    let wish = subscription("s", START, START + 10_000);
    let joined = store.subscribe(&topic, place(1), wish, true);
    assert!(matches!(joined, Err(Error::Unsupported { .. })));
    let found = store.get_subscribers(&topic, &place(1), START);
    assert!(matches!(found, Err(Error::Unsupported { .. })));
}
