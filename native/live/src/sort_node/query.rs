//! One sorted query: its rows, and what waits to be applied to them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rillbase_documents::refusal::Refusal;

use crate::message::{
    AfterImage, Cause, Content, Definition, Foreign, Gone, News, QueryHash, Row, Side, StreamId,
    WindowChange,
};
use crate::snapshot::Snapshot;

use super::answers::{Answers, Verdict};
use super::kept::{Gathered, Kept};
use super::order::Order;
use super::orphans::Told;
use super::rows::Rows;
use super::sources::Sources;
use super::steps::steps;

/// How many applied transactions are remembered before those that everybody has told are dropped.
const APPLIED: usize = 64;
/// Renewals closer to one another than this make the slack grow, in microseconds.
const CHURN_US: u64 = 60_000_000;

/// A write that concerns a query.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) image: Arc<AfterImage>,
    /// Whether the document matches now.
    pub(super) matches: bool,
    /// Where in the log it was told, and by whom.
    pub(super) at: StreamId,
    pub(super) partition: u16,
    /// Of a document that is looked up, the side.
    pub(super) side: Option<QueryHash>,
}

/// New rows are needed; until they come, steps are only collected.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) asked_us: u64,
    /// Transactions of steps that were too many to be kept: the new rows must have seen them.
    dropped: Vec<u64>,
}

/// Rows that count when all filter nodes have answered the request that they came with.
#[derive(Debug)]
pub(super) struct Aside {
    pub(super) rows: Kept,
    pub(super) snapshot: Snapshot,
    pub(super) request: StreamId,
    /// What was applied to the rows before meanwhile.
    pub(super) steps: Vec<Step>,
}

/// What is to be done with the rows that were put aside.
#[derive(Debug)]
pub(super) enum Judgement {
    /// There are none, or not all filter nodes have answered.
    Open,
    /// They are taken.
    Taken(Aside),
    /// A filter node does not go on from them.
    TooOld,
    /// They lack what was told meanwhile, or what filter nodes do not tell.
    Outdated,
}

/// What came of trying to apply the next steps.
#[derive(Debug)]
pub(super) enum Advance {
    /// There are none, or they must wait.
    Stuck,
    /// The window is as it was.
    Unseen,
    Seen(News),
}

/// One sorted query.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) hash: QueryHash,
    pub(super) activation: u64,
    pub(super) collection: [u8; 16],
    /// The collections that are looked up.
    pub(super) sides: Arc<[Side]>,
    order: Order,
    offset: usize,
    limit: Option<usize>,
    pub(super) slack: u32,
    renewed_us: Option<u64>,
    rows: Kept,
    /// The window that was told last, while something is referred to of which nothing is known.
    told_last: Option<Vec<Arc<Row>>>,
    /// What the rows have seen, besides the steps that were applied.
    snapshot: Snapshot,
    /// Transactions that were applied and that `pruned` does not see.
    applied: Vec<u64>,
    pruned: Option<Snapshot>,
    queue: VecDeque<Step>,
    /// The last of the steps that were there when the rows came. Until then filter nodes may have
    /// told what makes up for what these rows lack.
    made_up: StreamId,
    pub(super) waiting: Option<Waiting>,
    /// New rows that not all filter nodes have answered.
    pub(super) aside: Option<Aside>,
    /// Rows were taken before.
    pub(super) shown: bool,
    /// Somebody joined while the rows were not complete, and is to be told when they are.
    pub(super) owed: bool,
    /// The last request for it that was read here.
    pub(super) read: StreamId,
    /// The newest access rules under which any of the rows may have been written.
    rules_version: u64,
    pub(super) answers: Answers,
    /// What the rows have seen with which filter nodes may have begun since rows were taken here.
    /// They tell nothing of it.
    begun: Vec<Snapshot>,
    /// Rows must have seen some transactions up to this one.
    pub(super) below: u64,
    /// Versions of documents that left, and since when.
    gone: HashMap<Arc<[u8]>, u64>,
    gone_since: VecDeque<(u64, Arc<[u8]>)>,
}

