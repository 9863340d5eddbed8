//! Native collections: definitions, writes and their claims, index builds, documents by key,
//! candidates of queries.
//!
//! Requests of writes, their results, plans and rows are bytes whose formats are in
//! `native/documents` and `native/collections`: they travel between servers and nodes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rillbase_collections::{
    CandidatePosition, CandidateRequest, CandidateScan, CollectionClaim, CollectionWrite,
    DocumentRecord, IndexBuild, NativeDefinition, PlanOrder, ScanPlan, WrittenCollection,
    WrittenResult,
};
use rillbase_documents::plan::WriteRequest;
use rillbase_documents::row_format::put_row;
use rillbase_documents::version_format::{VersionRow, put_version};
use rillbase_documents::write_format::encode_result;
use rillbase_engine::DbSnapshot;
use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::sort::Sort;

use super::follow::REPLY_BYTES;
use super::upkeep::{boxed_chore, chore};
use super::values::at;
use super::{Chore, CommandStep};
use crate::catalog::Namespace;
use crate::document::{self, Format};
use crate::group::{CommandWrite, GroupOutcome, missing_outcome};
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::snapshots::NamedSnapshot;
use crate::words::{Words, unknown};

const DEFAULT_COUNT: usize = 100;
const MAX_COUNT: usize = 10_000;
const BUILD_COUNT: usize = 1_000;
/// The longest key of a claim.
const MAX_CLAIM_KEY: usize = 64;
/// A reply ends after this time, or after this many candidates: the next request continues.
pub(super) const MAX_TIME: Duration = Duration::from_millis(20);
pub(super) const MAX_EXAMINED: usize = 10_000;

/// Reads the name of a collection and the version of its definition that the caller has. Returns the
/// collection's number, and the version.
pub(super) fn place(session: &CommandSession, words: &mut Words<'_>) -> Result<(u64, u64)> {
    let collection = session.namespace()?.collection(words.text()?)?;
    Ok((collection, words.number()?))
}

/// Reads the option `COUNT`.
pub(super) fn count(words: &mut Words<'_>, default: usize, most: usize) -> Result<usize> {
    if !words.take("COUNT") {
        return Ok(default);
    }
    Ok(words.number::<usize>()?.clamp(1, most))
}

pub(super) fn define(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (name, definition) = (words.text()?, read_document(session, words.next()?)?);
    let definition = NativeDefinition::parse(Document::trusted(&definition))?;
    let number = node.catalog.create_collection(session.namespace()?, name)?;
    node.collections.define(number, definition)?;
    reply.ok();
    Ok(CommandStep::Done)
}

pub(super) fn drop(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (namespace, name) = (session.namespace()?, words.text()?);
    let number = namespace.collection(name);
    if let Ok(number) = number {
        // Its name last: if this is interrupted, it can be repeated.
        node.collections.remove(number)?;
        node.catalog.drop_collection(namespace, name)?;
    }
    reply.integer(u64::from(number.is_ok()));
    Ok(CommandStep::Done)
}

pub(super) fn info(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let name = words.text()?;
    let number = session.namespace()?.collection(name)?;
    let named = at(node, session, &mut words)?;
    words.end()?;
    let definition = node.collections.definition(number)?;
    let snapshot = named.as_ref().map(|named| &*named.snapshot);
    let counts = node.collections.counts(number, snapshot)?;
    let floor = node.collections.version_floor(number)?;
    let figures = [
        ("write_version", definition.write_version),
        ("rules_version", definition.rules_version),
        ("documents", counts.documents),
        ("bytes", counts.bytes),
        ("version_floor", u64::try_from(floor).unwrap_or(0)),
    ];
    reply.map(figures.len() + 1);
    for (name, figure) in figures {
        reply.text(name);
        reply.integer(figure);
    }
    reply.text("indexes");
    reply.array(definition.indexes.len());
    for index in &definition.indexes {
        reply.map(5);
        reply.text("number");
        reply.integer(u64::from(index.number));
        reply.text("name");
        reply.text(&index.name);
        reply.text("unique");
        reply.integer(u64::from(index.is_unique));
        reply.text("technique");
        reply.text(index.technique.name());
        reply.text("ready");
        reply.integer(u64::from(index.is_ready));
    }
    Ok(CommandStep::Done)
}

