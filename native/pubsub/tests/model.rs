//! Random histories against a naive matcher: both stores that answer at once, ids and areas, with
//! flushes, compactions and restarts in between.

use std::sync::Arc;

use crate::support::model::{Cover, Model};
use crate::support::{
    Disk, Kind, START, bson, publication_names, publications, subscriptions, topic,
};
use proptest::prelude::*;
use rillbase_engine::{Db, Strategy as Compaction};
use rillbase_pubsub::{
    CellGrid, DeweyId, Granularity, Ids, PublicationRecord, SubscriptionLocator,
    SubscriptionRecord, TimeWindow, TopicArea, TopicPlace, TopicSpec, TopicStore,
};

/// How areas are represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Flat,
    Nodes,
    Cells(Granularity),
    Areas(Granularity),
}

#[derive(Debug, Clone)]
enum Action {
    Publish(Cover, u64, u64, i32),
    Subscribe(Cover, (u64, u64), u8, Option<i32>, bool),
    Unsubscribe(usize),
    Resume(usize),
    Look(Cover, u64, u64),
    Wait(u64),
    Flush,
    Compact,
    Reopen,
}

fn grid() -> CellGrid {
    CellGrid::new([0.0, 0.0, 16.0, 16.0], 2, 3).unwrap()
}

fn id(numbers: &[u64]) -> DeweyId {
    numbers
        .iter()
        .fold(DeweyId::root(), |id, number| id.child(*number))
}

