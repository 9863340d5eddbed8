//! One who watches a query: reads it, registers it, and follows the log from before it read.
//!
//! It is what a hub does for one query, as plainly as possible. It checks all that it is told, and
//! when it claims to be live its rows are compared with the database.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use rillbase_live::message::{
    AfterImage, Content, News, Notification, Request, Row, Source, StreamId, Tick, Token,
    WindowChange,
};
use rillbase_live::snapshot::Snapshot;

use crate::database::{Database, partition};
use crate::queries::Query;
use crate::valkey::{Stream, Valkey};

/// A tick older than this proves nothing.
const STALE_US: u64 = 2_000_000;

pub(crate) type Checked = Result<(), String>;

#[derive(Debug)]
enum Phase {
    Idle,
    Noted { positions: Vec<StreamId> },
    Read { request: Request },
    Watching,
}

/// What is known of one source.
#[derive(Debug, Default, Clone)]
struct Heard {
    token: Token,
    count: u64,
    /// It watches the query, in the life that was registered.
    active: bool,
    /// Its last tick behind that, and the time of the first.
    tick: Option<Tick>,
    first_us: Option<u64>,
    /// Rows of a `Rebase` of which parts are missing.
    rebase: Vec<Row>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    version: u64,
    /// None: from a registration or a rebase.
    xid: Option<u64>,
}

#[derive(Debug)]
struct Change {
    image: AfterImage,
    matches: bool,
}

/// A watcher.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) query: Query,
    phase: Phase,
    activation: u64,
    life: u8,
    cursor: StreamId,
    /// The request that registered it: what a node said to those who came before is no answer.
    request: StreamId,
    filters: Vec<Heard>,
    sort: Heard,
    /// What the rows have seen, by write partition.
    seen: Vec<Snapshot>,
    rows: BTreeMap<u8, Held>,
    gone: BTreeMap<u8, u64>,
    queue: VecDeque<Change>,
    done: BTreeMap<u64, Vec<u16>>,
    /// Sorted queries: key and version, in order.
    window: Vec<(u8, u64)>,
    /// Sorted queries: whether a window was told to begin with …
    based: bool,
    /// … and is known to its end.
    started: bool,
    /// The highest version of each document that was shown.
    shown: BTreeMap<u8, u64>,
    pub(crate) wants_renewal: Option<u32>,
}

impl Watcher {
    pub(crate) fn new(query: Query, partitions: u16) -> Self {
        Self {
            query,
            phase: Phase::Idle,
            activation: 0,
            life: 0,
            cursor: StreamId::default(),
            request: StreamId::default(),
            filters: vec![Heard::default(); usize::from(partitions)],
            sort: Heard::default(),
            seen: Vec::new(),
            rows: BTreeMap::new(),
            gone: BTreeMap::new(),
            queue: VecDeque::new(),
            done: BTreeMap::new(),
            window: Vec::new(),
            based: false,
            started: false,
            shown: BTreeMap::new(),
            wants_renewal: None,
        }
    }

    /// Begins anew: something was lost.
    pub(crate) fn restart(&mut self) {
        let partitions = u16::try_from(self.filters.len()).unwrap_or(1);
        *self = Self::new(self.query, partitions);
    }

