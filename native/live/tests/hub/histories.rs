//! Random histories: in every case, a client that applies its events has the same as the database,
//! and receives no version twice.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use rillbase_documents::id::key_hash;
use rillbase_live::hub::{ClientOptions, OutboxBounds};
use rillbase_live::message::{AfterImage, NodeEvent, NotificationSource, QueryDefinition};
use rillbase_query::bson::ValueRef;

use super::desk::{Desk, F0, F1, Is, number, parsed, text};
use crate::common::{image, query, row, until};

#[derive(Debug, Clone)]
enum Act {
    Write(u8, Option<i8>),
    Batch(Vec<(u8, Option<i8>)>),
    /// A filter node handles this many of its entries.
    Handle(bool, u8),
    Rebuild(bool),
    Register,
    /// A client reads this many frames.
    Take(u8),
    Attach(bool),
    /// A client is disconnected and reconnects with its token.
    Return,
    Pass(u16),
}

fn act() -> impl Strategy<Value = Act> {
    let write = || (0..6_u8, proptest::option::weighted(0.8, -3..6_i8));
    prop_oneof![
        6 => write().prop_map(|(id, n)| Act::Write(id, n)),
        2 => proptest::collection::vec(write(), 2..5).prop_map(Act::Batch),
        8 => (any::<bool>(), 1..4_u8).prop_map(|(node, count)| Act::Handle(node, count)),
        1 => any::<bool>().prop_map(Act::Rebuild),
        1 => Just(Act::Register),
        4 => (0..20_u8).prop_map(Act::Take),
        1 => any::<bool>().prop_map(Act::Attach),
        1 => Just(Act::Return),
        2 => (0..400_u16).prop_map(Act::Pass),
    ]
}

/// The state of a client according to its frames.
#[derive(Debug, Default)]
struct Reader {
    rows: BTreeMap<String, i64>,
    highest: BTreeMap<String, i64>,
    seq: i64,
    token: Option<String>,
    group: Vec<(String, String, i64)>,
}

impl Reader {
    fn read(&mut self, frame: &str) {
        let whole = parsed(frame);
        let whole = whole.as_ref();
        let kind = text(whole.get("type")).unwrap();
        if let Some(token) = text(whole.get("resume")) {
            self.token = Some(token);
        }
        match kind.as_str() {
            "reset" => self.seq = 0,
            "result" => {
                if number(whole.get("part")) == Some(0) {
                    self.rows.clear();
                }
                let Some(ValueRef::Array(items)) = whole.get("items") else {
                    panic!("{frame}");
                };
                for item in items.iter() {
                    let ValueRef::Document(item) = item else {
                        panic!("{frame}");
                    };
                    let version = number(item.get("version")).unwrap();
                    let id = text(item.get("id")).unwrap();
                    let highest = self.highest.entry(id.clone()).or_default();
                    assert!(version >= *highest, "fell: {frame}");
                    *highest = version;
                    self.rows.insert(id, version);
                }
            }
            "event" => self.event(frame),
            _ => {}
        }
    }

    fn event(&mut self, frame: &str) {
        let whole = parsed(frame);
        let whole = whole.as_ref();
        self.seq += 1;
        assert_eq!(number(whole.get("seq")), Some(self.seq), "{frame}");
        let version = number(whole.get("version")).unwrap();
        let event = (
            text(whole.get("match")).unwrap(),
            text(whole.get("key")).unwrap(),
            version,
        );
        self.group.push(event);
        if whole.get("resume").is_none() {
            return;
        }
        for (kind, key, version) in std::mem::take(&mut self.group) {
            let highest = self.highest.entry(key.clone()).or_default();
            let left = kind == "remove" && version == *highest;
            assert!(
                version > *highest || left,
                "{kind} {key}@{version} after {highest}"
            );
            *highest = version;
            let before = match kind.as_str() {
                "remove" => self.rows.remove(&key),
                _ => self.rows.insert(key.clone(), version),
            };
            assert_eq!(before.is_some(), kind != "add", "{frame}");
        }
    }
}

