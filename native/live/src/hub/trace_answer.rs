//! What is known about one version of a document for one subscription.

use std::cmp::Ordering;

use rillbase_query::bson::{ArrayWriter, Document, DocumentWriter, Value, ValueRef};
use rillbase_query::ejson::{Form, document_to_string};
use rillbase_query::filter::Filter;

use crate::message::{NotificationSource, RemovalReason, ResultRow, StreamId};
use crate::sort_order::SortOrder;

use super::Hub;
use super::change::ResultRows;
use super::client::{ClientPhase, HubClient};
use super::query::HubQuery;
use super::trace::{ChangeType, DeliveryMode, TraceEvent, TracedDelivery};

/// The maximum number of reported changes of the document.
const MAX_CHANGES: usize = 20;

/// The question.
#[derive(Debug, Clone, Copy)]
pub struct TraceRequest<'q> {
    /// The subscription.
    pub client: u64,
    /// The document's key.
    pub key: &'q [u8],
    /// Its version.
    pub version: u64,
    /// The transaction that wrote it, if that is known.
    pub xid: Option<u64>,
    /// Its content at that version in BSON, if that is known and matches.
    pub body: Option<&'q [u8]>,
    /// When the document was created and when this version was written, in milliseconds since 1970,
    /// if that is known.
    pub times_ms: Option<(i64, i64)>,
}

/// A change of the document that the query showed.
struct TracedChange {
    at_us: u64,
    /// The end of the log at that time.
    position: StreamId,
    group: u64,
    version: u64,
    is: ChangeType,
    /// How many changes the group has.
    of: usize,
}

impl Hub {
    /// Returns what is known as a JSON object; `None` if the subscription does not exist.
    pub fn trace(&self, request: &TraceRequest<'_>) -> Option<String> {
        let client = self.clients.get(&request.client)?;
        let query = self.queries.get(&client.query)?;
        let seen = traced_changes(query, request.key);
        let mut writer = DocumentWriter::new();
        let figures = self.figures(request.client);
        let state = figures.map_or("starting", |figures| figures.state);
        text(&mut writer, "state", state);
        describe_query(&mut writer, query, request);
        describe_document(&mut writer, query, request);
        let mut changes = ArrayWriter::new();
        for one in &seen {
            let delivery = client.delivery_of(one.group);
            let change = describe_change(one, delivery, client);
            changes.push(ValueRef::Document(Document::trusted(&change)));
        }
        array(&mut writer, "changes", changes);
        describe_client(&mut writer, client);
        Some(document_to_string(
            Document::trusted(&writer.finish()),
            Form::Relaxed,
        ))
    }
}

/// The document's changes that the query showed, oldest first.
fn traced_changes(query: &HubQuery, key: &[u8]) -> Vec<TracedChange> {
    let mut traced = Vec::new();
    for happened in query.trace.ring.iter().rev() {
        let TraceEvent::Shown {
            at_us,
            position,
            group,
            changes,
        } = happened
        else {
            continue;
        };
        for change in changes.iter().rev().filter(|change| *change.key == *key) {
            traced.push(TracedChange {
                at_us: *at_us,
                position: *position,
                group: *group,
                version: change.version,
                is: change.is,
                of: changes.len(),
            });
        }
        if traced.len() >= MAX_CHANGES {
            break;
        }
    }
    traced.reverse();
    traced
}

