//! Collections in memory, which tests write to and open again.

use std::sync::Arc;

use rillbase_collections::{
    CollectionWrite, Collections, IndexTechnique, NativeDefinition, NativeIndex, Result,
    WriteOutcome, WrittenCollection, WrittenResult,
};
use rillbase_documents::elements::DocumentLimits;
use rillbase_documents::operation::DocumentOperation;
use rillbase_documents::operations::DocumentOperations;
use rillbase_documents::outcome::WriteResult;
use rillbase_documents::plan::{NamedTarget, WriteRequest};
use rillbase_documents::precondition::Precondition;
use rillbase_engine::vfs::{MemoryVfs, Vfs};
use rillbase_engine::wal::WalOptions;
use rillbase_engine::{Clock, Db, DbOptions, Durability, GroupWrite as _, ManualClock};
use rillbase_query::index::FieldOrder;

/// A database with collections.
pub(crate) struct OpenedCollections {
    vfs: Arc<MemoryVfs>,
    retained_log_bytes: u64,
    block_bytes: Option<usize>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) db: Arc<Db>,
    pub(crate) collections: Collections,
}

impl OpenedCollections {
    pub(crate) fn new() -> Self {
        Self::retaining(0)
    }

    /// Retains this much of the log for readers of changes.
    pub(crate) fn retaining(retained_log_bytes: u64) -> Self {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000));
        Self::open(Arc::default(), clock, (retained_log_bytes, None))
    }

    /// With blocks of tables of this size.
    pub(crate) fn with_blocks(block_bytes: usize) -> Self {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000));
        Self::open(Arc::default(), clock, (0, Some(block_bytes)))
    }

    fn open(
        vfs: Arc<MemoryVfs>,
        clock: Arc<ManualClock>,
        (retained_log_bytes, block_bytes): (u64, Option<usize>),
    ) -> Self {
        let options = DbOptions {
            vfs: Arc::clone(&vfs) as Arc<dyn Vfs>,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            background_threads: 0,
            retained_log_bytes,
            log: WalOptions {
                segment_bytes: 64 << 10,
                ..WalOptions::default()
            },
            ..DbOptions::default()
        };
        let embedded = Arc::default();
        let mut options = Collections::options(options, &embedded);
        for (_, keyspace) in &mut options.keyspaces {
            keyspace.block_bytes = block_bytes.unwrap_or(keyspace.block_bytes);
        }
        let db = Arc::new(Db::open("/db", options).unwrap());
        Self {
            collections: Collections::open(&db, embedded).unwrap(),
            vfs,
            retained_log_bytes,
            block_bytes,
            clock,
            db,
        }
    }

    /// Closes and opens the database; no snapshot may be open.
    pub(crate) fn reopened(self) -> Self {
        let Self {
            vfs,
            retained_log_bytes,
            block_bytes,
            clock,
            db,
            collections,
        } = self;
        drop((collections, db));
        Self::open(vfs, clock, (retained_log_bytes, block_bytes))
    }

    /// Writes a group without claims, and returns the results in order.
    pub(crate) fn write(&self, writes: Vec<CollectionWrite>) -> Vec<Result<WriteResult>> {
        let decided = |written| match written {
            WrittenResult::Decided(result) => result,
            WrittenResult::Claimed(_) => panic!("a write has a claim"),
        };
        let outcomes = self.outcomes(writes).into_iter();
        outcomes.map(|outcome| outcome.map(decided)).collect()
    }

    /// Writes a group, and returns the outcomes in order.
    pub(crate) fn outcomes(&self, writes: Vec<CollectionWrite>) -> Vec<WriteOutcome> {
        let mut staged = self.collections.stage(writes);
        let mut results = self
            .db
            .write_group(&mut [&mut staged], Durability::Buffered);
        staged.complete(&mut results)
    }
}

/// A definition with these indexes.
pub(crate) fn definition(write_version: u64, indexes: Vec<NativeIndex>) -> NativeDefinition {
    NativeDefinition {
        write_version,
        rules_version: 5,
        schema: None,
        limits: DocumentLimits::default(),
        indexes,
        version_floor: 0,
        move_stage: None,
    }
}

pub(crate) fn index(
    number: u32,
    name: &str,
    fields: &[(&str, i32)],
    is_unique: bool,
) -> NativeIndex {
    let fields = fields.iter();
    NativeIndex {
        number,
        name: name.into(),
        fields: fields
            .map(|(path, way)| ((*path).into(), FieldOrder::directed(*way)))
            .collect(),
        is_unique,
        technique: IndexTechnique::Composite,
        is_ready: true,
        embedded_since: 0,
    }
}

/// An index whose documents are in the order of their times.
pub(crate) fn index_by_time(
    number: u32,
    name: &str,
    fields: &[(&str, i32)],
    technique: IndexTechnique,
) -> NativeIndex {
    NativeIndex {
        technique,
        ..index(number, name, fields, false)
    }
}

/// A write of collections that operations name by their numbers.
pub(crate) fn write_of(
    numbers: &[u64],
    write_version: u64,
    operations: Vec<(u64, DocumentOperation)>,
    atomic: bool,
) -> CollectionWrite {
    let operations = operations.into_iter().map(|(collection, operation)| {
        Ok(DocumentOperation {
            collection: Some(collection.to_string()),
            ..operation
        })
    });
    let targets = numbers.iter().enumerate();
    let targets = targets.map(|(position, number)| NamedTarget {
        name: number.to_string(),
        collection: position,
        access: None,
    });
    let collections = numbers.iter().map(|number| WrittenCollection {
        number: *number,
        write_version,
    });
    CollectionWrite {
        collections: collections.collect(),
        request: WriteRequest {
            operations: DocumentOperations::new(operations.collect()),
            targets: targets.collect(),
            atomic,
            expected: Precondition::default(),
        },
        claim: None,
    }
}
