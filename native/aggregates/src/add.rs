//! Events: parsed before the group is written, counted once, and written with all that they change.
//!
//! ```text
//! fact key   := aggregate{8} sequence{8}     inverted, so that the newest come first
//! fact value := event{slice}*                as they were sent, those of one group together
//! id key     := aggregate{8} event-id
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use rillbase_binary_format::{ByteReader, ByteWriter as _};
use rillbase_engine::{Millis, Sequence, WriteBatch, prefix_end};

use crate::catalog::{AggregateEntry, AggregateState};
use crate::contribution::Contribution;
use crate::definition::{AggregateDefinition, ContributionSource};
use crate::deltas::{AggregateGeneration, Deltas};
use crate::error::{AggregateErrorCode, Error, Result};
use crate::fields::{Fields, Flat, ParsedEvent};
use crate::store::{Aggregates, bounds};

/// How long an event is remembered by its id, in milliseconds.
const REMEMBERED: i64 = 86_400_000;
const MAX_ID_BYTES: usize = 256;
/// The maximum number of events in a call.
const MAX_EVENTS: usize = 4000;
/// Events of a group are stored together up to this size.
const FACT_BYTES: usize = 256 << 10;

/// A parsed event.
#[derive(Debug, Clone)]
struct Event {
    /// Its range in the events as they were sent.
    json: Range<usize>,
    id: Option<EventId>,
    /// For the current generation, and for the one being built.
    contributions: (Contribution, Option<Contribution>),
}

/// The identity of an event.
#[derive(Debug, Clone)]
struct EventId {
    key: Vec<u8>,
    expiry: Millis,
}

/// Events that are added together or not at all.
#[derive(Debug, Clone)]
pub struct Add {
    pub(crate) aggregate: Arc<AggregateEntry>,
    pub(crate) shape: Arc<AggregateState>,
    /// All events, as they were sent.
    json: Vec<u8>,
    events: Vec<Event>,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The sequence of its group.
    pub sequence: Sequence,
    /// Its index in the group.
    pub index: usize,
    /// The event, as it was sent.
    pub json: Vec<u8>,
}

impl Add {
    /// Parses events.
    pub fn read<'a>(
        aggregate: &Arc<AggregateEntry>,
        events: impl ExactSizeIterator<Item = &'a [u8]>,
        now: Millis,
    ) -> Result<Self> {
        if events.len() > MAX_EVENTS {
            let detail = "a call may have at most 4,000 events";
            return Err(Error::new(AggregateErrorCode::TooMany, detail));
        }
        let shape = aggregate.shape();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let mut add = Self {
            aggregate: Arc::clone(aggregate),
            json: Vec::new(),
            events: Vec::with_capacity(events.len()),
            shape,
        };
        let mut room = Flat::default();
        for (index, json) in events.enumerate() {
            let read = add.take(json, &mut room, now);
            read.map_err(|error| error.of_event(index))?;
        }
        Ok(add)
    }

    fn take(&mut self, json: &[u8], room: &mut Flat, now: i64) -> Result<()> {
        let range = self.json.len()..self.json.len() + json.len();
        self.json.extend_from_slice(json);
        let read = ParsedEvent::event(json, room)?;
        let event = Event::of((read.fields(), range), &self.aggregate, &self.shape, now)?;
        self.events.push(event);
        Ok(())
    }

    /// An event, as it was sent.
    fn sent(&self, event: &Event) -> &[u8] {
        self.json.get(event.json.clone()).unwrap_or_default()
    }

    /// Parses them again if the aggregate was redefined.
    fn refresh(&self, now: Millis) -> Result<Option<Self>> {
        if Arc::ptr_eq(&self.shape, &self.aggregate.shape()) {
            return Ok(None);
        }
        let events = self.events.iter().map(|event| self.sent(event));
        Self::read(&self.aggregate, events, now).map(Some)
    }

    /// The keys of the ids of its events.
    pub(crate) fn id_keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        let ids = self.events.iter().filter_map(|event| event.id.as_ref());
        ids.map(|id| &id.key)
    }

    /// The aggregate.
    pub fn aggregate(&self) -> &Arc<AggregateEntry> {
        &self.aggregate
    }
}

