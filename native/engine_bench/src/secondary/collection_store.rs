//! A native collection with indexes of a technique, or with none.

use std::path::Path;
use std::sync::Arc;

use rillbase_collections::{
    CandidateRequest, CollectionWrite, Collections, EmbeddedIndexes, IndexTechnique,
    NativeDefinition, NativeIndex, PlanOrder, WrittenCollection, WrittenResult,
};
use rillbase_documents::id::key;
use rillbase_documents::operation::DocumentOperation;
use rillbase_documents::operations::DocumentOperations;
use rillbase_documents::plan::{NamedTarget, WriteRequest};
use rillbase_documents::precondition::Precondition;
use rillbase_documents::selection::{Selection, SelectionProgress};
use rillbase_documents::selection_request::{CandidateOrder, SelectionRequest};
use rillbase_engine::{
    Clock, Compression, Db, DbOptions, DbSnapshot, Durability, GroupWrite as _, ManualClock,
};
use rillbase_query::bson::{Document, DocumentWriter, Value, ValueRef};
use rillbase_query::ejson::parse_document;
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::index::FieldOrder;
use rillbase_query::sort::Sort;

use super::tweet_store::{TweetField, TweetQuery, TweetStore};
use super::tweets::Tweet;
use crate::store::{Result, StoreSetup};

const COLLECTION: u64 = 1;
const WRITE_VERSION: u64 = 1;
const BY_USER: u32 = 1;

/// A native collection of tweets.
pub(crate) struct CollectionStore {
    db: Arc<Db>,
    collections: Collections,
    clock: Arc<ManualClock>,
    newest_first: Sort,
}

impl CollectionStore {
    /// Opens a collection whose two indexes have a technique; without one there are no indexes.
    pub(crate) fn open(
        dir: &Path,
        setup: &StoreSetup,
        technique: Option<IndexTechnique>,
    ) -> Result<Self> {
        let clock = Arc::new(ManualClock::default());
        let embedded = Arc::default();
        let db = Arc::new(Db::open(dir, options(setup, &clock, &embedded))?);
        let collections = Collections::open(&db, embedded)?;
        let definition = NativeDefinition {
            write_version: WRITE_VERSION,
            indexes: technique.map_or_else(Vec::new, indexes),
            ..NativeDefinition::default()
        };
        collections.define(COLLECTION, definition)?;
        let sort = parse_document(br#"{"sort":[["$updated",-1]]}"#)?;
        let sort = sort.as_ref().get("sort").unwrap_or(ValueRef::Null);
        Ok(Self {
            newest_first: Sort::parse(sort, &ParseLocation::root())?,
            db,
            collections,
            clock,
        })
    }

    /// Candidates become a page as in a server.
    fn selection(
        &self,
        query: &TweetQuery,
        filter: &Filter,
        order: PlanOrder,
    ) -> Result<Selection> {
        let request = SelectionRequest {
            filter: Arc::new(filter.clone()),
            sort: self.newest_first.clone(),
            offset: 0,
            limit: query.limit.unwrap_or(usize::MAX),
            after: None,
            now_ms: i64::try_from(self.db.now())?,
            max_bytes: usize::MAX,
            page_bytes: usize::MAX,
            group: None,
            lookups: None,
            readable: None,
        };
        let arrival = match order {
            PlanOrder::ByTime => CandidateOrder::Ordered,
            PlanOrder::Unordered => CandidateOrder::Unordered,
            PlanOrder::ById | PlanOrder::ByIndex => return Err("a plan of another order".into()),
        };
        Ok(Selection::new(request, arrival))
    }

    fn select(&self, query: &TweetQuery, snapshot: &DbSnapshot) -> Result<Selection> {
        let filter = filter_of(query)?;
        let request = CandidateRequest {
            filter: filter.clone(),
            sort: self.newest_first.clone(),
            documents: query.limit.unwrap_or(usize::MAX),
            in_order: true,
            is_use: true,
        };
        let place = (COLLECTION, WRITE_VERSION);
        let plan = self.collections.plan(place, &request, snapshot)?;
        let mut selection = self.selection(query, &filter, plan.order)?;
        let scan = self
            .collections
            .candidates(COLLECTION, &plan, None, snapshot)?;
        for candidate in scan {
            let candidate = candidate?;
            match selection.feed(std::iter::once(candidate.row())) {
                Ok(SelectionProgress::More) => {}
                Ok(SelectionProgress::Enough) => break,
                Ok(SelectionProgress::Misplaced) => {
                    return Err("the order is not the sort's".into());
                }
                Err(refusal) => return Err(refusal.detail.into()),
            }
        }
        Ok(selection)
    }
}

fn options(
    setup: &StoreSetup,
    clock: &Arc<ManualClock>,
    embedded: &Arc<EmbeddedIndexes>,
) -> DbOptions {
    let options = DbOptions {
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        cache_bytes: setup.cache_bytes,
        // Documents and entries have half of it.
        memtables_bytes: 2 * setup.memtable_bytes,
        ..DbOptions::default()
    };
    let mut options = Collections::options(options, embedded);
    for (_, keyspace) in &mut options.keyspaces {
        keyspace.memtable_bytes = setup.memtable_bytes;
        keyspace.table_bytes = setup.memtable_bytes as u64;
        keyspace.base_bytes = 4 * setup.memtable_bytes as u64;
        keyspace.compression = vec![if setup.lz4 {
            Compression::Lz4
        } else {
            Compression::None
        }];
    }
    options
}

fn indexes(technique: IndexTechnique) -> Vec<NativeIndex> {
    let fields = (BY_USER..).zip([TweetField::User, TweetField::Created]);
    let indexes = fields.map(|(number, field)| NativeIndex {
        number,
        name: format!("by {}", field.name()),
        fields: vec![(field.name().to_owned(), FieldOrder::Ascending)],
        is_unique: false,
        technique,
        is_ready: true,
        embedded_since: 0,
    });
    indexes.collect()
}

fn filter_of(query: &TweetQuery) -> Result<Filter> {
    let mut filter = DocumentWriter::new();
    let (low, high) = (ValueRef::Int64(query.low), ValueRef::Int64(query.high));
    if query.low == query.high {
        filter.append(query.field.name(), low);
        return Ok(Filter::parse(Document::trusted(&filter.finish()))?);
    }
    let mut range = DocumentWriter::new();
    range.append("$gte", low);
    range.append("$lte", high);
    let range = range.finish();
    filter.append(
        query.field.name(),
        ValueRef::Document(Document::trusted(&range)),
    );
    Ok(Filter::parse(Document::trusted(&filter.finish()))?)
}

/// One client's write of one tweet.
fn write_of(tweet: &Tweet) -> Result<CollectionWrite> {
    let id = Value::Int64(i64::from(tweet.id));
    let put = DocumentOperation::replace(id, tweet.document(), true);
    let put = put.map_err(|refusal| refusal.detail)?;
    Ok(CollectionWrite {
        collections: vec![WrittenCollection {
            number: COLLECTION,
            write_version: WRITE_VERSION,
        }],
        request: WriteRequest {
            operations: DocumentOperations::new(vec![Ok(put)]),
            targets: vec![NamedTarget {
                name: String::new(),
                collection: 0,
                access: None,
            }],
            atomic: false,
            expected: Precondition::default(),
        },
        claim: None,
    })
}

impl TweetStore for CollectionStore {
    fn write(&mut self, tweets: &[Tweet], now_ms: u64, durable: bool) -> Result<()> {
        self.clock.set(now_ms);
        let writes = tweets.iter().map(write_of).collect::<Result<_>>()?;
        let durability = if durable {
            Durability::Sync
        } else {
            Durability::Buffered
        };
        let mut staged = self.collections.stage(writes);
        let mut results = self.db.write_group(&mut [&mut staged], durability);
        for outcome in staged.complete(&mut results) {
            match outcome? {
                WrittenResult::Decided(Ok(_)) => {}
                other => return Err(format!("a write was refused: {other:?}").into()),
            }
        }
        Ok(())
    }

