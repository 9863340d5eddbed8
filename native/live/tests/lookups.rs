//! A sort node that keeps documents with lookups: its requests and its reports.

use std::sync::Arc;

use crate::common::{COLLECTION, at, bson, hash, lines, notification, query, tick, until};
use rillbase_live::message::{
    AfterImage, FencingToken, FetchId, FetchedDocument, Foreign, ImageContent, LookupSide,
    NodeEvent, NodeRequest, Notification, NotificationSource, QueryDefinition, QueryHash,
    ResultRow,
};
use rillbase_live::node::{Begin, NodeOutput};
use rillbase_live::snapshot::PgSnapshot;
use rillbase_live::sort_node::{Input, SortNode, SortNodeConfig};
use rillbase_query::bson::ValueRef;

const PEOPLE: [u8; 16] = [8; 16];

fn side() -> LookupSide {
    LookupSide::new([1; 16], PEOPLE, 0, bson("{}"))
}

/// All documents, each with the person whom its `by` names.
fn with_people() -> QueryDefinition {
    QueryDefinition {
        sorted: true,
        lookups: bson(r#"{"lookup":[{"from":"people","local":"by","as":"by"}]}"#),
        sides: [side()].into(),
        ..query("s", "{}")
    }
}

fn key(id: &str) -> Arc<[u8]> {
    let key = rillbase_documents::id::key(ValueRef::String(id));
    key.unwrap_or_else(|refusal| panic!("{refusal:?}")).into()
}

fn document(id: &str, by: &str) -> Arc<[u8]> {
    bson(&format!(r#"{{"_id":"{id}","by":"{by}"}}"#))
}

fn person(id: &str, age: u64) -> Arc<[u8]> {
    bson(&format!(r#"{{"_id":"{id}","age":{age}}}"#))
}

fn row(id: &str, body: Arc<[u8]>) -> ResultRow {
    ResultRow {
        key: key(id),
        version: 1,
        created_ms: 0,
        updated_ms: 0,
        body,
    }
}

fn image(xid: u64, id: &str, version: u64, content: ImageContent) -> AfterImage {
    AfterImage {
        xid,
        tenant: [1; 16],
        collection: COLLECTION,
        version,
        rules_version: 0,
        created_ms: 0,
        written_us: 0,
        key: key(id),
        content,
        parts: [].into(),
    }
}

/// A write by which a document refers to a person.
fn refers(xid: u64, id: &str, version: u64, by: &str) -> AfterImage {
    image(xid, id, version, ImageContent::Document(document(id, by)))
}

/// A write of a person.
fn ages(xid: u64, id: &str, version: u64) -> AfterImage {
    image(
        xid,
        id,
        version,
        ImageContent::Document(person(id, version)),
    )
}

fn both(image: AfterImage) -> AfterImage {
    AfterImage {
        parts: [0, 1].into(),
        ..image
    }
}

fn fetched(id: &str, version: u64, xid: u64) -> FetchedDocument {
    FetchedDocument {
        key: key(id),
        version,
        xid,
        body: (version > 0).then(|| person(id, version)),
    }
}

/// A node, and the log with the reports of two filter nodes: 0 for documents, 1 for people.
struct Stage {
    node: SortNode,
    said: [u64; 2],
    read: u64,
    requests: u64,
    now_us: u64,
    /// Its last request.
    fetch: Option<FetchId>,
}

impl Stage {
    /// A node with the document `a`, which refers to `ann`, from a snapshot below 10.
    fn new() -> Self {
        let mut stage = Self {
            node: SortNode::new(SortNodeConfig::new(2, FencingToken(7))),
            said: [0, 0],
            read: 100,
            requests: 0,
            now_us: 1_000_000,
            fetch: None,
        };
        let begin = Begin {
            position: at(100),
            count: 0,
            requests: at(0),
            snapshot: until(10),
            rules: std::collections::HashMap::new(),
        };
        for input in [Input::Start, Input::Begin(begin), Input::End] {
            stage.give(input);
        }
        let ann = Foreign {
            rows: vec![row("ann", person("ann", 1))],
            complete: false,
        };
        let registered = stage.request(NodeRequest::Register {
            query: with_people(),
            positions: Vec::new(),
            snapshot: until(10),
            rows: vec![row("a", document("a", "ann"))],
            complete: true,
            foreign: vec![ann],
            renewal: false,
        });
        assert!(registered.is_empty());
        assert!(stage.accept(0).is_empty());
        assert_eq!(stage.accept(1).len(), 2);
        stage
    }

    fn give(&mut self, input: Input) -> Vec<String> {
        let mut out = Vec::new();
        self.node.handle(input, self.now_us, &mut out);
        for output in &out {
            if let NodeOutput::Notify(Notification {
                event: NodeEvent::Fetch { fetch, .. },
                ..
            }) = output
            {
                self.fetch = Some(*fetch);
            }
        }
        let lines = lines(&out).into_iter();
        lines.map(|line| without_versions(&line)).collect()
    }

    fn request(&mut self, request: NodeRequest) -> Vec<String> {
        self.requests += 1;
        let id = at(self.requests);
        self.give(Input::Request { id, request })
    }

    fn accept(&mut self, partition: u16) -> Vec<String> {
        let request = at(self.requests);
        let (query, activation) = (hash("s"), 1);
        self.notify(
            partition,
            NodeEvent::Active {
                query,
                activation,
                request,
            },
        )
    }

    fn notify(&mut self, partition: u16, event: NodeEvent) -> Vec<String> {
        let said = &mut self.said[usize::from(partition)];
        *said += 1;
        let entry = notification(NotificationSource::Filter(partition), 1, *said, event);
        self.read += 1;
        let id = at(self.read);
        self.give(Input::Entry { id, entry })
    }

    fn write(&mut self, partition: u16, query: QueryHash, image: AfterImage) -> Vec<String> {
        let matching = NodeEvent::Match {
            image,
            added: Vec::new(),
            changed: vec![query],
            removed: Vec::new(),
        };
        self.notify(partition, matching)
    }

    fn put(&mut self, image: AfterImage) -> Vec<String> {
        self.write(0, hash("s"), image)
    }

    fn put_person(&mut self, image: AfterImage) -> Vec<String> {
        self.write(1, side().hash, image)
    }

    /// Answers its last request.
    fn answer(&mut self, documents: Vec<FetchedDocument>) -> Vec<String> {
        let fetch = self.fetch.unwrap_or_else(|| panic!("nothing was asked"));
        self.answer_to(fetch, documents)
    }

    fn answer_to(&mut self, fetch: FetchId, documents: Vec<FetchedDocument>) -> Vec<String> {
        let documents = vec![documents];
        self.request(NodeRequest::Fetched { fetch, documents })
    }

    fn tick(&mut self, count: u64, snapshot: &PgSnapshot) -> Vec<String> {
        let mut lines = self.notify(0, NodeEvent::Tick(tick(count, snapshot.clone())));
        lines.extend(self.notify(1, NodeEvent::Tick(tick(count, snapshot.clone()))));
        lines
    }
}

/// The line with letters as keys and without versions, which are derived from content.
fn without_versions(line: &str) -> String {
    let letters = line.chars().filter(|letter| !letter.is_control());
    let words: String = letters.collect();
    let mut shown = String::new();
    let mut skips = false;
    for letter in words.chars() {
        skips = letter == '@' || (skips && letter.is_ascii_digit());
        if !skips {
            shown.push(letter);
        }
    }
    shown
}

#[test]
fn an_unknown_document_is_requested_and_reported_with_the_one_that_refers_to_it() {
    let mut node = Stage::new();
    let lines = node.put(refers(20, "a", 2, "bob"));
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("fetch s "), "{lines:?}");
    let lines = node.answer(vec![fetched("bob", 3, 5)]);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("window s [=0"), "{lines:?}");
}

#[test]
fn a_document_that_never_was_is_absent_at_once() {
    let mut node = Stage::new();
    node.put(refers(20, "a", 2, "nobody"));
    let lines = node.answer(vec![fetched("nobody", 0, 0)]);
    assert!(lines[0].starts_with("window s [=0"), "{lines:?}");
}

#[test]
fn documents_found_missing_while_an_answer_is_pending_are_requested_together_afterwards() {
    let mut node = Stage::new();
    assert_eq!(node.put(refers(20, "a", 2, "bob")).len(), 1);
    assert!(node.put(refers(21, "b", 1, "cid")).is_empty());
    assert!(node.put(refers(22, "c", 1, "dan")).is_empty());
    let lines = node.answer(vec![fetched("bob", 3, 5)]);
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].contains("cid") && lines[0].contains("dan"),
        "{lines:?}"
    );
    let lines = node.answer(vec![fetched("cid", 1, 5), fetched("dan", 1, 5)]);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("window s [=0"), "{lines:?}");
    assert_eq!(lines[0].matches('+').count(), 2);
}