impl Query {
    /// A query whose rows are still to come: [`Query::settle`].
    pub(super) fn new(definition: &Definition) -> Result<Self, Refusal> {
        let filter = crate::filter_node::parse(definition)?;
        Ok(Self {
            hash: definition.hash,
            activation: definition.activation,
            collection: definition.collection,
            sides: Arc::clone(&definition.sides),
            order: Order::parse(definition, filter)?,
            offset: to_usize(definition.offset),
            limit: definition.limit.map(to_usize),
            slack: definition.slack,
            renewed_us: None,
            rows: Kept::Rows(Rows::new(Vec::new(), false, 0)),
            told_last: None,
            snapshot: Snapshot::default(),
            applied: Vec::new(),
            pruned: None,
            queue: VecDeque::new(),
            made_up: StreamId::default(),
            waiting: None,
            aside: None,
            shown: false,
            owed: false,
            read: StreamId::default(),
            rules_version: 0,
            answers: Answers::default(),
            begun: Vec::new(),
            below: 0,
            gone: HashMap::new(),
            gone_since: VecDeque::new(),
        })
    }

    /// Begins with what was told of it before its rows were there.
    pub(super) fn begin(&mut self, answers: Answers, told: Told, now_us: u64) {
        self.answers = answers;
        self.pruned = told.snapshot;
        self.applied = told.xids;
        self.below = told.below;
        self.waiting = Some(Waiting {
            asked_us: now_us,
            dropped: Vec::new(),
        });
    }

    /// What was told of it in this life.
    pub(super) fn told(self) -> Told {
        let dropped = self.waiting.into_iter().flat_map(|waiting| waiting.dropped);
        let queued = self.queue.iter().map(|step| step.image.xid);
        let mut xids = self.applied;
        xids.extend(dropped.chain(queued));
        Told {
            xids,
            snapshot: self.pruned,
            below: self.below,
        }
    }

    /// How many rows the window reaches down to; none: all.
    fn wanted(&self) -> Option<usize> {
        Some(self.offset.saturating_add(self.limit?))
    }

    /// How many rows are kept.
    fn capacity(&self, max_rows: usize) -> usize {
        let wanted = self.wanted();
        wanted.map_or(max_rows, |rows| rows.saturating_add(to_usize(self.slack)))
    }

    /// What its documents are told to, one by one, before they are kept.
    pub(super) fn gathered(
        &self,
        definition: &Definition,
        foreign: Option<&[Foreign]>,
        max_rows: usize,
    ) -> Result<Gathered, Refusal> {
        Gathered::new(definition, foreign, self.capacity(max_rows), max_rows)
    }

    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    pub(super) fn window(&self) -> Vec<Arc<Row>> {
        if let Some(told) = &self.told_last {
            return told.clone();
        }
        let limit = self.limit.unwrap_or(usize::MAX);
        self.rows.window(self.offset, limit)
    }

    /// Whether a result without limit, or what is grouped, has become too large to be kept.
    pub(super) fn is_too_large(&self) -> bool {
        self.rows.is_overfull() || (self.limit.is_none() && !self.rows.reaches(usize::MAX))
    }

    /// Whether rows at the end of the window may be missing, or what rows refer to.
    pub(super) fn is_short(&self) -> bool {
        self.wanted().is_some_and(|rows| !self.rows.reaches(rows)) || self.lacks_something()
    }

    /// Whether rows refer to something of which nothing is known.
    pub(super) fn lacks_something(&self) -> bool {
        self.rows.lacks_something()
    }

    /// Nobody is told of the rows before they are read again. Until then the window is this one.
    pub(super) fn hold(&mut self, told: Vec<Arc<Row>>) {
        self.told_last = Some(told);
    }

    /// Whether more was applied than can be applied once more.
    pub(super) fn has_too_much_aside(&self, max_waiting: usize) -> bool {
        let aside = self.aside.as_ref();
        aside.is_some_and(|aside| aside.steps.len() > max_waiting)
    }

    /// Whether rows of this snapshot contain whatever was applied or dropped.
    pub(super) fn can_settle(&self, snapshot: &Snapshot, sources: &Sources) -> bool {
        let dropped = self.waiting.iter().flat_map(|waiting| &waiting.dropped);
        let before = |earlier: &Snapshot| snapshot.covers(earlier);
        before(&self.snapshot)
            && self.begun.iter().all(before)
            && (self.below == 0 || self.below < snapshot.xmin)
            && sources.are_behind(snapshot)
            && self.pruned.as_ref().is_none_or(before)
            && self
                .applied
                .iter()
                .chain(dropped)
                .all(|xid| snapshot.sees(*xid))
    }

