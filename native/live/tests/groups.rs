//! A sort node that keeps groups: its reports about them.

use std::sync::Arc;

use crate::common::{COLLECTION, at, bson, hash, image, notification, query, register, row, until};
use rillbase_live::message::{
    AfterImage, FencingToken, ImageContent, NodeEvent, NotificationSource, QueryDefinition,
    ResultRow, WindowChange,
};
use rillbase_live::node::{Begin, NodeOutput};
use rillbase_live::registered_rows;
use rillbase_live::sort_node::{Input, SortNode, SortNodeConfig};
use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::ejson::{Form, value_to_string};

/// Documents grouped by `n`, with their number and the greatest `_id`; the largest group first.
fn by_n(limit: Option<u32>) -> QueryDefinition {
    QueryDefinition {
        sorted: true,
        limit,
        sort: bson(r#"{"sort":[["c",-1]]}"#),
        group: bson(
            r#"{"by":["n"],"measures":{"c":{"op":"count"},"m":{"op":"max","field":"_id"}}}"#,
        ),
        ..query("s", r#"{"n":{"$gte":0}}"#)
    }
}

/// A node, and the log with the reports of two filter nodes.
struct Stage {
    node: SortNode,
    said: [u64; 2],
    read: u64,
    requests: u64,
}

impl Stage {
    fn new(
        max_rows: usize,
        queries: &[QueryDefinition],
        rows: &[ResultRow],
    ) -> (Self, Vec<String>) {
        let mut stage = Self {
            node: SortNode::new(SortNodeConfig {
                max_rows,
                ..SortNodeConfig::new(2, FencingToken(1))
            }),
            said: [0, 0],
            read: 100,
            requests: 0,
        };
        let begin = Begin {
            position: at(100),
            count: 0,
            requests: at(0),
            snapshot: until(5),
            rules: std::collections::HashMap::new(),
        };
        let (collection, rows) = (COLLECTION, rows.to_vec());
        let mut lines = stage.give(Input::Start);
        lines.extend(stage.give(Input::Queries(queries.to_vec())));
        lines.extend(stage.give(Input::Begin(begin)));
        lines.extend(stage.give(Input::Rows { collection, rows }));
        lines.extend(stage.give(Input::End));
        (stage, lines)
    }

    fn give(&mut self, input: Input) -> Vec<String> {
        let mut out = Vec::new();
        self.node.handle(input, 1_000_000, &mut out);
        out.iter().flat_map(lines).collect()
    }

    fn notify(&mut self, partition: u16, event: NodeEvent) -> Vec<String> {
        let mut said = 0;
        if let Some(count) = self.said.get_mut(usize::from(partition)) {
            *count += 1;
            said = *count;
        }
        self.read += 1;
        let entry = notification(NotificationSource::Filter(partition), 1, said, event);
        let id = at(self.read);
        self.give(Input::Entry { id, entry })
    }

    /// Registers the query with documents that a snapshot below 5 sees.
    fn register(&mut self, query: &QueryDefinition, rows: &[ResultRow]) -> Vec<String> {
        self.requests += 1;
        let (id, request) = (at(self.requests), register(query, 0, &until(5), rows, true));
        let mut lines = self.give(Input::Request { id, request });
        for partition in [0, 1] {
            let (query, activation, request) = (query.hash, 1, id);
            lines.extend(self.notify(
                partition,
                NodeEvent::Active {
                    query,
                    activation,
                    request,
                },
            ));
        }
        lines
    }

    fn put(&mut self, image: AfterImage) -> Vec<String> {
        self.notify(0, matching(image))
    }

    fn leave(&mut self, image: AfterImage) -> Vec<String> {
        let removed = vec![hash("s")];
        self.notify(
            0,
            NodeEvent::Match {
                image,
                added: Vec::new(),
                changed: Vec::new(),
                removed,
            },
        )
    }
}

fn matching(image: AfterImage) -> NodeEvent {
    NodeEvent::Match {
        image,
        added: Vec::new(),
        changed: vec![hash("s")],
        removed: Vec::new(),
    }
}

fn text(body: &[u8]) -> String {
    value_to_string(ValueRef::Document(Document::trusted(body)), Form::Relaxed)
}

/// A row without its `_id`.
fn shown(row: &ResultRow) -> String {
    let text = text(&row.body);
    let (_, rest) = text.split_once("},").unwrap_or_default();
    format!("{{{rest}")
}

fn lines(output: &NodeOutput) -> Vec<String> {
    let NodeOutput::Notify(notification) = output else {
        return vec![format!("{output:?}")];
    };
    match &notification.event {
        NodeEvent::Rebase { rows, .. } => rows.iter().map(shown).collect(),
        NodeEvent::Window { changes, .. } => changes.iter().map(change).collect(),
        NodeEvent::Failed { code, .. } => vec![format!("failed {code}")],
        NodeEvent::Unevaluated { .. } => vec!["unevaluated".to_owned()],
        _ => Vec::new(),
    }
}

fn change(change: &WindowChange) -> String {
    match change {
        WindowChange::Add { index, row } => format!("+{index} {}", shown(row)),
        WindowChange::Change { index, row } => format!("={index} {}", shown(row)),
        WindowChange::Move {
            old_index,
            index,
            row,
        } => format!("{old_index}>{index} {}", shown(row)),
        WindowChange::Remove { old_index, id, .. } => format!("-{old_index} {}", text(id)),
    }
}

/// `a` and `b` with 7, `c` with 8.
fn three() -> Vec<ResultRow> {
    vec![row("a", 1, 7), row("b", 1, 7), row("c", 1, 8)]
}

#[test]
fn a_write_changes_the_row_of_its_group_and_of_the_one_that_it_leaves() {
    let (mut stage, _) = Stage::new(100, &[], &[]);
    let rows = stage.register(&by_n(None), &three());
    assert_eq!(
        rows,
        [r#"{"n":7,"c":2,"m":"b"}"#, r#"{"n":8,"c":1,"m":"c"}"#]
    );
    let lines = stage.put(image(6, "b", 2, Some(8)));
    assert_eq!(
        lines,
        [
            r#"=0 {"n":7,"c":1,"m":"a"}"#,
            r#"1>0 {"n":8,"c":2,"m":"c"}"#
        ]
    );
    let lines = stage.leave(image(7, "a", 2, None));
    assert_eq!(lines, [r#"-1 {"_id":{"n":7}}"#]);
    let lines = stage.put(image(8, "d", 1, Some(1)));
    assert_eq!(lines, [r#"+1 {"n":1,"c":1,"m":"d"}"#]);
}

#[test]
fn a_write_that_changes_no_row_is_not_reported() {
    let (mut stage, _) = Stage::new(100, &[], &[]);
    stage.register(&by_n(None), &three());
    assert!(stage.put(image(6, "a", 2, Some(7))).is_empty());
    // The write is repeated, and then superseded.
    assert!(stage.put(image(6, "a", 2, Some(8))).is_empty());
    assert!(stage.put(image(4, "a", 1, Some(8))).is_empty());
}

#[test]
fn a_batch_changes_all_its_rows_at_once() {
    let (mut stage, _) = Stage::new(100, &[], &[]);
    stage.register(&by_n(None), &three());
    let of_batch = |image: AfterImage| AfterImage {
        parts: Arc::from([0, 1]),
        ..image
    };
    let first = of_batch(image(6, "a", 2, Some(8)));
    assert!(stage.notify(0, matching(first)).is_empty());
    assert!(stage.notify(0, NodeEvent::Done { xid: 6 }).is_empty());
    let second = of_batch(image(6, "b", 2, Some(8)));
    assert!(stage.notify(1, matching(second)).is_empty());
    let lines = stage.notify(1, NodeEvent::Done { xid: 6 });
    assert_eq!(
        lines,
        [r#"-0 {"_id":{"n":7}}"#, r#"=0 {"n":8,"c":3,"m":"c"}"#]
    );
}

#[test]
fn a_node_that_was_rebuilt_shows_the_same_rows_in_the_same_versions() {
    let query = by_n(Some(1));
    let (_, lines) = Stage::new(100, std::slice::from_ref(&query), &three());
    assert_eq!(lines, [r#"{"n":7,"c":2,"m":"b"}"#]);
    let again = |rows| {
        registered_rows::rows(&query, rows, &[]).unwrap_or_else(|refusal| panic!("{refusal:?}"))
    };
    let turned: Vec<ResultRow> = three().into_iter().rev().collect();
    assert_eq!(again(three()), again(turned));
}

#[test]
fn more_documents_than_may_be_grouped_end_the_query() {
    let (mut stage, _) = Stage::new(3, &[], &[]);
    stage.register(&by_n(Some(1)), &three());
    assert_eq!(
        stage.put(image(6, "d", 1, Some(7))),
        ["failed result_too_large"]
    );
    let four = [three(), vec![row("d", 1, 7)]].concat();
    let (_, lines) = Stage::new(3, &[by_n(Some(1))], &four);
    assert!(
        lines.contains(&"failed result_too_large".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn a_document_that_cannot_be_grouped_is_in_no_group() {
    let by_text = QueryDefinition {
        group: bson(r#"{"by":["t"],"measures":{"c":{"op":"count"}}}"#),
        sort: [].into(),
        ..by_n(None)
    };
    let text = "x".repeat(2_000);
    let wide = bson(&format!(r#"{{"_id":"a","n":7,"t":"{text}"}}"#));
    let (mut stage, _) = Stage::new(100, &[], &[]);
    let rows = stage.register(&by_text, &three());
    assert_eq!(rows, [r#"{"t":null,"c":3}"#]);
    let mut large = image(6, "a", 2, Some(7));
    large.content = ImageContent::Document(Arc::clone(&wide));
    let lines = stage.put(large);
    assert_eq!(lines, ["unevaluated", r#"=0 {"t":null,"c":2}"#]);
    let lines = stage.put(image(7, "a", 3, Some(7)));
    assert_eq!(lines, [r#"=0 {"t":null,"c":3}"#]);

    let mut rows = three();
    rows[0].body = wide;
    let (mut rebuilt, lines) = Stage::new(100, std::slice::from_ref(&by_text), &rows);
    assert_eq!(lines, [r#"{"t":null,"c":2}"#]);
    let (mut again, _) = Stage::new(100, &[], &[]);
    assert_eq!(again.register(&by_text, &rows), lines);
    for stage in [&mut rebuilt, &mut again] {
        let lines = stage.put(image(7, "b", 2, Some(8)));
        assert!(lines.is_empty(), "{lines:?}");
    }
    let made = registered_rows::rows(&by_text, rows, &[]);
    assert_eq!(
        made.unwrap_or_else(|refusal| panic!("{refusal:?}")).len(),
        1
    );
}