fn describe_query(writer: &mut DocumentWriter, query: &HubQuery, request: &TraceRequest<'_>) {
    let definition = &query.definition;
    boolean(writer, "sorted", definition.sorted);
    boolean(writer, "grouped", definition.is_grouped());
    number(writer, "offset", u64::from(definition.offset));
    let limit = definition.limit.map(u64::from);
    maybe(writer, "limit", limit);
    maybe(
        writer,
        "rows",
        query
            .rows
            .as_ref()
            .map(|rows| rows.list().rows.len() as u64),
    );
    boolean(writer, "outdated", query.outdated);
    boolean(writer, "renewing", query.is_renewing());
    let mut sources = ArrayWriter::new();
    for (source, watches) in query.answered() {
        let mut one = DocumentWriter::new();
        match source {
            NotificationSource::Filter(partition) => {
                text(&mut one, "node", "filter");
                number(&mut one, "partition", u64::from(partition));
            }
            NotificationSource::Sort => text(&mut one, "node", "sort"),
        }
        boolean(&mut one, "watches", watches);
        sources.push(ValueRef::Document(Document::trusted(&one.finish())));
    }
    array(writer, "nodes", sources);
    let mut registered = query.trace.ring.iter().rev().filter_map(|one| match one {
        TraceEvent::Registered { at_us, snapshot } => Some((at_us, snapshot)),
        TraceEvent::Shown { .. } => None,
    });
    let last = registered.next();
    maybe(writer, "registered_us", last.map(|(at_us, _)| *at_us));
    let sees = request
        .xid
        .zip(last)
        .map(|(xid, (_, snapshot))| snapshot.sees(xid));
    match sees {
        Some(sees) => boolean(writer, "rows_have_it", sees),
        None => writer.append("rows_have_it", ValueRef::Null),
    }
    let oldest = query.trace.ring.iter().next().map(|one| match one {
        TraceEvent::Shown { at_us, .. } | TraceEvent::Registered { at_us, .. } => *at_us,
    });
    maybe(writer, "remembers_since_us", oldest);
    boolean(writer, "forgot", query.trace.ring.forgotten > 0);
}

fn describe_document(writer: &mut DocumentWriter, query: &HubQuery, request: &TraceRequest<'_>) {
    let listed = query.rows.as_ref().map(ResultRows::list);
    let rows = listed.as_ref().map_or(&[][..], |listed| &listed.rows);
    let held = rows.iter().position(|row| *row.key == *request.key);
    let held_row = held.and_then(|at| rows.get(at));
    let version = held_row.map(|row| row.document_version());
    maybe(writer, "held_version", version);
    let index = held.filter(|_| query.definition.sorted);
    maybe(writer, "held_index", index.map(|index| index as u64));
    if let Some((version, reason)) = query.removal_of(request.key) {
        number(writer, "gone_version", version);
        text(
            writer,
            "gone",
            if reason == RemovalReason::Deleted {
                "deleted"
            } else {
                "left"
            },
        );
    }
    boolean(
        writer,
        "waits_for_batch",
        query.waits_for(request.key, request.version),
    );
    let definition = &query.definition;
    let body = request.body;
    let body = body.filter(|_| definition.sorted && !definition.is_grouped());
    if let Some(position) = body.and_then(|body| relative_position(query, request, body, rows)) {
        text(writer, "place", position);
    }
}

/// The position of a document relative to the rows that are shown.
fn relative_position(
    query: &HubQuery,
    request: &TraceRequest<'_>,
    body: &[u8],
    rows: &[std::sync::Arc<ResultRow>],
) -> Option<&'static str> {
    let filter = Filter::parse(Document::trusted(&query.definition.filter)).ok()?;
    let order = SortOrder::parse(&query.definition, filter).ok()?;
    if order.needs_times() && request.times_ms.is_none() {
        return None;
    }
    let (created_ms, updated_ms) = request.times_ms.unwrap_or_default();
    let row = ResultRow {
        key: request.key.into(),
        version: request.version,
        created_ms,
        updated_ms,
        body: body.into(),
    };
    let its = (order.sort_position(&row)?, &row.key);
    let beside = |other: &ResultRow| {
        let position = order.sort_position(other)?;
        Some(its.0.cmp(&position).then_with(|| its.1.cmp(&other.key)))
    };
    let (first, last) = (rows.first()?, rows.last()?);
    Some(match (beside(first)?, beside(last)?) {
        (Ordering::Less, _) => "before",
        (_, Ordering::Greater) => "behind",
        _ => "inside",
    })
}

fn describe_change(
    seen: &TracedChange,
    delivery: Option<&TracedDelivery>,
    client: &HubClient,
) -> Vec<u8> {
    let mut writer = DocumentWriter::new();
    number(&mut writer, "at_us", seen.at_us);
    let position = format!("{}-{}", seen.position.ms, seen.position.number);
    text(&mut writer, "position", &position);
    number(&mut writer, "version", seen.version);
    text(&mut writer, "match", seen.is.name());
    number(&mut writer, "of", seen.of as u64);
    let Some(delivery) = delivery else {
        text(&mut writer, "told", client.undelivered_reason(seen.group));
        return writer.finish();
    };
    text(&mut writer, "told", delivery.how.name());
    if let DeliveryMode::Reset(reason) = delivery.how {
        text(&mut writer, "reason", reason);
    }
    number(&mut writer, "told_us", delivery.at_us);
    let groups = delivery.groups.1.saturating_sub(delivery.groups.0) + 1;
    if delivery.groups.0 > 0 {
        number(&mut writer, "groups", groups);
    }
    if delivery.events.0 <= delivery.events.1 {
        number(&mut writer, "first_event", delivery.events.0);
        number(&mut writer, "last_event", delivery.events.1);
    }
    let (state, in_front) = client.delivery_state(delivery);
    text(&mut writer, "delivery", state);
    number(&mut writer, "in_front", in_front);
    writer.finish()
}