pub(super) fn write(
    _: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
) -> Result<CommandWrite> {
    let namespace = session.namespace()?;
    let claim = words
        .take("CLAIM")
        .then(|| read_claim(namespace, &mut words));
    let claim = claim.transpose()?;
    let request = WriteRequest::decode(words.next()?)
        .map_err(|error| CommandRefusal::syntax(format!("the request is malformed: {error}")))?;
    let mut collections = Vec::new();
    while !words.is_empty() {
        let number = namespace.collection(words.text()?);
        collections.push(WrittenCollection {
            // The result may be recorded although the collection was dropped.
            number: number.unwrap_or(WrittenCollection::MISSING),
            write_version: words.number()?,
        });
    }
    if collections.is_empty() {
        return Err(CommandRefusal::syntax(
            "a collection and its version are missing",
        ));
    }
    Ok(CommandWrite::Collections(Box::new(CollectionWrite {
        collections,
        request,
        claim,
    })))
}

/// A write of its own group, which takes long.
pub(super) fn long_write(version: u8, write: CommandWrite) -> Chore {
    let work = move |node: &Arc<NodeCore>| {
        let outcome = node.commit(&[&write]).pop();
        outcome.unwrap_or_else(|| Err(missing_outcome()))
    };
    boxed_chore(version, work, |reply, outcome| {
        if let GroupOutcome::Written(result) = outcome {
            write_result(&result, reply);
        }
    })
}

fn read_claim(namespace: &Namespace, words: &mut Words<'_>) -> Result<CollectionClaim> {
    let key = words.next()?.to_vec();
    if !(1..=MAX_CLAIM_KEY).contains(&key.len()) {
        return Err(CommandRefusal::syntax(format!(
            "the key of a claim has 1 to {MAX_CLAIM_KEY} bytes"
        )));
    }
    Ok(CollectionClaim {
        namespace: namespace.number,
        key,
        request_hash: words.next()?.to_vec(),
        state: words.next()?.to_vec(),
    })
}

/// Writes the result of a write: as bytes, or after whether it was replayed and the state of its
/// claim.
pub(super) fn write_result(result: &WrittenResult, reply: &mut ReplyWriter<'_>) {
    match result {
        WrittenResult::Decided(result) => reply.bulk(&encode_result(result)),
        WrittenResult::Claimed(claimed) => {
            reply.array(3);
            reply.integer(u64::from(claimed.is_replayed));
            reply.bulk(&claimed.record.state);
            reply.bulk(&claimed.record.result);
        }
    }
}

pub(super) fn build(
    _: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    _: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let mut build = IndexBuild {
        collection: session.namespace()?.collection(words.text()?)?,
        write_version: words.number()?,
        index: words.number()?,
        after: None,
        documents: BUILD_COUNT,
    };
    while !words.is_empty() {
        match words.keyword()?.as_str() {
            "AFTER" => build.after = Some(words.next()?.to_vec()),
            "COUNT" => build.documents = words.number::<usize>()?.clamp(1, MAX_COUNT),
            other => return Err(unknown(other.as_bytes())),
        }
    }
    let work = move |node: &Arc<NodeCore>| Ok(node.collections.build_index(&build)?);
    Ok(chore(session.version, work, |reply, part| {
        reply.map(2);
        reply.text("documents");
        reply.integer(part.documents as u64);
        reply.text("after");
        match &part.after {
            Some(key) => reply.bulk(key),
            None => reply.null(),
        }
    }))
}

pub(super) fn get(
    node: &NodeCore,
    session: &mut CommandSession,
    words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let (number, count) = lookup(node, session, words, reply, |rows, key, document| {
        if let Some(document) = document.filter(|document| !document.head.is_tombstone) {
            put_row(rows, &document.row(key, None));
        }
    })?;
    node.collections.count_reads(number, count);
    Ok(CommandStep::Done)
}

pub(super) fn versions(
    node: &NodeCore,
    session: &mut CommandSession,
    words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    lookup(node, session, words, reply, |rows, _, document| {
        let version = document.as_ref().map(|document| VersionRow {
            number: document.head.version,
            xid: document.batch,
            body: (!document.head.is_tombstone).then_some(&document.body),
        });
        put_version(rows, &version.unwrap_or_default());
    })?;
    Ok(CommandStep::Done)
}