    fn get(&self, id: u32) -> Result<bool> {
        let key = key(ValueRef::Int64(i64::from(id))).map_err(|refusal| refusal.detail)?;
        let document = self.collections.get(COLLECTION, &key, None)?;
        self.collections.count_reads(COLLECTION, 1);
        Ok(document.is_some_and(|document| !document.body.is_empty()))
    }

    fn query(&self, query: &TweetQuery) -> Result<Vec<u32>> {
        let snapshot = self.db.snapshot();
        let page = self.select(query, &snapshot)?.finish();
        let ids = page.bodies().map(|body| {
            let id = Document::trusted(body).get("_id");
            let id = id.and_then(|id| id.as_exact_i64());
            Ok(u32::try_from(id.ok_or("a tweet without an id")?)?)
        });
        ids.collect()
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn engine_bytes(&self) -> Option<u64> {
        let stats = self.db.stats();
        Some(stats.batch_bytes + stats.flushed_bytes + stats.compaction_written_bytes)
    }

    fn usage(&self) -> Result<Option<String>> {
        let usage = self.collections.usage(COLLECTION)?;
        let index = usage.indexes.iter().find(|index| index.number == BY_USER);
        let Some(index) = index else {
            return Ok(None);
        };
        let size = self.collections.counts(COLLECTION, None)?;
        let share = self.collections.block_share(COLLECTION, BY_USER)?;
        let figures = [
            ("reads", Some(usage.reads)),
            ("writes", Some(usage.writes)),
            ("lookups", Some(index.lookups)),
            ("newest", Some(index.newest)),
            ("ordered", Some(index.ordered)),
            ("counted", Some(index.counted)),
            ("entries", Some(index.entries)),
            ("block_share", share.map(u64::from)),
            ("documents", Some(size.documents)),
            ("bytes", Some(size.bytes)),
        ];
        let members = figures.map(|(name, figure)| {
            let figure = figure.map_or_else(|| "null".to_owned(), |figure| figure.to_string());
            format!("\"{name}\": {figure}")
        });
        Ok(Some(format!("{{{}}}", members.join(", "))))
    }
}
