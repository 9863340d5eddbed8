//! The guarantees of topics, one by one.

use std::sync::Arc;

use crate::support::{
    Disk, Kind, RETENTION, START, bson, publication, publication_names, publications, subscription,
    subscriptions, topic,
};
use rillbase_engine::{Db, Strategy};
use rillbase_pubsub::{
    CellGrid, DeweyId, Error, Granularity, Ids, SubscriptionRecord, TimeWindow, TopicArea,
    TopicPlace, TopicSpec, TopicStore,
};

struct Setting {
    disk: Disk,
    db: Arc<Db>,
    store: Arc<dyn TopicStore>,
}

fn setting() -> Setting {
    let disk = Disk::new(Strategy::Leveled { fanout: 4 }, 0);
    let db = disk.open();
    let store = disk.store(&db, Kind::Dual, None);
    Setting { disk, db, store }
}

const FLAT: TopicSpec = TopicSpec {
    number: 7,
    ids: Ids::Flat,
    retention: RETENTION,
};

fn at(id: &str) -> TopicPlace {
    TopicPlace::id(DeweyId::parse(id).unwrap())
}

fn compact(db: &Db) {
    for keyspace in db.keyspaces() {
        db.compact(&keyspace).unwrap();
    }
}

#[test]
fn expired_records_are_neither_returned_nor_kept() {
    let Setting { disk, db, store } = setting();
    for number in 0..200 {
        let published = publication(&number.to_string(), START, 100);
        store.publish(&FLAT, at("1"), published, false).unwrap();
        let wish = subscription(&number.to_string(), START, START + 100);
        store.subscribe(&FLAT, at("1"), wish, false).unwrap();
    }
    disk.clock.advance(100);
    assert_eq!(
        store.list(&FLAT, &at("1")).unwrap().subscriptions.len(),
        200
    );
    disk.clock.advance(1);
    let all = (TimeWindow::since(0), START);
    let found = store
        .get_data_and_subscribers(&FLAT, &at("1"), all)
        .unwrap();
    assert!(found.publications.is_empty() && found.subscriptions.is_empty());
    compact(&db);
    let tables: u64 = db
        .stats()
        .keyspaces
        .iter()
        .flat_map(|space| &space.levels)
        .map(|level| level.bytes)
        .sum();
    assert_eq!(tables, 0, "compaction removes it");
}

#[test]
fn ending_a_newer_subscription_revives_no_older_one() {
    let Setting { disk, db, store } = setting();
    let wish = |id| subscription(id, START, START + 1000);
    let old = store
        .subscribe(&FLAT, at("1"), wish("same"), false)
        .unwrap();
    compact(&db);
    let new = store
        .subscribe(&FLAT, at("1"), wish("same"), false)
        .unwrap();
    assert!(store.unsubscribe(&FLAT, &old.name.unwrap()).unwrap());
    assert!(
        store
            .unsubscribe(&FLAT, new.name.as_ref().unwrap())
            .unwrap()
    );
    assert!(
        !store
            .unsubscribe(&FLAT, new.name.as_ref().unwrap())
            .unwrap()
    );
    compact(&db);
    disk.clock.advance(10);
    assert!(
        store
            .list(&FLAT, &at("1"))
            .unwrap()
            .subscriptions
            .is_empty()
    );
}

#[test]
fn a_lookup_of_the_newest_entries_of_a_long_list_reads_only_those() {
    let Setting { disk, db, store } = setting();
    for number in 0..5000 {
        let published = publication(&number.to_string(), START + number, RETENTION - 10_000);
        disk.clock.set(START + number);
        store.publish(&FLAT, at("1"), published, false).unwrap();
    }
    for flushed in [false, true] {
        let window = TimeWindow::since(START + 4990);
        let found = store.get_data(&FLAT, &at("1"), window).unwrap();
        assert_eq!(found.publications.len(), 10);
        assert_eq!(found.cost.entries, 11, "and the one that was too old");
        assert_eq!(found.cost.early_stops, 1);
        if !flushed {
            compact(&db);
        }
    }
    // A window in the middle begins there.
    let window = TimeWindow {
        from: START + 1000,
        to: START + 1004,
    };
    let found = store.get_data(&FLAT, &at("1"), window).unwrap();
    assert_eq!((found.publications.len(), found.cost.entries), (5, 6));
}

#[test]
fn a_lookup_below_an_id_skips_old_entries_of_each_list() {
    let Setting { disk, db, store } = setting();
    let topic = topic(Ids::Hierarchy);
    for number in 0..900 {
        let id = format!("1.{}", number % 3);
        let published = publication(&number.to_string(), START + number, RETENTION - 10_000);
        store.publish(&topic, at(&id), published, false).unwrap();
        let wish = subscription(&number.to_string(), START, START + number);
        store.subscribe(&topic, at(&id), wish, false).unwrap();
    }
    compact(&db);
    disk.clock.set(START + 897);
    let times = (TimeWindow::since(START + 897), START + 897);
    let found = store
        .get_data_and_subscribers(&topic, &at("1"), times)
        .unwrap();
    assert_eq!(publications(&found), ["897", "898", "899"]);
    assert_eq!(subscriptions(&found), ["897", "898", "899"]);
    assert_eq!(found.cost.entries, 12, "one for each list, and the next");
    assert!(found.cost.seeks <= 8, "{:?}", found.cost);
}