/// Reads documents and tombstones by their keys; `put` appends what is stored under a key. Returns
/// the collection, and how many keys were read.
fn lookup(
    node: &NodeCore,
    session: &CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
    put: impl Fn(&mut Vec<u8>, &[u8], Option<DocumentRecord>),
) -> Result<(u64, u64)> {
    let number = session.namespace()?.collection(words.text()?)?;
    node.collections.check_version(number, words.number()?)?;
    let read_at = match at(node, session, &mut words)? {
        Some(named) => QuerySnapshot::Named(named),
        None => QuerySnapshot::Own(node.db.snapshot()),
    };
    let snapshot = Some(read_at.snapshot());
    let (mut rows, mut count) = (Vec::new(), 0);
    while !words.is_empty() && rows.len() < REPLY_BYTES {
        let key = words.next()?;
        count += 1;
        let document = node.collections.get_or_tombstone(number, key, snapshot)?;
        put(&mut rows, key, document);
    }
    // The caller requests the remaining keys again.
    reply.array(2);
    reply.bulk(&rows);
    reply.integer(count);
    Ok((number, count))
}

/// The snapshot of a query.
enum QuerySnapshot {
    Named(NamedSnapshot),
    /// Kept only if the query continues.
    Own(DbSnapshot),
}

impl QuerySnapshot {
    fn snapshot(&self) -> &DbSnapshot {
        match self {
            Self::Named(named) => &named.snapshot,
            Self::Own(snapshot) => snapshot,
        }
    }
}

/// The options of a query.
struct QueryWords {
    plan: Option<ScanPlan>,
    /// The number of the index that was read, and the position in it.
    after: Option<(u32, CandidatePosition)>,
    named: Option<NamedSnapshot>,
    /// How many documents the caller needs.
    documents: usize,
    in_order: bool,
    /// The time of the filter.
    now_ms: i64,
    count: usize,
    bytes: usize,
}

impl QueryWords {
    fn read(node: &NodeCore, session: &CommandSession, mut words: Words<'_>) -> Result<Self> {
        let mut options = Self {
            plan: None,
            after: None,
            named: None,
            documents: DEFAULT_COUNT,
            in_order: true,
            now_ms: i64::try_from(node.now()).unwrap_or(i64::MAX),
            count: DEFAULT_COUNT,
            bytes: REPLY_BYTES,
        };
        while !words.is_empty() {
            if let Some(named) = at(node, session, &mut words)? {
                options.named = Some(named);
                continue;
            }
            match words.keyword()?.as_str() {
                "PLAN" => options.plan = Some(ScanPlan::decode(words.next()?)?),
                "AFTER" => {
                    let index = words.number()?;
                    let position = CandidatePosition {
                        entry: words.next()?.to_vec(),
                        document: words.next()?.to_vec(),
                    };
                    options.after = Some((index, position));
                }
                "DOCUMENTS" => options.documents = words.number()?,
                "UNORDERED" => options.in_order = false,
                "NOW" => options.now_ms = words.number()?,
                "COUNT" => options.count = words.number::<usize>()?.min(MAX_COUNT),
                "BYTES" => options.bytes = words.number::<usize>()?.min(REPLY_BYTES),
                other => return Err(unknown(other.as_bytes())),
            }
        }
        Ok(options)
    }
}

pub(super) fn query(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let number = session.namespace()?.collection(words.text()?)?;
    let version = words.number()?;
    node.collections.check_version(number, version)?;
    let filter = read_filter(session, words.next()?)?;
    let sort = read_sort(words.next()?, &filter)?;
    let mut options = QueryWords::read(node, session, words)?;
    let read_at = match options.named.take() {
        Some(named) => QuerySnapshot::Named(named),
        None => QuerySnapshot::Own(node.db.snapshot()),
    };
    let snapshot = read_at.snapshot();
    let continues = options.plan.is_some();
    let plan = if let Some(plan) = options.plan.take() {
        plan
    } else {
        let request = CandidateRequest {
            filter: filter.clone(),
            sort,
            documents: options.documents,
            in_order: options.in_order,
            is_use: options.count > 0,
        };
        let place = (number, version);
        node.collections.plan(place, &request, snapshot)?
    };
    let after = options
        .after
        .take()
        .filter(|(index, after)| match plan.order {
            // If the page before was read in another way, this one is read from the beginning.
            PlanOrder::ByIndex | PlanOrder::ByTime => {
                *index == plan.index && (continues || !after.entry.is_empty())
            }
            PlanOrder::ById => true,
            PlanOrder::Unordered => continues,
        });
    let after = after.map(|(_, position)| position);
    let part = if options.count == 0 {
        ScannedPart::default()
    } else {
        let collections = &node.collections;
        if continues && after.is_none() {
            collections.count_reads(number, 1);
        }
        let scan = collections.candidates(number, &plan, after, snapshot)?;
        ScannedPart::read(scan.without_repetitions(), &filter, &options)?
    };
    node.collections.check_index(number, &plan)?;
    let name = match read_at {
        QuerySnapshot::Named(named) => Some(named.name),
        QuerySnapshot::Own(own) if part.position.is_some() => {
            let namespace = session.namespace()?.number;
            Some(node.snapshots.register(own, namespace).name)
        }
        QuerySnapshot::Own(_) => None,
    };
    write_plan(reply, &plan);
    part.write(reply, plan.index, name.as_deref());
    Ok(CommandStep::Done)
}