    pub(crate) fn step(
        &mut self,
        valkey: &mut Valkey,
        database: &Database,
        most: usize,
    ) -> Checked {
        if matches!(self.phase, Phase::Watching) {
            return self.follow(valkey, most);
        }
        self.phase = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => {
                self.life = valkey.life;
                self.cursor = valkey.log.end();
                let positions = valkey.writes.iter().map(Stream::end).collect();
                Phase::Noted { positions }
            }
            Phase::Noted { positions } => {
                let snapshot = database.snapshot();
                self.seen = vec![snapshot.clone(); self.filters.len()];
                let (rows, complete) = self.query.rows(database);
                if self.query.window.is_none() {
                    for row in &rows {
                        let held = Held {
                            version: row.version,
                            xid: None,
                        };
                        self.rows.insert(row.key[0], held);
                        self.shown.insert(row.key[0], row.version);
                    }
                }
                let request = Request::Register {
                    query: self.query.definition(),
                    positions,
                    snapshot,
                    rows,
                    complete,
                    renewal: false,
                };
                Phase::Read { request }
            }
            // Positions of another life mean nothing.
            Phase::Read { .. } if valkey.life != self.life => {
                self.restart();
                Phase::Idle
            }
            Phase::Read { request } => {
                self.activation = valkey.register(request).unwrap_or(0);
                self.request = valkey.requests.end();
                Phase::Watching
            }
            Phase::Watching => Phase::Watching,
        };
        Ok(())
    }

    fn follow(&mut self, valkey: &Valkey, most: usize) -> Checked {
        if valkey.life != self.life || valkey.log.is_trimmed(self.cursor) {
            self.restart();
            return Ok(());
        }
        for (id, notification) in valkey.log.read(self.cursor, most) {
            self.cursor = id;
            self.hear(notification)?;
            if !matches!(self.phase, Phase::Watching) {
                break;
            }
        }
        Ok(())
    }

    fn source(&mut self, source: Source) -> &mut Heard {
        match source {
            Source::Filter(partition) => &mut self.filters[usize::from(partition)],
            Source::Sort => &mut self.sort,
        }
    }

    fn hear(&mut self, notification: Notification) -> Checked {
        let source = notification.source;
        let heard = self.source(source);
        if notification.token < heard.token {
            return Ok(());
        }
        if notification.token > heard.token {
            *heard = Heard {
                token: notification.token,
                ..Heard::default()
            };
        } else if notification.count != heard.count + 1 {
            let (had, has) = (heard.count, notification.count);
            return Err(format!("{source:?} said {has} after {had}"));
        }
        heard.count = notification.count;
        match source {
            Source::Filter(partition) => self.hear_filter(partition, notification.news),
            Source::Sort => self.hear_sort(notification.news),
        }
    }

    fn hear_filter(&mut self, partition: u16, news: News) -> Checked {
        let hash = self.query.hash();
        let heard = &mut self.filters[usize::from(partition)];
        match news {
            News::Start => {
                *heard = Heard {
                    token: heard.token,
                    count: heard.count,
                    ..Heard::default()
                };
            }
            News::Active {
                query,
                activation,
                request,
            } if query == hash => {
                heard.active |= activation == self.activation && request >= self.request;
            }
            News::TooOld { query, request, .. } if query == hash && request == self.request => {
                self.restart();
            }
            News::Failed { query, code, .. } if query == hash => {
                return Err(format!("{query:?} failed: {code}"));
            }
            News::Tick(tick) if heard.active => {
                heard.first_us.get_or_insert(tick.time_us);
                heard.tick = Some(tick);
                self.drain();
            }
            News::Done { xid } => {
                self.done.entry(xid).or_default().push(partition);
                self.drain();
            }
            News::Match {
                image,
                added,
                changed,
                removed,
            } => {
                let matches = added.contains(&hash) || changed.contains(&hash);
                if matches || removed.contains(&hash) {
                    self.queue.push_back(Change { image, matches });
                    self.drain();
                }
            }
            News::Rebase {
                query,
                activation,
                snapshot,
                rows,
                last,
                ..
            } if query == hash && activation == self.activation => {
                heard.rebase.extend(rows);
                if last {
                    let rows = std::mem::take(&mut heard.rebase);
                    self.rebase(partition, &snapshot, &rows);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies what is not held back by a batch of which parts are missing.
    fn drain(&mut self) {
        if self.query.window.is_some() {
            self.queue.clear();
            return;
        }
        while let Some(first) = self.queue.front() {
            let xid = first.image.xid;
            let done = self.done.get(&xid);
            let whole = first.image.parts.iter().all(|part| {
                done.is_some_and(|done| done.contains(part)) || self.is_told(*part, xid)
            });
            if !whole {
                return;
            }
            let batch = !first.image.parts.is_empty();
            let (now, later): (VecDeque<_>, _) = if batch {
                let queue = self.queue.drain(..);
                queue.partition(|change| change.image.xid == xid)
            } else {
                (
                    self.queue.pop_front().into_iter().collect(),
                    std::mem::take(&mut self.queue),
                )
            };
            self.queue = later;
            for change in now {
                self.apply(&change);
            }
        }
    }

    fn is_told(&self, part: u16, xid: u64) -> bool {
        let index = usize::from(part);
        self.seen[index].sees(xid)
            || self.filters[index]
                .tick
                .as_ref()
                .is_some_and(|tick| tick.snapshot.sees(xid))
    }

    fn apply(&mut self, change: &Change) {
        let image = &change.image;
        let key = image.key[0];
        let part = usize::from(partition(
            key,
            u16::try_from(self.filters.len()).unwrap_or(1),
        ));
        if self.seen[part].sees(image.xid) {
            return;
        }
        let held = self.rows.get(&key).map(|held| held.version);
        let known = held.max(self.gone.get(&key).copied());
        if known.is_some_and(|known| image.version <= known) {
            return;
        }
        if change.matches && matches!(image.content, Content::Document(_)) {
            let held = Held {
                version: image.version,
                xid: Some(image.xid),
            };
            self.rows.insert(key, held);
            self.shown.insert(key, image.version);
            self.gone.remove(&key);
        } else {
            self.rows.remove(&key);
            self.gone.insert(key, image.version);
        }
    }

    /// A filter node has told all its members: what is different is what was lost.
    fn rebase(&mut self, part: u16, snapshot: &Snapshot, rows: &[Row]) {
        let index = usize::from(part);
        if self.query.window.is_some() || self.seen[index].covers(snapshot) {
            return;
        }
        self.seen[index] = snapshot.clone();
        let partitions = u16::try_from(self.filters.len()).unwrap_or(1);
        let told = |key: u8| rows.iter().any(|row| row.key[0] == key);
        let gone = &mut self.gone;
        self.rows.retain(|key, held| {
            let newer = held.xid.is_some_and(|xid| !snapshot.sees(xid));
            let stays = partition(*key, partitions) != part || newer || told(*key);
            if !stays {
                gone.insert(*key, held.version);
            }
            stays
        });
        for row in rows {
            let key = row.key[0];
            let held = self.rows.get(&key).map(|held| held.version);
            let known = held.max(self.gone.get(&key).copied());
            if known.is_none_or(|known| row.version > known) {
                let held = Held {
                    version: row.version,
                    xid: None,
                };
                self.rows.insert(key, held);
                self.gone.remove(&key);
            }
        }
    }

    fn hear_sort(&mut self, news: News) -> Checked {
        let hash = self.query.hash();
        match news {
            News::Start => {
                self.sort.active = false;
                self.sort.tick = None;
                self.sort.rebase.clear();
                self.based = false;
                self.started = false;
            }
            News::Active {
                query,
                activation,
                request,
            } if query == hash => {
                self.sort.active |= activation == self.activation && request >= self.request;
            }
            News::Tick(tick) if self.sort.active => self.sort.tick = Some(tick),
            News::Renew {
                query,
                activation,
                slack,
            } if query == hash && activation == self.activation => {
                self.started = false;
                self.wants_renewal = Some(slack);
            }
            News::Failed { query, code, .. } if query == hash => {
                return Err(format!("{query:?} failed: {code}"));
            }
            News::Rebase {
                query,
                activation,
                rows,
                last,
                ..
            } if query == hash && activation == self.activation => {
                self.sort.rebase.extend(rows);
                if last {
                    let rows = std::mem::take(&mut self.sort.rebase);
                    self.window = rows.iter().map(|row| (row.key[0], row.version)).collect();
                    self.based = true;
                    self.started = true;
                    self.wants_renewal = None;
                    for (key, version) in self.window.clone() {
                        self.show(key, version, false)?;
                    }
                }
            }
            News::Window {
                query,
                activation,
                image,
                changes,
                ..
            } if query == hash && activation == self.activation => {
                if image.is_none() {
                    self.started = self.based;
                    self.wants_renewal = None;
                }
                if self.based {
                    for change in changes {
                        self.change(&change)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Follows one step of a window.
    fn change(&mut self, change: &WindowChange) -> Checked {
        let at = |index: &u32| usize::try_from(*index).unwrap_or(usize::MAX);
        match change {
            WindowChange::Add { index, row } => {
                if at(index) > self.window.len() {
                    return Err(format!("a row comes in at {index}"));
                }
                self.window.insert(at(index), (row.key[0], row.version));
                self.show(row.key[0], row.version, false)
            }
            WindowChange::Change { index, row } => {
                self.expect(at(index), &row.key)?;
                self.window[at(index)].1 = row.version;
                self.show(row.key[0], row.version, true)
            }
            WindowChange::Move {
                old_index,
                index,
                row,
            } => {
                self.expect(at(old_index), &row.key)?;
                self.window.remove(at(old_index));
                self.window.insert(at(index), (row.key[0], row.version));
                self.show(row.key[0], row.version, true)
            }
            WindowChange::Remove { old_index, key, .. } => {
                self.expect(at(old_index), key)?;
                self.window.remove(at(old_index));
                Ok(())
            }
        }
    }

    fn expect(&self, index: usize, key: &[u8]) -> Checked {
        match self.window.get(index) {
            Some((held, _)) if *held == key[0] => Ok(()),
            other => Err(format!("row {} is not at {index} but {other:?}", key[0])),
        }
    }

    /// Versions never fall, and nothing that only tells of a version is told twice.
    fn show(&mut self, key: u8, version: u64, newer: bool) -> Checked {
        let shown = self.shown.insert(key, version).unwrap_or(0);
        if version < shown || (newer && version == shown) {
            return Err(format!("{key}@{version} was shown after {shown}"));
        }
        Ok(())
    }

    /// The snapshot up to which it claims to be complete, if it claims to be live.
    pub(crate) fn live(&self, now_us: u64) -> Option<&Snapshot> {
        if !matches!(self.phase, Phase::Watching) || self.filters.iter().any(|heard| !heard.active)
        {
            return None;
        }
        let fresh = |tick: &&Tick| tick.time_us + STALE_US >= now_us;
        if self.query.window.is_some() {
            let tick = self.sort.tick.as_ref().filter(fresh)?;
            let firsts: Option<Vec<u64>> =
                self.filters.iter().map(|heard| heard.first_us).collect();
            let proven = firsts?.into_iter().all(|first_us| tick.time_us >= first_us);
            return (self.started && proven).then_some(&tick.snapshot);
        }
        let ticks: Option<Vec<&Tick>> = self
            .filters
            .iter()
            .map(|heard| heard.tick.as_ref().filter(fresh))
            .collect();
        let oldest = ticks?.into_iter().min_by_key(|tick| tick.time_us)?;
        // Rows of one partition that are newer than those of another may show part of a batch.
        let even = self.seen.iter().all(|seen| *seen == self.seen[0]);
        let reached = self.seen.iter().all(|seen| oldest.snapshot.covers(seen));
        (even || reached).then_some(&oldest.snapshot)
    }

    /// What its clients have.
    pub(crate) fn shows(&self) -> Vec<(u8, u64)> {
        if self.query.window.is_some() {
            return self.window.clone();
        }
        self.rows
            .iter()
            .map(|(key, held)| (*key, held.version))
            .collect()
    }

    /// Silence is no lie: whoever claims to be live has all that its ticks see.
    pub(crate) fn check(&self, now_us: u64, database: &Database) -> Checked {
        let Some(complete) = self.live(now_us) else {
            return Ok(());
        };
        self.check_batches(database)?;
        if self.query.window.is_some() {
            let quiet = database
                .all()
                .all(|(_, version)| complete.sees(version.xid));
            if quiet && self.shows() != self.query.answer(database) {
                return self.differs(database);
            }
            return Ok(());
        }
        for (key, latest) in database
            .all()
            .filter(|(_, latest)| complete.sees(latest.xid))
        {
            let held = self.rows.get(&key).map(|held| held.version);
            let wanted = self.query.matches(&latest).then_some(latest.version);
            if held != wanted {
                return self.differs(database);
            }
        }
        Ok(())
    }

    pub(crate) fn differs(&self, database: &Database) -> Checked {
        let (shows, answer) = (self.shows(), self.query.answer(database));
        Err(format!("{:?} shows {shows:?}, not {answer:?}", self.query))
    }

    /// Whoever shows one document of a batch shows none as it was before the batch.
    fn check_batches(&self, database: &Database) -> Checked {
        let shows: BTreeMap<u8, u64> = self.shows().into_iter().collect();
        for (xid, members) in &database.batches {
            let has = |(key, version): &&(u8, u64)| shows.get(key) == Some(version);
            let before = |(key, version): &&(u8, u64)| shows.get(key).is_some_and(|v| v < version);
            if let (Some(new), Some(old)) = (members.iter().find(has), members.iter().find(before))
            {
                return Err(format!(
                    "batch {xid} is shown in part: {new:?}, not {old:?}"
                ));
            }
        }
        Ok(())
    }
}