struct World {
    desk: Desk,
    q: QueryDefinition,
    /// By id: version and, unless it is deleted, the number.
    documents: BTreeMap<String, (u64, Option<i8>)>,
    next: u64,
    /// The entries that the nodes have not handled.
    streams: [VecDeque<AfterImage>; 2],
    members: [BTreeMap<String, u64>; 2],
    readers: BTreeMap<u64, Reader>,
    clients: u64,
}

fn partition(id: &str) -> usize {
    usize::try_from(key_hash(id.as_bytes()) % 2).unwrap()
}

fn node(at: usize) -> NotificationSource {
    if at == 0 { F0 } else { F1 }
}

impl World {
    fn new() -> Self {
        let bounds = OutboxBounds {
            frames: 8,
            bytes: 1_000_000,
            ..OutboxBounds::default()
        };
        let q = query("q", "{}");
        let mut world = Self {
            desk: Desk::bounded(bounds),
            q,
            documents: BTreeMap::new(),
            next: 10,
            streams: Default::default(),
            members: Default::default(),
            readers: BTreeMap::new(),
            clients: 0,
        };
        world.attach(None, ClientOptions::default());
        let q = world.q.clone();
        world.desk.open(&q, world.next, &[]);
        world
    }

    fn attach(&mut self, resume: Option<(Reader, String)>, options: ClientOptions) {
        self.clients += 1;
        let (reader, token) =
            resume.map_or((None, None), |(reader, token)| (Some(reader), Some(token)));
        let q = self.q.clone();
        self.desk.attach_with(self.clients, &q, options, token);
        self.readers
            .insert(self.clients, reader.unwrap_or_default());
    }

    fn commit(&mut self, writes: &[(u8, Option<i8>)]) {
        let mut last = BTreeMap::new();
        for (id, n) in writes {
            last.insert(format!("{}", char::from(b'a' + id)), *n);
        }
        let parts = last.keys().map(|id| u16::try_from(partition(id)).unwrap());
        let mut parts: Vec<u16> = parts.collect();
        parts.sort_unstable();
        parts.dedup();
        if last.len() == 1 {
            parts.clear();
        }
        for (id, n) in last {
            let version = self.documents.get(&id).map_or(0, |(version, _)| *version) + 1;
            self.documents.insert(id.clone(), (version, n));
            let mut image = image(self.next, &id, version, n.map(i64::from));
            image.parts = parts.clone().into();
            self.streams[partition(&id)].push_back(image);
        }
        self.next += 1;
    }

    fn matching(&self, at: Option<usize>) -> Vec<(String, u64)> {
        let here = |id: &str| at.is_none_or(|at| partition(id) == at);
        let all = self
            .documents
            .iter()
            .filter(|(id, (_, n))| here(id) && n.is_some_and(|n| n >= 0));
        all.map(|(id, (version, _))| (id.clone(), *version))
            .collect()
    }

    fn handle(&mut self, at: usize) {
        let Some(image) = self.streams[at].pop_front() else {
            return;
        };
        let id = String::from_utf8(image.key.to_vec()).unwrap();
        let matches = match &image.content {
            rillbase_live::message::ImageContent::Document(body) => {
                let body = rillbase_query::bson::Document::trusted(body);
                number(body.get("n")).unwrap() >= 0
            }
            _ => false,
        };
        let before = if matches {
            self.members[at].insert(id, image.version)
        } else {
            self.members[at].remove(&id)
        };
        let (xid, batch) = (image.xid, !image.parts.is_empty());
        let how = match (before.is_some(), matches) {
            (true, true) => Some(Is::Changed),
            (false, true) => Some(Is::Added),
            (true, false) => Some(Is::Removed),
            (false, false) => None,
        };
        if let Some(how) = how {
            self.desk.matched(node(at), image, how, self.q.hash);
        }
        if batch && self.streams[at].front().is_none_or(|next| next.xid != xid) {
            self.desk.notify(node(at), NodeEvent::Done { xid });
        }
    }

