"""The conclusions from evidence: each verdict, and the stage that determines it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest

from documents.outbox.entries import Image, StreamEntryKind
from foundation.json_types import JsonObject
from realtime.delivery_trace import story, wording
from realtime.delivery_trace.evidence import Clause, Evidence, StreamEntry
from realtime.delivery_trace.stored_versions import CurrentDocument, FeedProgress, OutboxRow
from rillbase_native import Filter, Value

ROOT = Path(__file__).resolve().parents[3]
BODY = Value.parse(b'{"_id":"a","n":2,"public":true}').bson()


def clause(text: str) -> Clause:
    return Clause.of(Filter.parse(Value.parse(text.encode())), BODY, 0)


def hub(**known: object) -> JsonObject:
    """The report of a hub that watches the query and has received nothing."""
    said = {
        "state": "live",
        "sorted": False,
        "offset": 0,
        "limit": None,
        "rows": 3,
        "outdated": False,
        "renewing": False,
        "nodes": [
            {"node": "filter", "partition": 0, "watches": True},
            {"node": "filter", "partition": 1, "watches": False},
        ],
        "registered_us": 1_000_000,
        "rows_have_it": False,
        "held_version": None,
        "held_index": None,
        "waits_for_batch": False,
        "forgot": False,
        "changes": [],
        **known,
    }
    body: JsonObject = json.loads(json.dumps(said))
    return body


def shown(told: str, **more: object) -> list[object]:
    """Version 2 as the hub showed it."""
    return [
        {
            "at_us": 5_000_000,
            "position": "5-1",
            "version": 2,
            "match": "add",
            "of": 1,
            "told": told,
            "told_us": 6_000_000,
            "groups": 1,
            "first_event": 4,
            "last_event": 4,
            "delivery": "taken",
            "in_front": 0,
            **more,
        }
    ]


EVIDENCE = Evidence(
    version=2,
    partition=0,
    stored=CurrentDocument(2, 4_000, BODY),
    row=OutboxRow(2, 77, 4_000, in_batch=False, published_ms=4_001),
    entry=None,
    body=BODY,
    is_deletion=False,
    filter=clause('{"n":{"$lt":9}}'),
    rule=None,
    is_ruled=False,
    matched_before=None,
    hub=hub(),
)
#: The write stream's entry of version 2.
IMAGE = Image(
    kind=StreamEntryKind.PUT,
    xid=77,
    tenant_id=UUID(int=1),
    collection_id=UUID(int=2),
    version=2,
    rules_version=1,
    created_ms=1,
    written_us=4_000_000,
    key=b"a",
    body=BODY,
)
MISMATCH = clause('{"n":{"$gt":3}}')
FILTER0 = [{"node": "filter", "partition": 0, "watches": False}]


@pytest.mark.parametrize(
    ("evidence", "verdict", "stage"),
    [
        (replace(EVIDENCE, version=None, stored=None, row=None), "no_document", "write"),
        (replace(EVIDENCE, version=9), "no_such_version", "write"),
        (
            replace(EVIDENCE, row=OutboxRow(2, 77, 4_000, in_batch=False, published_ms=None)),
            "not_published",
            "publication",
        ),
        (replace(EVIDENCE, hub=hub(nodes=FILTER0)), "not_watched", "matching"),
        (replace(EVIDENCE, filter=MISMATCH), "no_match", "filter"),
        (replace(EVIDENCE, is_ruled=True, rule=MISMATCH), "hidden", "rule"),
        (replace(EVIDENCE, is_ruled=True), "hidden", "rule"),
        (replace(EVIDENCE, is_ruled=True, hub=hub(outdated=True)), "rules_changed", "rule"),
        (replace(EVIDENCE, hub=hub(sorted=True, place="behind")), "outside_window", "window"),
        (replace(EVIDENCE, hub=hub(sorted=True, place="before")), "outside_window", "window"),
        (replace(EVIDENCE, hub=hub(sorted=True, renewing=True)), "renewing", "window"),
        (replace(EVIDENCE, hub=hub(waits_for_batch=True)), "batch", "hub"),
        (replace(EVIDENCE, hub=hub(rows_have_it=True)), "in_result", "hub"),
        (replace(EVIDENCE, hub=hub(held_version=2)), "in_result", "hub"),
        (replace(EVIDENCE, hub=hub(held_version=5)), "outrun", "hub"),
        (replace(EVIDENCE, hub=hub(gone_version=3)), "outrun", "hub"),
        (replace(EVIDENCE, hub=hub(state="starting")), "starting", "hub"),
        (replace(EVIDENCE, hub=hub(forgot=True)), "forgotten", "hub"),
        (EVIDENCE, "under_way", "hub"),
        (replace(EVIDENCE, body=None, filter=None), "unclear", "hub"),
        (replace(EVIDENCE, body=None, filter=None, hub=hub(forgot=True)), "forgotten", "hub"),
        (replace(EVIDENCE, body=None, filter=None, hub=hub(rows_have_it=True)), "unclear", "hub"),
        (replace(EVIDENCE, body=None, filter=None, hub=hub(held_version=2)), "in_result", "hub"),
        (replace(EVIDENCE, body=None, is_deletion=True), "no_match", "hub"),
        (
            replace(EVIDENCE, body=None, is_deletion=True, hub=hub(held_version=1)),
            "under_way",
            "hub",
        ),
        (replace(EVIDENCE, body=None, is_deletion=True, hub=hub(gone_version=2)), "unclear", "hub"),
        (replace(EVIDENCE, hub={"sorted": False}), "would_match", "hub"),
        (replace(EVIDENCE, hub={"sorted": False}, is_deletion=True, body=None), "deleted", "hub"),
        (replace(EVIDENCE, hub=hub(changes=shown("events"))), "told", "delivery"),
        (replace(EVIDENCE, hub=hub(changes=shown("resumed"))), "told", "delivery"),
        (replace(EVIDENCE, hub=hub(changes=shown("together"))), "coalesced", "delivery"),
        (replace(EVIDENCE, hub=hub(changes=shown("result"))), "result", "delivery"),
        (replace(EVIDENCE, hub=hub(changes=shown("muted"))), "muted", "delivery"),
        (
            replace(EVIDENCE, hub=hub(changes=shown("anew", reason="too_slow"))),
            "dropped",
            "delivery",
        ),
        (
            replace(EVIDENCE, hub=hub(changes=shown("events", delivery="dropped"))),
            "dropped",
            "delivery",
        ),
        (
            replace(EVIDENCE, hub=hub(changes=shown("events", delivery="waiting", in_front=7))),
            "not_taken",
            "delivery",
        ),
        (replace(EVIDENCE, hub=hub(changes=shown("held"))), "held", "delivery"),
        (replace(EVIDENCE, hub=hub(changes=shown("cut_off"))), "dropped", "delivery"),
        (replace(EVIDENCE, hub=hub(changes=shown("waiting"))), "waiting", "delivery"),
        (replace(EVIDENCE, hub=hub(changes=shown("before"))), "in_result", "delivery"),
        (replace(EVIDENCE, hub=hub(changes=shown("forgotten"))), "forgotten", "delivery"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_verdict_has_its_stage(evidence: Evidence, verdict: str, stage: str) -> None:
    trace = story.render(evidence)
    steps = trace["steps"]
    assert isinstance(steps, list)
    last = steps[-1]
    assert isinstance(last, dict)
    assert (trace["verdict"], last["stage"]) == (verdict, stage)
    assert trace["summary"] == wording.SUMMARIES[verdict]


def native(position: int | None, **more: object) -> Evidence:
    """Version 2 of a native collection, written at position 77 of the log; the feed is here."""
    stored = CurrentDocument(2, 4_000, BODY, xid=77)
    evidence = replace(EVIDENCE, stored=stored, row=None, feed=FeedProgress(position))
    return replace(evidence, **more)  # type: ignore[arg-type]


def shown_step(evidence: Evidence, stage: str) -> JsonObject:
    steps = cast("list[JsonObject]", story.render(evidence)["steps"])
    (step,) = [step for step in steps if step["stage"] == stage]
    return step


@pytest.mark.parametrize(
    ("evidence", "state", "detail"),
    [
        (native(77), "passed", wording.PASSED_BY_FEED),
        (native(80), "passed", wording.PASSED_BY_FEED),
        (native(76), "waiting", wording.NOT_FED),
        (native(None), "unknown", wording.FEED_BEGINS),
        (native(76, hub=hub(changes=shown("events"))), "passed", wording.PUBLISHED_SURELY),
        (native(76, entry=StreamEntry("4002-0", IMAGE)), "passed", wording.PUBLISHED),
        # An earlier version is before the newest one in the log.
        (native(80, version=1), "passed", wording.PASSED_BY_FEED),
        (native(76, version=1), "unknown", wording.LOGGED_LONG_AGO),
        (native(80, stored=None), "unknown", wording.LOGGED_LONG_AGO),
        (native(80, stored=CurrentDocument(2, 4_000, BODY)), "unknown", wording.LOGGED_LONG_AGO),
    ],
)
def test_writes_to_native_collections_are_published_once_the_feed_has_passed_them(
    evidence: Evidence, state: str, detail: str
) -> None:
    step = shown_step(evidence, "publication")
    assert (step["state"], step["detail"]) == (state, detail)


def test_a_write_to_a_native_collection_has_its_transaction_without_an_outbox() -> None:
    step = shown_step(native(80), "write")
    assert step["at"] == "1970-01-01T00:00:04.000+00:00"
    facts = cast("JsonObject", step["facts"])
    by_row = cast("JsonObject", shown_step(EVIDENCE, "write")["facts"])
    assert facts["transaction"] == by_row["transaction"]
    assert story.render(native(76))["verdict"] == "not_published"


def test_a_deletion_of_unrecorded_time_is_not_reported_as_replaced() -> None:
    stored = CurrentDocument(2, None, None, xid=77)
    deleted = native(80, stored=stored, body=None, is_deletion=True)
    step = shown_step(deleted, "write")
    assert (step["state"], step["at"]) == ("passed", None)
    assert step["detail"] == wording.DELETED.format(version=2)


def test_every_verdict_has_its_sentence_and_its_row_in_the_guide() -> None:
    text = (ROOT / "docs" / "guide" / "why.md").read_text()
    assert [verdict for verdict in wording.SUMMARIES if f"`{verdict}`" not in text] == []


def test_a_delivery_is_reported_even_if_its_content_is_no_longer_available() -> None:
    gone = replace(
        EVIDENCE,
        row=None,
        stored=CurrentDocument(8, 9_000, BODY),
        body=None,
        filter=None,
        hub=hub(changes=shown("events")),
    )
    trace = story.render(gone)
    assert trace["verdict"] == "told"
    assert trace["newest_version"] == 8


def test_changes_that_cancelled_out_are_not_reported_as_events() -> None:
    changes = shown("together", first_event=None, last_event=None)
    trace = story.render(replace(EVIDENCE, hub=hub(changes=changes)))
    assert trace["verdict"] == "coalesced"
    assert wording.UNDONE in json.dumps(trace["steps"])


def test_a_document_that_leaves_shows_why_it_no_longer_matches() -> None:
    left = replace(EVIDENCE, filter=MISMATCH, hub=hub(changes=shown("events", match="remove")))
    trace = story.render(left)
    steps = {step["stage"]: step for step in cast("list[JsonObject]", trace["steps"])}
    assert trace["verdict"] == "told"
    assert "`n` is 2; expected: greater than 3." in str(steps["filter"]["detail"])


def at(trace: JsonObject) -> dict[str, str]:
    """The seconds and milliseconds at which stages happened, in the order that is shown."""
    steps = cast("list[JsonObject]", trace["steps"])
    return {str(step["stage"]): str(step["at"])[17:23] for step in steps if step["at"] is not None}


def approximate(trace: JsonObject) -> list[str]:
    """The stages whose time is approximate."""
    steps = cast("list[JsonObject]", trace["steps"])
    facts = [(str(step["stage"]), cast("JsonObject", step["facts"])) for step in steps]
    return [stage for stage, one in facts if one.get("time_is_approximate") is True]


def delivered(ahead_ms: int, estimated_ms: int) -> Evidence:
    """Version 2, written at 4.000 s, published 2 ms, shown 5 ms and sent 6 ms later, by a Valkey
    whose clock is ahead by this, or behind, and is estimated to be ahead.
    """
    changes = shown("events", at_us=(4_005 + ahead_ms) * 1000, told_us=(4_006 + ahead_ms) * 1000)
    return replace(
        EVIDENCE,
        entry=StreamEntry(f"{4_002 + ahead_ms}-0", IMAGE),
        hub=hub(changes=changes),
        valkey_ahead_ms=float(estimated_ms),
    )


@pytest.mark.parametrize("ahead_ms", [-100, 0, 100])
def test_all_times_are_by_the_clock_of_the_database(ahead_ms: int) -> None:
    trace = story.render(delivered(ahead_ms, ahead_ms))
    expected = {"write": "04.000", "publication": "04.002", "hub": "04.005", "delivery": "04.006"}
    assert at(trace) == expected
    assert approximate(trace) == []


@pytest.mark.parametrize("ahead_ms", [-100, -3, 0, 100])
def test_no_step_is_shown_before_its_cause_even_if_clocks_differ(ahead_ms: int) -> None:
    trace = story.render(delivered(ahead_ms, 0))
    times = at(trace)
    assert list(times) == ["write", "publication", "hub", "delivery"]
    assert list(times.values()) == sorted(times.values())
    assert times["write"] == "04.000"


def test_a_time_that_contradicted_the_order_is_marked_as_approximate() -> None:
    trace = story.render(delivered(-4, 0))
    assert at(trace) == {
        "write": "04.000",
        "publication": "04.000",
        "hub": "04.001",
        "delivery": "04.002",
    }
    assert approximate(trace) == ["publication"]


def test_a_mark_that_was_made_later_does_not_delay_what_followed_the_publication() -> None:
    changes = shown("events", at_us=4_005_000, told_us=4_006_000)
    row = OutboxRow(2, 77, 4_000, in_batch=False, published_ms=4_057)
    trace = story.render(replace(EVIDENCE, row=row, hub=hub(changes=changes)))
    expected = {"write": "04.000", "publication": "04.005", "hub": "04.005", "delivery": "04.006"}
    assert at(trace) == expected
    assert approximate(trace) == ["publication"]


def test_initial_rows_may_contain_a_version_before_it_is_published() -> None:
    row = OutboxRow(2, 77, 4_000, in_batch=False, published_ms=4_900)
    state = hub(rows_have_it=True, registered_us=4_300_000)
    trace = story.render(replace(EVIDENCE, row=row, hub=state))
    assert at(trace) == {"write": "04.000", "publication": "04.900", "hub": "04.300"}
    early = hub(rows_have_it=True, registered_us=3_990_000)
    trace = story.render(replace(EVIDENCE, row=row, hub=early))
    assert at(trace) == {"write": "04.000", "publication": "04.900", "hub": "04.000"}
    assert approximate(trace) == ["hub"]