impl Event {
    fn of(
        (fields, json): (Fields<'_>, Range<usize>),
        aggregate: &AggregateEntry,
        shape: &AggregateState,
        now: i64,
    ) -> Result<Self> {
        let definition = &shape.current.definition;
        if definition.source == ContributionSource::View {
            let detail = "this aggregate follows a collection, and does not take events";
            return Err(Error::new(AggregateErrorCode::BadEvent, detail));
        }
        let contribution = Contribution::of(definition, fields, now)?;
        let expires = contribution
            .bucket
            .and_then(|bucket| definition.expires(bucket));
        if expires.is_some_and(|expires| expires <= now) {
            let detail = "the event is older than the aggregate's retention";
            return Err(Error::at(
                AggregateErrorCode::EventTooOld,
                pointer(definition),
                detail,
            ));
        }
        let building = match &shape.building {
            None => None,
            Some(building) => Some(Contribution::of(
                &building.generation.definition,
                fields,
                now,
            )?),
        };
        Ok(Self {
            json,
            id: read_id(aggregate, definition, fields, now)?,
            contributions: (contribution, building),
        })
    }
}

impl Event {
    /// The contribution of an event to each generation.
    fn contributions_to<'a>(
        &'a self,
        shape: &'a AggregateState,
    ) -> impl Iterator<Item = (&'a Arc<AggregateGeneration>, &'a Contribution)> {
        let (current, building) = &self.contributions;
        let building = shape.building.iter().zip(building);
        let building = building.map(|(one, contribution)| (&one.generation, contribution));
        std::iter::once((&shape.current, current)).chain(building)
    }
}

fn pointer(definition: &AggregateDefinition) -> String {
    let time = definition.time.as_ref();
    time.map_or(String::new(), |time| time.field.pointer())
}

fn read_id(
    aggregate: &AggregateEntry,
    definition: &AggregateDefinition,
    fields: Fields<'_>,
    now: i64,
) -> Result<Option<EventId>> {
    let Some(value) = fields.get("event_id") else {
        return Ok(None);
    };
    let id = value
        .as_str()
        .filter(|id| (1..=MAX_ID_BYTES).contains(&id.len()));
    let Some(id) = id else {
        let detail = "an event_id is a string of 1 to 256 bytes";
        return Err(Error::at(AggregateErrorCode::BadEvent, "/event_id", detail));
    };
    let at = Contribution::moment(definition, fields, now)?;
    if at.saturating_add(REMEMBERED) <= now {
        let detail = "the event is older than 24 hours, the time for which ids are remembered";
        return Err(Error::at(
            AggregateErrorCode::EventTooOld,
            pointer(definition),
            detail,
        ));
    }
    let expiry = at.max(now).saturating_add(REMEMBERED);
    Ok(Some(EventId {
        key: [&aggregate.number.to_be_bytes(), id.as_bytes()].concat(),
        expiry: u64::try_from(expiry).unwrap_or_default(),
    }))
}

/// What a group of events changes.
#[derive(Debug, Default)]
pub(crate) struct EventGroup {
    pub(crate) deltas: Deltas,
    facts: HashMap<u64, Facts>,
    pub(crate) ids: HashMap<Vec<u8>, Millis>,
}

/// Events of one aggregate.
#[derive(Debug)]
struct Facts {
    /// When the last bucket in which one of them counts has expired: rows are rebuilt from them.
    expiry: Option<Millis>,
    full: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            expiry: Some(0),
            full: Vec::new(),
            bytes: Vec::new(),
        }
    }
}

impl Facts {
    fn keep_until(&mut self, expires: Option<i64>) {
        let expires = expires.map(|at| u64::try_from(at).unwrap_or_default());
        self.expiry = self.expiry.zip(expires).map(|(own, other)| own.max(other));
    }