    fn rebuild(&mut self, at: usize) {
        let q = self.q.clone();
        let rows = self.matching(Some(at));
        self.members[at] = rows.iter().cloned().collect();
        self.streams[at].clear();
        let rows: Vec<_> = rows
            .iter()
            .map(|(id, version)| row(id, *version, 1))
            .collect();
        let source = node(at);
        self.desk.notify(source, NodeEvent::Start);
        self.desk.rebase(source, &q, self.next, &rows);
        self.desk.active(source, &q);
        let snapshot = until(self.next);
        self.desk.notify(source, NodeEvent::Rebased { snapshot });
    }

    fn register(&mut self) {
        self.desk.hub.lost(0);
        let rows = self.matching(None);
        let rows: Vec<_> = rows
            .iter()
            .map(|(id, version)| row(id, *version, 1))
            .collect();
        let q = self.q.clone();
        self.desk.register(&q, until(self.next), &rows);
        self.desk.active(F0, &q);
        self.desk.active(F1, &q);
    }

    fn take(&mut self, most: usize) {
        for frame in self.desk.hub.poll(most) {
            self.desk.hub.drained(frame.client, 1, frame.text.len());
            if let Some(reader) = self.readers.get_mut(&frame.client) {
                reader.read(&frame.text);
            }
        }
    }

    /// The oldest client is disconnected, possibly in the middle of a group, and reconnects.
    fn reconnect(&mut self) {
        let Some((id, mut reader)) = self.readers.pop_first() else {
            return;
        };
        let Some(token) = reader.token.clone() else {
            self.readers.insert(id, reader);
            return;
        };
        let interrupted = i64::try_from(reader.group.len()).unwrap();
        reader.seq -= interrupted;
        reader.group.clear();
        let keep = self.readers.is_empty();
        if !keep {
            self.desk.hub.detach(id);
        }
        self.attach(Some((reader, token)), ClientOptions::default());
        if keep {
            self.desk.hub.detach(id);
        }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Write(id, n) => self.commit(&[(*id, *n)]),
            Act::Batch(writes) => self.commit(writes),
            Act::Handle(at, count) => (0..*count).for_each(|_| self.handle(usize::from(*at))),
            Act::Rebuild(at) => self.rebuild(usize::from(*at)),
            Act::Register => self.register(),
            Act::Take(count) => self.take(usize::from(*count)),
            Act::Attach(throttled) => {
                let options = ClientOptions {
                    throttle_us: if *throttled { 100_000 } else { 0 },
                    ..ClientOptions::default()
                };
                self.attach(None, options);
            }
            Act::Return => self.reconnect(),
            Act::Pass(ms) => {
                self.desk.pass(u64::from(*ms) * 1000);
                self.tick_if_through();
            }
        }
        self.desk.answer_replays();
    }

    /// A node ticks if it has handled everything older than its pending entries.
    fn tick_if_through(&mut self) {
        for at in 0..2 {
            let waits = self.streams[at].iter().map(|image| image.xid).min();
            self.desk.tick(node(at), waits.unwrap_or(self.next));
        }
        self.desk.pass(0);
    }

    fn settle(&mut self) {
        for at in 0..2 {
            while !self.streams[at].is_empty() {
                self.handle(at);
            }
        }
        for _ in 0..12 {
            self.desk.pass(300_000);
            self.tick_if_through();
            self.desk.answer_replays();
            self.take(10_000);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn result_and_events_lead_to_what_is_there(acts in proptest::collection::vec(act(), 1..80)) {
        let mut world = World::new();
        for act in &acts {
            world.act(act);
        }
        world.settle();
        let there: BTreeMap<String, i64> = world
            .matching(None)
            .into_iter()
            .map(|(id, version)| (id, i64::try_from(version).unwrap()))
            .collect();
        for (id, reader) in &world.readers {
            prop_assert_eq!(&reader.rows, &there, "client {}", id);
            prop_assert!(reader.group.is_empty());
            let state = world.desk.hub.figures(*id).unwrap().state;
            prop_assert_eq!(state, "live");
        }
    }
}
