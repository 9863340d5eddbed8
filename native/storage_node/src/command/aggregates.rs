//! The commands of aggregates: definitions, events, queries.

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use rillbase_aggregates::{
    Add, AggregateEntry, AggregateQuery, Apply, SnapshotSelector as SnapshotChoice,
};
use rillbase_query::bson::ValueRef;
use rillbase_query::ejson::{self, Form};

use super::CommandStep;
use super::follow::needs_version_3;
use crate::answers::AnswerKey;
use crate::group::CommandWrite;
use crate::name;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::snapshots::NamedSnapshot;
use crate::words::{Words, unknown};

/// The maximum length of a definition or query.
const MAX_TEXT_BYTES: usize = 256 << 10;
const DEFAULT_FACTS: usize = 100;
const MAX_FACTS: usize = 10_000;

/// The maximum buffer that a thread keeps for its next result.
const KEPT_TEXT_BYTES: usize = 1 << 20;

thread_local! {
    /// Results are written here before their length is known. Otherwise the system would have to
    /// clear new memory for each.
    static TEXT: Cell<String> = const { Cell::new(String::new()) };
}

/// The beginning of a result.
pub(super) const ROWS: &str = r#"{"rows":"#;

/// The aggregate with a name in the caller's namespace.
pub(super) fn find(
    node: &NodeCore,
    session: &CommandSession,
    name: &str,
) -> Result<Arc<AggregateEntry>> {
    Ok(node.aggregates.find(session.namespace()?.number, name)?)
}

fn body<'a>(words: &mut Words<'a>) -> Result<&'a str> {
    let text = words.text()?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(CommandRefusal::new(
            "OUT_OF_RANGE",
            "the text is longer than 256 KiB",
        ));
    }
    Ok(text)
}

pub(super) fn define(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (name, text) = (words.text()?, body(&mut words)?);
    let replaces = words.take("REPLACE");
    words.end()?;
    name::check(name)?;
    let whose = (session.namespace()?.number, name);
    let generation = node.aggregates.define(whose, text, replaces)?;
    reply.integer(generation);
    Ok(CommandStep::Done)
}

pub(super) fn switch(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let aggregate = find(node, session, words.text()?)?;
    node.aggregates.switch(&aggregate, words.number()?)?;
    reply.ok();
    Ok(CommandStep::Done)
}

pub(super) fn drop(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let aggregate = find(node, session, words.text()?);
    if let Ok(aggregate) = &aggregate {
        node.aggregates.remove(aggregate)?;
    }
    reply.integer(u64::from(aggregate.is_ok()));
    Ok(CommandStep::Done)
}

pub(super) fn list(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let prefix = if words.take("PREFIX") {
        words.text()?
    } else {
        ""
    };
    words.end()?;
    let all = node.aggregates.list(session.namespace()?.number);
    let names = all.iter().map(|aggregate| aggregate.name.as_str());
    let names: Vec<&str> = names.filter(|name| name.starts_with(prefix)).collect();
    reply.array(names.len());
    names.iter().for_each(|name| reply.text(name));
    Ok(CommandStep::Done)
}

fn quoted(text: &str) -> String {
    ejson::value_to_string(ValueRef::String(text), Form::Relaxed)
}

pub(super) fn info(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let aggregate = find(node, session, words.text()?)?;
    let shape = aggregate.shape();
    let (building, ready) = match &shape.building {
        None => ("null".to_owned(), true),
        Some(building) => (
            building.generation.number.to_string(),
            building.is_ready.load(std::sync::atomic::Ordering::Acquire),
        ),
    };
    let positions = node.aggregates.positions(shape.current.number)?;
    let pair = |(partition, position): &(String, String)| {
        format!("[{},{}]", quoted(partition), quoted(position))
    };
    let positions: Vec<String> = positions.iter().map(pair).collect();
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        r#"{{"name":{},"definition":{},"generation":{},"building":{building},"ready":{ready},"positions":[{}]}}"#,
        quoted(&aggregate.name),
        shape.text,
        shape.current.number,
        positions.join(",")
    );
    reply.text(&text);
    Ok(CommandStep::Done)
}

pub(super) fn add(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
) -> Result<CommandWrite> {
    let aggregate = find(node, session, words.text()?)?;
    let events = words.rest();
    let add = Add::read(&aggregate, events.iter().copied(), node.now())?;
    Ok(CommandWrite::Add(add))
}

pub(super) fn apply(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
) -> Result<CommandWrite> {
    let aggregate = find(node, session, words.text()?)?;
    let generation = words.number()?;
    let place = (words.text()?, words.text()?);
    let changes = words.rest().iter().copied();
    let apply = Apply::read(&aggregate, generation, place, changes)?;
    Ok(CommandWrite::Apply(apply))
}

pub(super) fn positions(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    find(node, session, words.text()?)?;
    let positions = node.aggregates.positions(words.number()?)?;
    reply.array(positions.len());
    for (partition, position) in &positions {
        reply.array(2);
        reply.text(partition);
        reply.text(position);
    }
    Ok(CommandStep::Done)
}

pub(super) fn facts(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let aggregate = find(node, session, words.text()?)?;
    let (mut after, mut count) = ((0, 0), DEFAULT_FACTS);
    while !words.is_empty() {
        match words.keyword()?.as_str() {
            "AFTER" => after = place(words.text()?)?,
            "COUNT" => count = words.number::<usize>()?.clamp(1, MAX_FACTS),
            other => return Err(unknown(other.as_bytes())),
        }
    }
    let facts = node.aggregates.facts(&aggregate, after, count)?;
    reply.array(facts.len());
    for fact in &facts {
        reply.array(2);
        reply.text(&format!("{}-{}", fact.sequence, fact.index));
        reply.bulk(&fact.json);
    }
    Ok(CommandStep::Done)
}