fn describe_client(writer: &mut DocumentWriter, client: &HubClient) {
    let phase = match &client.phase {
        ClientPhase::Waiting => "waiting",
        ClientPhase::Resuming(_) | ClientPhase::Replaying(..) => "resuming",
        ClientPhase::Running => "running",
        ClientPhase::CutOff => "cut_off",
    };
    text(writer, "phase", phase);
    boolean(writer, "ready", client.ready);
    number(writer, "seq", client.seq);
    number(writer, "frames_waiting", client.outbox.waiting() as u64);
    let oldest = client.trace.ring.iter().next();
    maybe(
        writer,
        "client_remembers_since_us",
        oldest.map(|delivery| delivery.at_us),
    );
    boolean(writer, "client_forgot", client.trace.ring.forgotten > 0);
}

impl HubClient {
    /// How a group of its query was delivered, by the first entry that covers it.
    fn delivery_of(&self, group: u64) -> Option<&TracedDelivery> {
        let covers =
            |delivery: &&TracedDelivery| delivery.groups.0 <= group && group <= delivery.groups.1;
        let exact = |delivery: &&TracedDelivery| delivery.groups.0 > 0;
        let mut deliveries = self.trace.ring.iter().filter(covers);
        let first = deliveries.next()?;
        // A single delivery says more than the results that followed.
        let by_itself = self.trace.ring.iter().filter(covers).find(exact);
        Some(by_itself.unwrap_or(first))
    }

    /// Why nothing is recorded about a group.
    fn undelivered_reason(&self, group: u64) -> &'static str {
        if self.trace.since.is_some_and(|since| since <= group) {
            return "held";
        }
        match self.phase {
            ClientPhase::Waiting | ClientPhase::Resuming(_) | ClientPhase::Replaying(..) => {
                "waiting"
            }
            ClientPhase::CutOff => "cut_off",
            ClientPhase::Running if self.trace.ring.forgotten > 0 => "forgotten",
            ClientPhase::Running => "before",
        }
    }

    /// How far a delivery has progressed to the client, and how much is ahead of it.
    fn delivery_state(&self, delivery: &TracedDelivery) -> (&'static str, u64) {
        if matches!(delivery.how, DeliveryMode::Muted | DeliveryMode::Reset(_)) {
            return ("none", 0);
        }
        // By their order, since clocks are set back.
        let latest_first = self.trace.ring.iter().rev();
        let mut later = latest_first.take_while(|one| !std::ptr::eq(*one, delivery));
        let is_dropped = later
            .any(|one| matches!(one.how, DeliveryMode::Reset(_)) && one.number < delivery.number);
        if is_dropped {
            return ("dropped", 0);
        }
        let (handed, taken) = self.outbox.numbers();
        if delivery.number <= taken {
            ("taken", 0)
        } else if delivery.number <= handed {
            ("handed", delivery.number - taken - 1)
        } else {
            ("waiting", delivery.number - taken - 1)
        }
    }
}

fn text(writer: &mut DocumentWriter, name: &str, value: &str) {
    writer.append(name, ValueRef::String(value));
}

fn boolean(writer: &mut DocumentWriter, name: &str, value: bool) {
    writer.append(name, ValueRef::Bool(value));
}

fn number(writer: &mut DocumentWriter, name: &str, value: u64) {
    writer.append(
        name,
        ValueRef::Int64(i64::try_from(value).unwrap_or(i64::MAX)),
    );
}

fn maybe(writer: &mut DocumentWriter, name: &str, value: Option<u64>) {
    match value {
        Some(value) => number(writer, name, value),
        None => writer.append(name, ValueRef::Null),
    }
}

fn array(writer: &mut DocumentWriter, name: &str, value: ArrayWriter) {
    writer.append(name, Value::Array(value.into()).as_ref());
}