    /// Whether a filter node may not watch it yet, or no more, and may begin with the rows of a later
    /// registration: then these are needed here, too.
    pub(super) fn is_doubtful(&self, partitions: u16) -> bool {
        !self.answers.all_watch(partitions, self.read)
    }

    /// A request was read with which filter nodes may begin.
    pub(super) fn may_begin(&mut self, snapshot: &Snapshot) {
        self.begun.retain(|earlier| !snapshot.covers(earlier));
        self.begun.push(snapshot.clone());
    }

    /// Whether the rows that were put aside count by now. They are no longer aside, unless that is
    /// open.
    pub(super) fn judge(&mut self, sources: &Sources, partitions: u16) -> Judgement {
        let Some(aside) = &self.aside else {
            return Judgement::Open;
        };
        let verdict = self.answers.of(aside.request, partitions);
        let before = |earlier: &Snapshot| aside.snapshot.covers(earlier);
        let mut dropped = self.waiting.iter().flat_map(|waiting| &waiting.dropped);
        let fits = self.begun.iter().all(before)
            && sources.are_behind(&aside.snapshot)
            && dropped.all(|xid| aside.snapshot.sees(*xid));
        match (verdict, fits) {
            (Verdict::TooOld, _) => {
                self.aside = None;
                Judgement::TooOld
            }
            (_, false) => {
                self.aside = None;
                Judgement::Outdated
            }
            (Verdict::Open, true) => Judgement::Open,
            (Verdict::Accepted, true) => {
                self.aside.take().map_or(Judgement::Open, Judgement::Taken)
            }
        }
    }

    /// Whether its rows contain all that others' rows do.
    pub(super) fn covers(&self, snapshot: &Snapshot) -> bool {
        self.snapshot.covers(snapshot)
    }

    /// Whether its rows are older than what filter nodes begin with.
    pub(super) fn is_behind(&self, sources: &Sources) -> bool {
        !sources.are_behind(&self.snapshot)
    }

    /// Takes the rows that were put aside, with what was applied meanwhile.
    pub(super) fn take(&mut self, aside: Aside, now_us: u64) -> Result<(), Refusal> {
        self.settle(aside.rows, &aside.snapshot);
        for step in &aside.steps {
            self.apply(step, now_us)?;
            self.note_applied(step.image.xid);
        }
        self.rows.refresh(&self.order)?;
        Ok(())
    }

    /// Takes new rows; what waits and is not in them stays.
    pub(super) fn settle(&mut self, rows: Kept, snapshot: &Snapshot) {
        self.rows = rows;
        self.told_last = None;
        self.snapshot = snapshot.clone();
        self.waiting = None;
        self.aside = None;
        self.shown = true;
        self.applied.clear();
        self.pruned = None;
        self.begun.clear();
        self.below = 0;
        self.gone.clear();
        self.gone_since.clear();
        self.queue.retain(|step| !snapshot.sees(step.image.xid));
        self.made_up = self
            .queue
            .iter()
            .map(|step| step.at)
            .max()
            .unwrap_or_default();
    }

    /// New rows are needed; the more often, the more of them.
    pub(super) fn wait(&mut self, max_slack: u32, now_us: u64) {
        self.waiting = Some(Waiting {
            asked_us: now_us,
            dropped: Vec::new(),
        });
        let renewed_us = self.renewed_us.replace(now_us);
        if renewed_us.is_some_and(|us| us.saturating_add(CHURN_US) > now_us) {
            let most = max_slack.max(self.slack);
            self.slack = self.slack.saturating_mul(2).clamp(1, most);
        }
    }

    /// Takes a step in. Returns whether steps wait for the rest of their batch.
    pub(super) fn push(&mut self, step: Step, max_waiting: usize) {
        if self.snapshot.sees(step.image.xid) {
            return;
        }
        self.queue.push_back(step);
        if self.queue.len() > max_waiting
            && let Some(waiting) = &mut self.waiting
            && let Some(step) = self.queue.pop_front()
        {
            waiting.dropped.push(step.image.xid);
        }
    }