#[test]
fn a_document_that_was_read_ahead_of_its_batch_waits_for_a_tick() {
    let mut node = Stage::new();
    node.put(refers(20, "a", 2, "bob"));
    assert!(node.answer(vec![fetched("bob", 3, 40)]).is_empty());
    assert_eq!(node.tick(1, &until(40)), ["tick 1"]);
    let lines = node.tick(2, &until(41));
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("window s [=0"), "{lines:?}");
}

#[test]
fn a_document_that_was_read_ahead_of_its_batch_is_shown_with_the_rest_of_that() {
    let mut node = Stage::new();
    node.put(refers(20, "a", 2, "bob"));
    assert!(node.answer(vec![fetched("bob", 3, 40)]).is_empty());
    assert!(node.put_person(both(ages(40, "bob", 3))).is_empty());
    assert!(node.put(both(refers(40, "b", 1, "bob"))).is_empty());
    assert!(node.notify(1, NodeEvent::Done { xid: 40 }).is_empty());
    let lines = node.notify(0, NodeEvent::Done { xid: 40 });
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].contains("=0") && lines[0].contains('+'),
        "{lines:?}"
    );
}

#[test]
fn a_write_of_the_document_itself_makes_it_known() {
    let mut node = Stage::new();
    node.put(refers(20, "a", 2, "bob"));
    let lines = node.put_person(ages(41, "bob", 4));
    assert!(lines[0].starts_with("window s [=0"), "{lines:?}");
    // The requested document is already known in a newer version.
    assert!(node.answer(vec![fetched("bob", 3, 40)]).is_empty());
}

