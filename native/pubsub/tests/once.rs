//! A publication that is sent twice, by a client that did not receive the reply, is published once.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::support::{DeliveryLog, Disk, Kind, RETENTION, START, publication, subscription, topic};
use rillbase_engine::Strategy;
use rillbase_pubsub::{
    DeliverySink, DeweyId, Ids, PublicationRecord, REMEMBERED, StoreAnswer, TimeWindow,
    TopicOperation, TopicPlace, TopicSpec, TopicStore,
};

fn named(name: &str) -> TopicOperation {
    TopicOperation::Publish {
        place: TopicPlace::id(DeweyId::parse("1").unwrap()),
        publication: publication(name, START, RETENTION),
        self_join: false,
        once: true,
    }
}

/// A repetition of the first publication that differs from it.
fn changed(data: &[u8], place: &str) -> TopicOperation {
    TopicOperation::Publish {
        place: TopicPlace::id(DeweyId::parse(place).unwrap()),
        publication: PublicationRecord {
            data: data.to_vec(),
            ..publication("a", START, RETENTION)
        },
        self_join: false,
        once: true,
    }
}

#[test]
fn a_different_publication_with_a_name_is_recognized_after_a_restart_and_an_expiry() {
    let disk = Disk::new(Strategy::Leveled { fanout: 4 }, 0);
    let topic = topic(Ids::Hierarchy);
    let TopicOperation::Publish { publication, .. } = named("a") else {
        panic!("a publication");
    };
    let (same, data) = (changed(&publication.data, "1"), publication.data);
    let different = [
        changed(b"other", "1"),
        changed(&data, "1.1"),
        changed(&data, ""),
    ];
    let check = |store: &dyn TopicStore| {
        let answer = store
            .run(&topic, std::slice::from_ref(&same))
            .unwrap()
            .remove(0);
        assert!(answer.is_repeated && !answer.is_different);
        for other in &different {
            let answer = store
                .run(&topic, std::slice::from_ref(other))
                .unwrap()
                .remove(0);
            assert!(answer.is_repeated && answer.is_different);
        }
    };
    {
        let store = disk.store(&disk.open(), Kind::Dual, None);
        let [first, again, other] = [named("a"), same.clone(), different[1].clone()];
        let answers = store.run(&topic, &[first, again, other]).unwrap();
        let flags = answers
            .iter()
            .map(|one| (one.is_repeated, one.is_different));
        let expected = [(false, false), (true, false), (true, true)];
        assert_eq!(flags.collect::<Vec<_>>(), expected);
        check(&*store);
    }
    disk.clock.advance(RETENTION + 1);
    let store = disk.store(&disk.open(), Kind::Dual, None);
    assert_eq!(count(&*store, &topic), 0);
    check(&*store);
}

fn publish(store: &dyn TopicStore, topic: &TopicSpec, name: &str) -> StoreAnswer {
    store.run(topic, &[named(name)]).unwrap().pop().unwrap()
}

fn count(store: &dyn TopicStore, topic: &TopicSpec) -> usize {
    let everywhere = TopicPlace::id(DeweyId::root());
    let found = store.get_data(topic, &everywhere, TimeWindow::since(0));
    found.unwrap().publications.len()
}