/// The candidates of a reply.
#[derive(Default)]
struct ScannedPart {
    rows: Vec<u8>,
    examined: usize,
    /// The position after which more may follow.
    position: Option<CandidatePosition>,
}

impl ScannedPart {
    /// Reads candidates that match, or that cannot be evaluated, which the caller reports.
    fn read(scan: CandidateScan<'_>, filter: &Filter, options: &QueryWords) -> Result<Self> {
        let started = Instant::now();
        let mut part = Self::default();
        let mut count = 0;
        for candidate in scan {
            let candidate = candidate?;
            part.examined += 1;
            let body = Document::trusted(&candidate.document.body);
            let context = EvaluationContext::at(options.now_ms);
            if filter.matches_in(body, &context) != Ok(false) {
                put_row(&mut part.rows, &candidate.row());
                count += 1;
            }
            let is_full = count >= options.count || part.rows.len() >= options.bytes;
            if is_full || part.examined >= MAX_EXAMINED || started.elapsed() > MAX_TIME {
                part.position = Some(candidate.position);
                break;
            }
        }
        Ok(part)
    }

    /// Writes the second half of a reply.
    fn write(&self, reply: &mut ReplyWriter<'_>, index: u32, snapshot: Option<&str>) {
        reply.text("examined");
        reply.integer(self.examined as u64);
        reply.text("rows");
        reply.bulk(&self.rows);
        reply.text("after");
        match &self.position {
            Some(position) => {
                reply.array(3);
                reply.integer(u64::from(index));
                reply.bulk(&position.entry);
                reply.bulk(&position.document);
            }
            None => reply.null(),
        }
        reply.text("snapshot");
        match snapshot {
            Some(name) => reply.text(name),
            None => reply.null(),
        }
    }
}

/// Writes the first half of a reply.
fn write_plan(reply: &mut ReplyWriter<'_>, plan: &ScanPlan) {
    reply.map(9);
    reply.text("plan");
    reply.bulk(&plan.encode());
    reply.text("index");
    reply.integer(u64::from(plan.index));
    reply.text("order");
    reply.text(match plan.order {
        PlanOrder::Unordered => "any",
        PlanOrder::ById => "id",
        PlanOrder::ByIndex => "index",
        PlanOrder::ByTime => "time",
    });
    reply.text("backward");
    reply.integer(u64::from(plan.is_backward));
    reply.text("entries");
    match plan.entries {
        Some(entries) => reply.integer(entries as u64),
        None => reply.null(),
    }
}

fn read_document(session: &CommandSession, word: &[u8]) -> Result<Vec<u8>> {
    match session.format {
        Format::Json => document::from_json(word),
        Format::Bson => document::from_bson(word),
    }
}

fn read_filter(session: &CommandSession, word: &[u8]) -> Result<Filter> {
    let document = read_document(session, word)?;
    Ok(Filter::parse(Document::trusted(&document))?)
}

/// A sort as JSON; null: that of the filter.
fn read_sort(word: &[u8], filter: &Filter) -> Result<Sort> {
    let value = rillbase_query::ejson::parse_value(word)?;
    match value.as_ref() {
        ValueRef::Null => Ok(filter.default_sort()),
        value => Ok(Sort::parse(value, &ParseLocation::root())?),
    }
}