    fn push(&mut self, json: &[u8]) {
        self.bytes.put_slice(json);
        if self.bytes.len() >= FACT_BYTES {
            self.full.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl EventGroup {
    /// Adds the new events of a call; returns which are new.
    pub(crate) fn take(&mut self, add: &Add, store: &Aggregates) -> Result<Vec<bool>> {
        // Everything is looked up before anything is added.
        let mut fresh = Vec::with_capacity(add.events.len());
        let mut own: HashSet<&[u8]> = HashSet::new();
        for event in &add.events {
            fresh.push(match &event.id {
                None => true,
                Some(id) => {
                    let is_here = self.ids.contains_key(&id.key) || !own.insert(&id.key);
                    !is_here && store.db.get(&store.spaces.ids, &id.key)?.is_none()
                }
            });
        }
        let is_fresh = |(_, (_, fresh)): &(usize, (&Event, &bool))| **fresh;
        let mut items = HashSet::new();
        for (index, (event, _)) in add.events.iter().zip(&fresh).enumerate().filter(is_fresh) {
            for contribution in event.contributions_to(&add.shape) {
                let room = store
                    .item_counts
                    .make_room(contribution, &self.deltas, &mut items);
                room.map_err(|error| error.of_event(index))?;
            }
        }
        let facts = self.facts.entry(add.aggregate.number).or_default();
        for (event, _) in add.events.iter().zip(&fresh).filter(|(_, fresh)| **fresh) {
            facts.push(add.sent(event));
            for (generation, contribution) in event.contributions_to(&add.shape) {
                let bucket = contribution.bucket;
                let expires = bucket.and_then(|at| generation.definition.expires(at));
                facts.keep_until(expires);
                self.deltas.add(generation, contribution, 1);
            }
            if let Some(id) = &event.id {
                self.ids.insert(id.key.clone(), id.expiry);
            }
        }
        Ok(fresh)
    }

    /// Adds the changes of the events to a batch.
    pub(crate) fn write(&mut self, batch: &mut WriteBatch, store: &Aggregates) {
        let spaces = &store.spaces;
        self.deltas.write(batch, &spaces.rows, &spaces.items);
        for (number, facts) in &self.facts {
            let last = Some(&facts.bytes).filter(|bytes| !bytes.is_empty());
            for bytes in facts.full.iter().chain(last) {
                batch.put_sequenced(&spaces.facts, &number.to_be_bytes(), bytes, facts.expiry);
            }
        }
        for (key, expiry) in &self.ids {
            batch.put_expiring(&spaces.ids, key, &[], *expiry);
        }
    }
}

impl Aggregates {
    /// Adds the events of many calls, each all or nothing. Returns which events of each call are
    /// new.
    pub(crate) fn take_each(
        &self,
        group: &mut EventGroup,
        adds: &[&Add],
    ) -> Vec<Result<Vec<bool>>> {
        let now = self.db.now();
        adds.iter().map(|add| self.take(group, add, now)).collect()
    }

    fn take(&self, group: &mut EventGroup, add: &Add, now: Millis) -> Result<Vec<bool>> {
        if add.aggregate.is_dropped() {
            return Err(Error::new(
                AggregateErrorCode::Unknown,
                "the aggregate does not exist",
            ));
        }
        match add.refresh(now)? {
            None => group.take(add, self),
            Some(add) => group.take(&add, self),
        }
    }

    /// Stored events after a position, oldest first.
    pub fn facts(
        &self,
        aggregate: &AggregateEntry,
        (after, index): (Sequence, usize),
        count: usize,
    ) -> Result<Vec<Fact>> {
        let prefix = aggregate.number.to_be_bytes();
        let end = prefix_end(&prefix);
        let (lower, upper) = bounds(&prefix, end.as_deref());
        let mut scan = self.db.scan(&self.spaces.facts, lower, upper, None)?;
        let key = [&prefix[..], &(!after).to_be_bytes()].concat();
        if after == 0 {
            scan.last()?;
        } else {
            scan.seek_back(&key)?;
        }
        let mut facts = Vec::new();
        while scan.is_valid() && facts.len() < count {
            let sequence = !ByteReader::new(scan.key().get(8..).unwrap_or_default()).u64_be()?;
            let mut reader = ByteReader::new(scan.value());
            let mut position = 0;
            while !reader.is_empty() {
                let json = reader.slice()?.to_vec();
                if (sequence, position) > (after, index) || after == 0 {
                    facts.push(Fact {
                        sequence,
                        index: position,
                        json,
                    });
                }
                position += 1;
            }
            scan.retreat()?;
        }
        facts.truncate(count);
        Ok(facts)
    }
}