#[test]
fn a_name_is_published_once_whatever_happens_in_between() {
    for kind in [Kind::Dual, Kind::Two] {
        let disk = Disk::new(Strategy::Leveled { fanout: 4 }, 0);
        let topic = topic(Ids::Hierarchy);
        let sink = Arc::new(DeliveryLog::default());
        let first = {
            let db = disk.open();
            let store = disk.store(&db, kind, Some(Arc::clone(&sink) as Arc<dyn DeliverySink>));
            let wish = subscription("s", START, START + RETENTION);
            let at = TopicPlace::id(DeweyId::parse("1").unwrap());
            store.subscribe(&topic, at, wish, false).unwrap();
            let first = publish(&*store, &topic, "a");
            assert!(!first.is_repeated && first.subscriptions.len() == 1);
            let again = publish(&*store, &topic, "a");
            assert_eq!((again.is_repeated, again.sequence), (true, first.sequence));
            assert_eq!(again.subscriptions.len(), 1);
            assert_eq!(sink.pairs().len(), 1);
            first.sequence
        };
        let db = disk.open();
        let store = disk.store(&db, kind, None);
        let other = publish(&*store, &topic, "b");
        assert!(!other.is_repeated);
        db.keyspaces()
            .iter()
            .for_each(|keyspace| db.compact(keyspace).unwrap());
        assert_eq!(publish(&*store, &topic, "a").sequence, first);
        assert_eq!(count(&*store, &topic), 2);
        let elsewhere = TopicSpec { number: 8, ..topic };
        assert!(!publish(&*store, &elsewhere, "a").is_repeated);
        disk.clock.advance(REMEMBERED);
        assert!(!publish(&*store, &topic, "a").is_repeated);
    }
}

#[test]
fn a_name_that_is_twice_in_a_batch_is_published_once() {
    let disk = Disk::new(Strategy::Leveled { fanout: 4 }, 0);
    let store = disk.store(&disk.open(), Kind::Dual, None);
    let topic = topic(Ids::Hierarchy);
    let answers = store
        .run(&topic, &[named("a"), named("b"), named("a")])
        .unwrap();
    assert_eq!(answers[2].sequence, answers[0].sequence);
    let repeated: Vec<bool> = answers.iter().map(|answer| answer.is_repeated).collect();
    assert_eq!(repeated, [false, false, true]);
    assert_eq!(count(&*store, &topic), 2);
    let repeats = store.run(&topic, &[named("b"), named("a")]).unwrap();
    assert_eq!(repeats[0].sequence, answers[1].sequence);
    assert_eq!(count(&*store, &topic), 2);
}

#[test]
fn many_threads_that_send_the_same_names_publish_each_once() {
    let disk = Disk::new(Strategy::Leveled { fanout: 4 }, 2);
    let store = disk.store(&disk.open(), Kind::Dual, None);
    let topic = topic(Ids::Hierarchy);
    let published: Vec<BTreeSet<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let store = &*store;
                scope.spawn(move || {
                    let names = (0..100).map(|round| (round * (2 * thread + 1)) % 100);
                    let batches = names.map(|name| {
                        let both = [named(&name.to_string()), named(&(name ^ 1).to_string())];
                        store.run(&topic, &both).unwrap()
                    });
                    let answers = batches.flatten().filter(|answer| !answer.is_repeated);
                    answers.map(|answer| answer.sequence).collect()
                })
            })
            .collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(published.iter().map(BTreeSet::len).sum::<usize>(), 100);
    assert_eq!(count(&*store, &topic), 100);
}

#[test]
fn forgetting_a_topic_removes_only_its_data() {
    let disk = Disk::new(Strategy::Leveled { fanout: 4 }, 0);
    let db = disk.open();
    let store = disk.store(&db, Kind::Dual, None);
    let topic = topic(Ids::Hierarchy);
    let other = TopicSpec { number: 8, ..topic };
    for each in [&topic, &other] {
        publish(&*store, each, "a");
        let wish = subscription("s", START, START + RETENTION);
        let at = TopicPlace::id(DeweyId::root());
        store.subscribe(each, at, wish, false).unwrap();
    }
    store.forget(&topic).unwrap();
    let everywhere = TopicPlace::id(DeweyId::root());
    assert_eq!(count(&*store, &topic), 0);
    assert!(
        store
            .list(&topic, &everywhere)
            .unwrap()
            .subscriptions
            .is_empty()
    );
    assert!(!publish(&*store, &topic, "a").is_repeated);
    assert_eq!(count(&*store, &other), 1);
    assert_eq!(
        store.list(&other, &everywhere).unwrap().subscriptions.len(),
        1
    );
    assert!(publish(&*store, &other, "a").is_repeated);
}
