//! Nothing that was written under newer access rules is shown under older ones.

use rillbase_live::hub::HubRequest;
use rillbase_live::message::{NodeEvent, NotificationSource, QueryDefinition, WindowChange};

use super::desk::{Desk, F0, SORT};
use crate::common::{query, row, sorted, until};

fn under(mut query: QueryDefinition, rules_version: u64) -> QueryDefinition {
    query.rules_version = rules_version;
    query
}

fn is_judged_and_silent(desk: &mut Desk, q: &QueryDefinition) {
    desk.pass(250_000);
    assert!(
        desk.take_requests()
            .contains(&HubRequest::RecheckAccess(q.hash))
    );
    let lines = desk.lines();
    assert!(lines.iter().all(|line| line == "s1 stale"), "{lines:?}");
}

#[test]
fn a_nodes_members_under_newer_rules_are_not_shown() {
    let (mut desk, q) = (Desk::new(), under(query("q", "{}"), 3));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    desk.notify(F0, NodeEvent::Start);
    desk.rebase_under(4, F0, &q, 8, &[row("a", 2, 1), row("secret", 1, 1)]);
    desk.active(F0, &q);
    desk.notify(F0, NodeEvent::Rebased { snapshot: until(8) });
    desk.ticks(8);
    is_judged_and_silent(&mut desk, &q);
}

#[test]
fn members_under_the_same_rules_are() {
    let (mut desk, q) = (Desk::new(), under(query("q", "{}"), 3));
    desk.attach(1, &q);
    desk.open(&q, 5, &[]);
    desk.take();
    desk.notify(F0, NodeEvent::Start);
    let id = ('a'..='z').map(String::from);
    let mut id = id.filter(|id| rillbase_documents::id::key_hash(id.as_bytes()) % 2 == 0);
    let id = id.next().unwrap();
    desk.rebase_under(3, F0, &q, 8, &[row(&id, 1, 1)]);
    desk.active(F0, &q);
    desk.notify(F0, NodeEvent::Rebased { snapshot: until(8) });
    desk.ticks(8);
    assert_eq!(desk.lines(), [format!("s1 add {id}@1 #1")]);
}

#[test]
fn a_window_that_ever_held_a_row_under_newer_rules_is_not_shown() {
    for source in [NotificationSource::Sort, NotificationSource::Filter(0)] {
        let (mut desk, q) = (Desk::new(), under(sorted("q", 0, 2, 1), 3));
        desk.attach(1, &q);
        desk.open(&q, 5, &[row("a", 1, 1)]);
        desk.take();
        if source == SORT {
            desk.rebase_under(4, SORT, &q, 8, &[row("a", 1, 1), row("secret", 1, 1)]);
        } else {
            // A renewal names no write.
            let index = 1;
            let row = row("secret", 1, 1);
            let event = NodeEvent::Window {
                query: q.hash,
                activation: q.activation,
                rules_version: 4,
                image: None,
                changes: vec![WindowChange::Add { index, row }],
            };
            desk.notify(SORT, event);
        }
        is_judged_and_silent(&mut desk, &q);
    }
}
