//! Native collections: documents and their indexes in the storage engine.
//!
//! A write is decided by the crate of documents; this crate finds the rows that it needs, and stores
//! what it changes. In the order in which data flows:
//!
//! - `declaration.rs` — a collection as a server declares it; `definition.rs` — as it is stored: its
//!   versions, schema and indexes.
//! - `write.rs` — the commit queue: writes of a collection are decided one group after another, and
//!   become visible before the next group starts. [`StagedCollectionWrites`] is a part of the
//!   engine's groups, which share one sync.
//! - `claim.rs` — what a server records with a write, so that it is executed once.
//! - `decision.rs` — reads the rows of a group, decides its writes, and makes its batch.
//! - `feed.rs` — the changes of documents, read from the log.
//! - `index_build.rs` — the entries of an index for documents that were written before it.
//! - `index_check.rs` — compares stored entries with those that the documents have.
//! - `copied_documents.rs` — documents that are copied from another backend; `changed_documents.rs` —
//!   those that were changed since a move to another backend began.
//! - `format.rs` — keys and values; `counters.rs` — merges for counts and version floors.
//! - `entry_changes.rs` — the entries of indexes that a batch removes and adds; `entry_list.rs` —
//!   the lists of eager indexes.
//! - `embedded.rs` — the values of embedded indexes, which tables record; `embedded_entries.rs` —
//!   documents by them.
//! - `plan.rs` — how the candidates of a query are read; `candidate_scan.rs` — documents by key, and
//!   candidates. The server decides which of them match. `ordered_entries.rs`, `newest_entries.rs`
//!   and `unordered_entries.rs` — the entries of an index in its order, in that of times, and in any.
//!   `document_scan.rs` — all documents in order.
//! - `usage.rs` — how often collections and indexes were used; `block_share.rs` — how many blocks of
//!   documents a value of an index leaves to be read.
//! - `store.rs` — [`Collections`]: all of it over one database.
#![allow(
    clippy::missing_errors_doc,
    reason = "every fallible function fails with an Error that names its code; saying so each time adds nothing"
)]
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]

mod block_share;
mod candidate_scan;
mod changed_documents;
mod claim;
mod copied_documents;
mod counters;
mod decision;
mod declaration;
mod definition;
mod document_scan;
mod embedded;
mod embedded_entries;
mod entry_changes;
mod entry_list;
mod error;
mod feed;
mod format;
mod index_build;
mod index_check;
mod newest_entries;
mod ordered_entries;
mod plan;
mod store;
mod unordered_entries;
mod usage;
mod write;

pub use candidate_scan::{Candidate, CandidatePosition, CandidateScan, DocumentRecord};
pub use changed_documents::ChangedCopy;
pub use claim::{ClaimRecord, ClaimedResult, CollectionClaim};
pub use copied_documents::CopiedDocument;
pub use definition::{IndexTechnique, MoveStage, NativeDefinition, NativeIndex};
pub use document_scan::DocumentScan;
pub use embedded::EmbeddedIndexes;
pub use error::{Error, Result};
pub use feed::{CollectionFeed, LoggedDocument, LoggedTransaction};
pub use format::DocumentHead;
pub use index_build::{BuiltPart, IndexBuild};
pub use index_check::{CheckedPart, EntryFault};
pub use plan::{CandidateRequest, PlanOrder, ScanPlan};
pub use store::{CollectionSize, Collections};
pub use usage::{CollectionUsage, IndexUsage};
pub use write::{
    CollectionWrite, StagedCollectionWrites, WriteOutcome, WrittenCollection, WrittenResult,
};