fn place(text: &str) -> Result<(u64, usize)> {
    let read = || {
        let (sequence, index) = text.split_once('-')?;
        Some((sequence.parse().ok()?, index.parse().ok()?))
    };
    read().ok_or_else(|| CommandRefusal::syntax(format!("{text:?} is not a position of an event")))
}

/// The snapshot at which a query reads.
fn moment(
    node: &NodeCore,
    session: &CommandSession,
    aggregate: &AggregateEntry,
    choice: &SnapshotChoice,
) -> Result<NamedSnapshot> {
    let namespace = session.namespace()?.number;
    match choice {
        SnapshotChoice::Shared => {
            let shared = node.snapshots.shared(&node.db, namespace);
            // Another generation may have become current since.
            Ok(if aggregate.answers_at(shared.snapshot.sequence()) {
                shared
            } else {
                node.snapshots.fresh(&node.db, namespace)
            })
        }
        SnapshotChoice::Fresh => Ok(node.snapshots.fresh(&node.db, namespace)),
        SnapshotChoice::Named(name) => node.snapshots.find(name, namespace, node.now()),
    }
}

/// A query, parsed relative to the current time.
pub(crate) fn parse(node: &NodeCore, text: &str) -> Result<AggregateQuery> {
    let now = i64::try_from(node.now()).unwrap_or(i64::MAX);
    Ok(AggregateQuery::parse(text.as_bytes(), now)?)
}

pub(super) fn query(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let aggregate = find(node, session, words.text()?)?;
    let text = body(&mut words)?;
    let query = parse(node, text)?;
    words.end()?;
    let started = Instant::now();
    let moment = moment(node, session, &aggregate, &query.moment)?;
    let question = AnswerKey {
        aggregate: aggregate.number,
        query: text.into(),
        period: node
            .aggregates
            .period(&aggregate, &query, &moment.snapshot)?,
    };
    if let Some(known) = node.answers.find(&moment, &question) {
        node.metrics.repeated_queries.add(1);
        reply.text(&known);
    } else {
        let mut answer = TEXT.take();
        write_answer(node, (&aggregate, &query), &moment, &mut answer)?;
        reply.text(&answer);
        node.answers.keep(&moment, question, &answer);
        answer.shrink_to(KEPT_TEXT_BYTES);
        TEXT.set(answer);
    }
    let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    node.metrics.queries.add(1);
    node.metrics.query_micros.add(micros);
    Ok(CommandStep::Done)
}

fn write_answer(
    node: &NodeCore,
    choice: (&AggregateEntry, &AggregateQuery),
    moment: &NamedSnapshot,
    out: &mut String,
) -> Result<()> {
    out.clear();
    out.push_str(ROWS);
    let seen = (&*moment.snapshot, None);
    node.aggregates.query_json(choice, seen, out)?;
    // Writing to a string does not fail.
    let _ = write!(out, r#","snapshot":"{}"}}"#, moment.name);
    Ok(())
}

/// The maximum number of queries that a connection may watch.
const MAX_WATCHED: usize = 1000;

pub(super) fn watch(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    needs_version_3(session)?;
    let aggregate = find(node, session, words.text()?)?;
    let text = body(&mut words)?;
    let known = if words.take("FROM") {
        Some(words.number::<u64>()?)
    } else {
        None
    };
    words.end()?;
    if session.watches.len() >= MAX_WATCHED {
        let text = "a connection may watch at most 1,000 queries";
        return Err(CommandRefusal::new("TOO_MANY", text));
    }
    let asked_at = node.now();
    let query = parse(node, text)?;
    if query.moment != SnapshotChoice::Shared {
        let text = "/snapshot a watched query always reads the newest snapshot";
        return Err(CommandRefusal::new("BADQUERY", text));
    }
    // Taken before the snapshot: later changes are reported.
    let changed = aggregate.changed();
    let snapshot = node.db.snapshot();
    let answer = node.aggregates.query(&aggregate, &query, &snapshot, None)?;
    let position = snapshot.sequence();
    let is_known = known.is_some_and(|known| changed <= known && known <= position);
    let rows = answer.json();
    let watch = node.watches.enter(
        (&aggregate, text),
        (answer, position, asked_at),
        &session.outbox,
    );
    reply.map(3);
    reply.text("watch");
    reply.integer(watch.number);
    reply.text("position");
    reply.integer(position);
    reply.text("rows");
    if is_known {
        reply.null();
    } else {
        reply.text(&rows);
    }
    session.watches.push(watch);
    Ok(CommandStep::Done)
}

pub(super) fn unwatch(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let number: u64 = words.number()?;
    let place = session.watches.iter().position(|one| one.number == number);
    let watch = place.map(|place| session.watches.swap_remove(place));
    let was_there = watch.is_some_and(|watch| node.watches.leave(&watch));
    reply.integer(u64::from(was_there));
    Ok(CommandStep::Done)
}

pub(super) fn open_snapshot(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let with_sequence = words.take("SEQUENCE");
    words.end()?;
    let opened = node.snapshots.open(&node.db, session.snapshot_owner()?)?;
    if with_sequence {
        reply.array(2);
    }
    reply.text(&opened.name);
    if with_sequence {
        reply.integer(opened.snapshot.sequence());
    }
    Ok(CommandStep::Done)
}

pub(super) fn close_snapshot(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let was_open = node
        .snapshots
        .close(words.text()?, session.snapshot_owner()?);
    reply.integer(u64::from(was_open));
    Ok(CommandStep::Done)
}