    pub(super) fn is_held(&self) -> bool {
        !self.queue.is_empty() && self.waiting.is_none()
    }

    /// The next steps that can be applied: one write, or all writes of a batch with what belongs to
    /// it.
    fn next(&mut self, sources: &Sources) -> Vec<Step> {
        let first = self.queue.front().filter(|_| self.waiting.is_none());
        let Some(first) = first.map(|step| &step.image) else {
            return Vec::new();
        };
        if first.parts.is_empty() {
            return self.queue.pop_front().into_iter().collect();
        }
        let Some(together) = self.together(first.xid, sources) else {
            return Vec::new();
        };
        let belongs = |step: &Step| together.contains(&step.image.xid);
        let (batch, rest) = self.queue.drain(..).partition(belongs);
        self.queue = rest;
        Vec::from_iter::<VecDeque<Step>>(batch)
    }

    /// The transactions that have to be applied with a batch, if all of them are whole. What a node
    /// told before it was done with its part may stand for a document of the batch that was written
    /// again, as a node that has handled a higher version tells of that one alone.
    fn together(&self, xid: u64, sources: &Sources) -> Option<Vec<u64>> {
        let mut together = vec![xid];
        let mut looked_at = 0;
        while let Some(xid) = together.get(looked_at).copied() {
            looked_at += 1;
            let own = self.queue.iter().filter(|step| step.image.xid == xid);
            let ends = sources.ends(&own.clone().next()?.image, &own)?;
            let belongs = |step: &&Step| {
                let mut ends = ends.iter();
                ends.any(|(part, end)| {
                    *part == step.partition && step.at <= (*end).max(self.made_up)
                })
            };
            for step in self.queue.iter().filter(belongs) {
                if !together.contains(&step.image.xid) {
                    together.push(step.image.xid);
                }
            }
        }
        Some(together)
    }

    /// Applies what can be applied next.
    pub(super) fn advance(
        &mut self,
        sources: &Sources,
        complete: Option<&Snapshot>,
        remembered: (u64, u64),
    ) -> Result<Advance, Refusal> {
        let batch = self.next(sources);
        if batch.is_empty() {
            return Ok(Advance::Stuck);
        }
        self.forget(remembered);
        // Where all rows are shown, what changes in them is what changes in the window.
        let all = self.offset == 0 && self.limit.is_none() && self.rows.knows_changes();
        let before = if all { Vec::new() } else { self.window() };
        for step in &batch {
            self.apply(step, remembered.0)?;
            self.note_applied(step.image.xid);
        }
        if let Some(aside) = &mut self.aside {
            aside.steps.extend(batch.iter().cloned());
        }
        if self.applied.len() > APPLIED
            && let Some(complete) = complete
        {
            self.applied.retain(|xid| !complete.sees(*xid));
            self.pruned = Some(complete.clone());
        }
        let refreshed = self.rows.refresh(&self.order)?.filter(|_| all);
        if self.lacks_something() {
            self.hold(before);
            return Ok(Advance::Unseen);
        }
        let differ = || steps(&before, &self.window(), &|row| leave(row, &batch));
        let changes = refreshed.unwrap_or_else(differ);
        if changes.is_empty() {
            return Ok(Advance::Unseen);
        }
        Ok(Advance::Seen(self.news(cause(&batch), changes)))
    }

    fn note_applied(&mut self, xid: u64) {
        if self.applied.last() != Some(&xid) {
            self.applied.push(xid);
        }
    }

    pub(super) fn news(&self, image: Option<Cause>, changes: Vec<WindowChange>) -> News {
        News::Window {
            query: self.hash,
            activation: self.activation,
            rules_version: self.rules_version,
            image,
            changes,
        }
    }

    fn apply(&mut self, step: &Step, now_us: u64) -> Result<(), Refusal> {
        let image = &step.image;
        if let Some(side) = &step.side {
            let unseen = !self.snapshot.sees(image.xid);
            if unseen && self.rows.write(side, image, step.matches) {
                self.know_rules(u64::MAX);
            }
            return Ok(());
        }
        let known = self.rows.version(&image.key);
        let known = known.max(self.gone.get(&image.key).copied());
        if self.snapshot.sees(image.xid) || known.is_some_and(|known| image.version <= known) {
            return Ok(());
        }
        self.know_rules(image.rules_version);
        let row = row(image).filter(|_| step.matches);
        if row.is_some() {
            self.gone.remove(&image.key);
        } else {
            self.remember(&image.key, image.version, now_us);
        }
        if let Some(beyond) = self.rows.change(&image.key, row, &self.order)? {
            self.remember(&beyond.key, beyond.version, now_us);
        }
        Ok(())
    }