#[test]
fn the_answer_to_an_earlier_question_is_nobodys() {
    let mut node = Stage::new();
    node.put(refers(20, "a", 2, "bob"));
    let first = node.fetch.unwrap_or_else(|| panic!("nothing was asked"));
    node.now_us += 6_000_000;
    let again = node.give(Input::Idle);
    assert!(again[0].starts_with("fetch s "), "{again:?}");
    assert!(node.answer_to(first, vec![fetched("bob", 2, 4)]).is_empty());
    assert_eq!(node.answer(vec![fetched("bob", 3, 5)]).len(), 1);
}

#[test]
fn a_removed_reference_needs_no_answer() {
    let mut node = Stage::new();
    node.put(refers(20, "a", 2, "bob"));
    let lines = node.put(refers(21, "a", 3, "ann"));
    assert!(lines[0].starts_with("window s [=0"), "{lines:?}");
}

#[test]
fn more_than_are_read_one_by_one_are_read_with_the_whole_query() {
    let mut node = Stage::new();
    // One document refers to no more than 1,000: together two of them do.
    let many = |id: &str| {
        let people: Vec<String> = (0..600).map(|n| format!("\"{id}{n}\"")).collect();
        bson(&format!(r#"{{"_id":"{id}","by":[{}]}}"#, people.join(",")))
    };
    let batch = |id, version| both(image(20, id, version, ImageContent::Document(many(id))));
    assert!(node.put(batch("a", 2)).is_empty());
    assert!(node.put(batch("b", 1)).is_empty());
    assert!(node.notify(1, NodeEvent::Done { xid: 20 }).is_empty());
    assert_eq!(node.notify(0, NodeEvent::Done { xid: 20 }), ["renew s 0"]);
}