#[test]
fn a_subscription_with_a_filter_receives_what_matches_it() {
    let Setting { store, .. } = setting();
    let wish = SubscriptionRecord {
        filter: Some(bson("{\"kind\":\"accident\"}")),
        ..subscription("s", START, START + 1000)
    };
    let made = store.subscribe(&FLAT, at("1"), wish, false).unwrap();
    for (id, data) in [
        ("crash", bson("{\"kind\":\"accident\"}")),
        ("works", bson("{\"kind\":\"roadwork\"}")),
        ("bytes", b"no document".to_vec()),
    ] {
        let published = rillbase_pubsub::PublicationRecord {
            data,
            ..publication(id, START, 1000)
        };
        let met = store.publish(&FLAT, at("1"), published, false).unwrap();
        assert_eq!(met.subscriptions.len(), usize::from(id == "crash"), "{id}");
    }
    let found = store
        .resume(&FLAT, &made.name.unwrap(), made.sequence)
        .unwrap();
    assert_eq!(publication_names(&found.unwrap()), ["crash"]);
    for filter in [bson("{\"$wrong\":1}"), vec![1]] {
        let wish = SubscriptionRecord {
            filter: Some(filter),
            ..subscription("s", START, START + 1000)
        };
        let refused = store.subscribe(&FLAT, at("1"), wish, false);
        assert!(matches!(refused, Err(Error::Filter(_))));
    }
}

#[test]
fn a_returning_user_receives_nothing_twice() {
    let Setting { disk, store, .. } = setting();
    let enter = |cell: &str, number: u64| {
        let now = START + number;
        disk.clock.set(now);
        let wish = SubscriptionRecord {
            user: b"driver".to_vec(),
            unseen_only: true,
            ..subscription(&number.to_string(), now - 10_000, now + 10_000)
        };
        publications(&store.subscribe(&FLAT, at(cell), wish, false).unwrap())
    };
    store
        .publish(&FLAT, at("1"), publication("a", START, RETENTION), false)
        .unwrap();
    assert_eq!(enter("1", 1), ["a"]);
    let published = publication("b", START + 1, RETENTION);
    assert_eq!(
        subscriptions(&store.publish(&FLAT, at("1"), published, false).unwrap()),
        ["1"]
    );
    assert!(enter("2", 2).is_empty());
    assert!(enter("1", 3).is_empty());
    // The user now has two subscriptions; the publication is delivered to one.
    let published = publication("c", START + 3, RETENTION);
    assert_eq!(
        subscriptions(&store.publish(&FLAT, at("1"), published, false).unwrap()),
        ["1"]
    );
    // The first ones have ended, and what they received is still known.
    disk.clock.set(START + 10_900);
    let published = publication("d", START + 10_900, 5000);
    store.publish(&FLAT, at("1"), published, false).unwrap();
    assert_eq!(enter("1", 10_950), ["d"]);
}

#[test]
fn publications_of_one_topic_are_not_found_in_another() {
    let Setting { store, .. } = setting();
    let other = TopicSpec {
        number: 8,
        ..topic(Ids::Hierarchy)
    };
    store
        .publish(&FLAT, at("1"), publication("a", START, 1000), false)
        .unwrap();
    let wish = subscription("s", 0, START + 1000);
    assert!(
        store
            .subscribe(&other, at(""), wish, true)
            .unwrap()
            .publications
            .is_empty()
    );
    assert!(
        store
            .get_data(&other, &at(""), TimeWindow::since(0))
            .unwrap()
            .publications
            .is_empty()
    );
}

#[test]
fn areas_and_cells_of_a_grid_meet() {
    let Setting { store, .. } = setting();
    let topic = topic(Ids::Hierarchy);
    let grid = CellGrid::new([0.0, 0.0, 16.0, 16.0], 2, 4).unwrap();
    let place = |area: TopicArea| TopicPlace::area(&grid, area, Granularity::Variable).unwrap();
    let near = place(TopicArea::circle([4.0, 4.0], 0.5).unwrap());
    let wish = subscription("near", START, START + 1000);
    store.subscribe(&topic, near, wish, false).unwrap();
    let far = place(TopicArea::circle([3.0, 3.0], 0.5).unwrap());
    let wish = subscription("far", START, START + 1000);
    store.subscribe(&topic, far, wish, false).unwrap();
    let cell =
        TopicPlace::cell(&grid, DeweyId::parse("1.4").unwrap(), Granularity::Variable).unwrap();
    let met = store
        .publish(&topic, cell, publication("cell", START, 1000), false)
        .unwrap();
    assert_eq!(subscriptions(&met), ["near"]);
    let all = place(TopicArea::rectangle([-1.0, -1.0, 99.0, 99.0]).unwrap());
    let met = store
        .publish(&topic, all, publication("all", START, 1000), false)
        .unwrap();
    assert_eq!(subscriptions(&met), ["near", "far"]);
}

#[test]
fn a_publication_that_would_outlive_its_topics_retention_is_refused() {
    let Setting { store, .. } = setting();
    let published = publication("long", START, RETENTION + 1);
    let refused = store.publish(&FLAT, at("1"), published, false);
    assert!(matches!(refused, Err(Error::LivesTooLong)));
}