    fn remember(&mut self, key: &Arc<[u8]>, version: u64, now_us: u64) {
        self.gone.insert(Arc::clone(key), version);
        self.gone_since.push_back((now_us, Arc::clone(key)));
    }

    /// Forgets what left long ago. A key that left again since is forgotten with its first leaving's
    /// time only if that was the last.
    fn forget(&mut self, (now_us, remembered_us): (u64, u64)) {
        while let Some((since_us, _)) = self.gone_since.front()
            && since_us.saturating_add(remembered_us) < now_us
        {
            let Some((_, key)) = self.gone_since.pop_front() else {
                return;
            };
            let again = self.gone_since.iter().any(|(_, later)| *later == key);
            if !again {
                self.gone.remove(&key);
            }
        }
    }

    /// Rows were read that may have been written under these access rules, by collection.
    pub(super) fn know_all_rules(&mut self, rules: &HashMap<[u8; 16], u64>) {
        self.know_rules(rules.get(&self.collection).copied().unwrap_or(0));
        let newer = |side: &Side| {
            let known = rules.get(&side.collection);
            side.rules_version != 0 && known.is_some_and(|known| *known > side.rules_version)
        };
        if self.sides.iter().any(newer) {
            self.know_rules(u64::MAX);
        }
    }

    /// Rows come that may have been written under these access rules; the highest number: under others
    /// than the query's.
    pub(super) fn know_rules(&mut self, version: u64) {
        self.rules_version = self.rules_version.max(version);
    }

    /// The window, as others should start from it.
    pub(super) fn rebase(&self, max_bytes: usize) -> Vec<News> {
        let mut parts: Vec<Vec<Row>> = vec![Vec::new()];
        let mut bytes = 0;
        for row in self.window() {
            let size = 64 + row.key.len() + row.body.len();
            if bytes + size > max_bytes && bytes > 0 {
                parts.push(Vec::new());
                bytes = 0;
            }
            bytes += size;
            if let Some(part) = parts.last_mut() {
                part.push(Row::clone(&row));
            }
        }
        let count = parts.len();
        let parts = parts.into_iter().enumerate();
        let news = parts.map(|(part, rows)| News::Rebase {
            query: self.hash,
            activation: self.activation,
            snapshot: self.snapshot.clone(),
            rules_version: self.rules_version,
            rows,
            part: u32::try_from(part).unwrap_or(u32::MAX),
            last: part + 1 == count,
        });
        news.collect()
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}

pub(super) fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The row that a write leaves.
fn row(image: &AfterImage) -> Option<Row> {
    let Content::Document(body) = &image.content else {
        return None;
    };
    Some(Row {
        key: Arc::clone(&image.key),
        version: image.version,
        created_ms: image.created_ms,
        updated_ms: image.written_us.div_euclid(1_000),
        body: Arc::clone(body),
    })
}

/// With which version a row left a window, and why.
fn leave(row: &Row, batch: &[Step]) -> (u64, Gone) {
    let last = batch
        .iter()
        .filter(|step| step.side.is_none() && step.image.key == row.key)
        .max_by_key(|step| step.image.version);
    let held = row.document_version();
    match last.filter(|step| step.image.version > held) {
        Some(step) if matches!(step.image.content, Content::Deleted(_)) => {
            (step.image.version, Gone::Deleted)
        }
        Some(step) => (step.image.version, Gone::Left),
        None => (held, Gone::Left),
    }
}

fn cause(batch: &[Step]) -> Option<Cause> {
    let first = batch.first()?;
    let images = || batch.iter().map(|step| &step.image);
    let own = batch.iter().filter(|step| step.side.is_none());
    Some(Cause {
        xid: first.image.xid,
        rules_version: own.map(|step| step.image.rules_version).max().unwrap_or(0),
        written_us: images().map(|image| image.written_us).max()?,
        parts: Arc::clone(&first.image.parts),
    })
}