fn place(mode: Mode, cover: &Cover) -> TopicPlace {
    match (mode, cover) {
        (Mode::Cells(granularity), Cover::Node(numbers)) => {
            TopicPlace::cell(&grid(), id(numbers), granularity).unwrap()
        }
        (_, Cover::Flat(numbers) | Cover::Node(numbers)) => TopicPlace::id(id(numbers)),
        (Mode::Areas(granularity), Cover::Circle(x, y, radius)) => {
            let circle = TopicArea::circle([*x, *y], *radius).unwrap();
            TopicPlace::area(&grid(), circle, granularity).unwrap()
        }
        (Mode::Areas(granularity), Cover::Box(w, s, e, n)) => {
            let sides = TopicArea::rectangle([*w, *s, *e, *n]).unwrap();
            TopicPlace::area(&grid(), sides, granularity).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

fn ids(mode: Mode) -> Ids {
    match mode {
        Mode::Flat | Mode::Cells(Granularity::Fixed) | Mode::Areas(Granularity::Fixed) => Ids::Flat,
        _ => Ids::Hierarchy,
    }
}

/// A store that is tested, and where it comes from.
struct Tested {
    disk: Disk,
    kind: Kind,
    mode: Mode,
    db: Arc<Db>,
    store: Arc<dyn TopicStore>,
    names: Vec<SubscriptionLocator>,
}

impl Tested {
    fn new(kind: Kind, mode: Mode, strategy: Compaction) -> Self {
        let disk = Disk::new(strategy, 0);
        let db = disk.open();
        let store = disk.store(&db, kind, None);
        Self {
            disk,
            kind,
            mode,
            db,
            store,
            names: Vec::new(),
        }
    }

    fn topic(&self) -> TopicSpec {
        topic(ids(self.mode))
    }

    fn place(&self, cover: &Cover) -> TopicPlace {
        place(self.mode, cover)
    }

    /// Closes the database and opens it again.
    fn reopen(self) -> Self {
        drop(self.store);
        Arc::into_inner(self.db).unwrap().close().unwrap();
        let db = self.disk.open();
        let store = self.disk.store(&db, self.kind, None);
        Self { db, store, ..self }
    }

    fn compact(&self) {
        for keyspace in self.db.keyspaces() {
            self.db.compact(&keyspace).unwrap();
        }
    }
}

/// Applies actions to the store and the model, and compares them.
struct Game {
    model: Model,
    now: u64,
    published: usize,
    least: Vec<Option<i32>>,
}

impl Game {
    fn publish(&mut self, tested: &Tested, cover: &Cover, (ago, life, number): (u64, u64, i32)) {
        let record = PublicationRecord {
            at: self.now - ago,
            until: self.now - ago + life,
            id: format!("P{}", self.published).into_bytes(),
            data: bson(&format!("{{\"n\":{number}}}")),
        };
        self.published += 1;
        let place = tested.place(cover);
        let answer = tested
            .store
            .publish(&tested.topic(), place, record.clone(), true)
            .unwrap();
        let (expected, alike) = self
            .model
            .publish(cover.clone(), (record, number), self.now);
        assert_eq!(subscriptions(&answer), expected, "told");
        assert_eq!(publications(&answer), alike, "self-join");
    }

    fn subscribe(&mut self, tested: &mut Tested, cover: &Cover, record: SubscriptionRecord) {
        let least = self.least.last().copied().flatten();
        let place = tested.place(cover);
        let answer = tested
            .store
            .subscribe(&tested.topic(), place, record.clone(), true)
            .unwrap();
        let (expected, alike) = self
            .model
            .subscribe(cover.clone(), (record, least), self.now);
        assert_eq!(publications(&answer), expected, "told");
        assert_eq!(subscriptions(&answer), alike, "self-join");
        let name = answer.name.unwrap();
        tested
            .names
            .push(SubscriptionLocator::from_bytes(&name.to_bytes()).unwrap());
    }

    fn look(&self, tested: &Tested, cover: &Cover, (ago, span): (u64, u64)) {
        let (topic, place) = (tested.topic(), tested.place(cover));
        let window = TimeWindow {
            from: self.now - ago,
            to: self.now - ago + span,
        };
        let both = tested
            .store
            .get_data_and_subscribers(&topic, &place, (window, window.from));
        let both = both.unwrap();
        let data = self.model.data(cover, window.from, window.to, self.now);
        assert_eq!(publications(&both), data);
        assert_eq!(
            publications(&tested.store.get_data(&topic, &place, window).unwrap()),
            data
        );
        let subscribers = self.model.subscribers(cover, Some(window.from), self.now);
        assert_eq!(subscriptions(&both), subscribers);
        let alone = tested
            .store
            .get_subscribers(&topic, &place, window.from)
            .unwrap();
        assert_eq!(subscriptions(&alone), subscribers);
        let all = tested.store.list(&topic, &place).unwrap();
        assert_eq!(
            subscriptions(&all),
            self.model.subscribers(cover, None, self.now)
        );
    }

    fn act(&mut self, mut tested: Tested, action: &Action) -> Tested {
        match action {
            Action::Publish(cover, ago, life, number) => {
                self.publish(&tested, cover, (*ago, *life, *number));
            }
            Action::Subscribe(cover, (ago, span), user, least, unseen_only) => {
                let record = SubscriptionRecord {
                    from: self.now - ago,
                    until: self.now - ago + span,
                    at: self.now,
                    id: format!("S{}", tested.names.len()).into_bytes(),
                    user: vec![*user],
                    filter: least.map(|least| bson(&format!("{{\"n\":{{\"$gte\":{least}}}}}"))),
                    unseen_only: *unseen_only,
                };
                self.least.push(*least);
                self.subscribe(&mut tested, cover, record);
            }
            Action::Unsubscribe(which) if !tested.names.is_empty() => {
                let which = which % tested.names.len();
                let name = &tested.names[which];
                let was = tested.store.unsubscribe(&tested.topic(), name).unwrap();
                assert_eq!(was, self.model.unsubscribe(which, self.now));
            }
            Action::Resume(which) if !tested.names.is_empty() => {
                let which = which % tested.names.len();
                let found = tested
                    .store
                    .resume(&tested.topic(), &tested.names[which], 0)
                    .unwrap();
                let found = found.map(|found| publication_names(&found));
                assert_eq!(found, self.model.deliveries(which, self.now));
            }
            Action::Look(cover, ago, span) => self.look(&tested, cover, (*ago, *span)),
            Action::Wait(by) => {
                self.now += by;
                tested.disk.clock.advance(*by);
            }
            Action::Flush => tested.db.flush().unwrap(),
            Action::Compact => tested.compact(),
            Action::Reopen => return tested.reopen(),
            Action::Unsubscribe(_) | Action::Resume(_) => {}
        }
        tested
    }
}

fn play(kind: Kind, mode: Mode, strategy: Compaction, actions: &[Action]) {
    let mut tested = Tested::new(kind, mode, strategy);
    let mut game = Game {
        model: Model::default(),
        now: START,
        published: 0,
        least: Vec::new(),
    };
    for action in actions {
        tested = game.act(tested, action);
    }
}

fn nodes() -> impl Strategy<Value = Vec<u64>> + Clone {
    prop::collection::vec(1..=4_u64, 0..=3)
}

fn areas() -> impl Strategy<Value = Cover> + Clone {
    // With multiples of a quarter, points lie on lines between cells, and areas touch.
    let at = || (-4..=68_i32).prop_map(|quarters| f64::from(quarters) / 4.0);
    let size = || (0..=12_i32).prop_map(|quarters| f64::from(quarters) / 4.0);
    prop_oneof![
        (at(), at(), size()).prop_map(|(x, y, radius)| Cover::Circle(x, y, radius)),
        (at(), at(), size(), size()).prop_map(|(x, y, w, h)| Cover::Box(x, y, x + w, y + h)),
    ]
}

fn actions(cover: impl Strategy<Value = Cover> + Clone) -> impl Strategy<Value = Vec<Action>> {
    let ago = 0..12_000_u64;
    let publish = (cover.clone(), ago.clone(), 0..20_000_u64, 0..4);
    let wish = (ago.clone(), 0..25_000_u64);
    let least = prop::option::weighted(0.3, 0..4);
    let subscribe = (cover.clone(), wish, 0..3_u8, least, any::<bool>());
    let look = (cover, ago, 0..15_000_u64);
    let action = prop_oneof![
        8 => publish.prop_map(|(cover, ago, life, n)| Action::Publish(cover, ago, life, n)),
        8 => subscribe.prop_map(|(cover, times, user, least, unseen)| {
            Action::Subscribe(cover, times, user, least, unseen)
        }),
        2 => any::<usize>().prop_map(Action::Unsubscribe),
        3 => any::<usize>().prop_map(Action::Resume),
        3 => look.prop_map(|(cover, ago, span)| Action::Look(cover, ago, span)),
        4 => (0..4_000_u64).prop_map(Action::Wait),
        2 => Just(Action::Flush),
        1 => Just(Action::Compact),
        1 => Just(Action::Reopen),
    ];
    prop::collection::vec(action, 1..120)
}

fn strategies() -> impl Strategy<Value = Compaction> {
    prop_oneof![
        Just(Compaction::Leveled { fanout: 2 }),
        Just(Compaction::SizeTiered { runs: 2 }),
        Just(Compaction::TimeWindow {
            window: 5000,
            runs: 2
        }),
    ]
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("PUBSUB_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(24),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn flat_ids_are_answered_as_the_model_does(
        actions in actions(nodes().prop_map(Cover::Flat)),
        strategy in strategies(),
    ) {
        play(Kind::Dual, Mode::Flat, strategy, &actions);
        play(Kind::Two, Mode::Flat, strategy, &actions);
    }

    #[test]
    fn ids_of_a_hierarchy_are_answered_as_the_model_does(
        actions in actions(nodes().prop_map(Cover::Node)),
        strategy in strategies(),
    ) {
        play(Kind::Dual, Mode::Nodes, strategy, &actions);
        play(Kind::Two, Mode::Nodes, strategy, &actions);
    }

    #[test]
    fn cells_are_answered_alike_whatever_their_granularity(
        actions in actions(nodes().prop_map(Cover::Node)),
        strategy in strategies(),
    ) {
        play(Kind::Dual, Mode::Cells(Granularity::Variable), strategy, &actions);
        play(Kind::Dual, Mode::Cells(Granularity::Fixed), strategy, &actions);
        play(Kind::Two, Mode::Cells(Granularity::Fixed), strategy, &actions);
    }

    #[test]
    fn areas_are_answered_alike_whatever_their_granularity(
        actions in actions(areas()),
        strategy in strategies(),
    ) {
        play(Kind::Dual, Mode::Areas(Granularity::Variable), strategy, &actions);
        play(Kind::Dual, Mode::Areas(Granularity::Fixed), strategy, &actions);
        play(Kind::Dual, Mode::Areas(Granularity::Single), strategy, &actions);
        play(Kind::Two, Mode::Areas(Granularity::Variable), strategy, &actions);
    }
}
