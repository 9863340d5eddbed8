"""From evidence to a story: the stages that a version of a document passes, and where it stopped.

    write → publication → matching → filter → rule → window → hub → delivery

The state of a stage is `passed`, `stopped`, `waiting` or `unknown`. Stages after the one where it
stopped are omitted. Times are by the clock that dates the collection's writes, and none is before
its cause. Pure: evidence in, JSON out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

from foundation import opaque_tokens
from foundation.json_types import JsonObject, JsonValue
from realtime.delivery_trace import wording
from realtime.delivery_trace.chronology import State, TraceStep, after_cause
from realtime.delivery_trace.evidence import Clause, Evidence
from realtime.delivery_trace.stored_versions import FeedProgress

#: What the initial rows of a subscription follow from: they need not have been published.
_IN_DATABASE = frozenset({"write"})


def render(evidence: Evidence) -> JsonObject:
    """Return the stages of the version."""
    steps = after_cause(_steps(evidence))
    last = steps[-1]
    verdict = last.verdict or "unclear"
    return {
        "version": evidence.version,
        "newest_version": None if evidence.stored is None else evidence.stored.version,
        "deleted": evidence.is_deletion,
        "verdict": verdict,
        "summary": wording.SUMMARIES[verdict],
        "steps": [_render(step) for step in steps],
    }


def _steps(evidence: Evidence) -> list[TraceStep]:
    steps: list[TraceStep] = []
    for stage in _STAGES:
        step = stage(evidence)
        if step is not None:
            steps.append(step)
            if step.state in ("stopped", "waiting"):
                break
    return steps


def _render(step: TraceStep) -> JsonObject:
    return {
        "stage": step.stage,
        "state": step.state,
        "title": wording.TITLES[step.stage],
        "detail": step.detail,
        "at": None if step.at_ms is None else _moment(step.at_ms),
        "facts": step.facts | ({"time_is_approximate": True} if step.is_approximate else {}),
    }


def _opaque(value: object) -> str:
    """Return a name for a number that is counted across all tenants."""
    return opaque_tokens.write("rillbase-delivery-trace", str(value).encode())


def _moment(ms: float) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _write(evidence: Evidence) -> TraceStep:
    version, stored, row = evidence.version, evidence.stored, evidence.row
    if version is None:
        return TraceStep("write", "stopped", wording.NEVER_WRITTEN, verdict="no_document")
    if stored is not None and version > stored.version:
        detail = wording.NOT_YET_WRITTEN.format(version=version, newest=stored.version)
        return TraceStep("write", "stopped", detail, verdict="no_such_version")
    facts: JsonObject = {"partition": evidence.partition, "deletion": evidence.is_deletion}
    at_ms: float | None = None
    if row is not None:
        at_ms = row.committed_ms
        facts |= {"transaction": _opaque(row.xid), "in_batch": row.in_batch}
    elif evidence.entry is not None:
        at_ms = evidence.entry.image.written_us / 1000
        facts |= {"transaction": _opaque(evidence.entry.image.xid)}
    elif stored is not None and stored.version == version:
        at_ms = stored.updated_ms
        facts |= {} if stored.xid is None else {"transaction": _opaque(stored.xid)}
    is_newest = stored is not None and stored.version == version
    if at_ms is None and not is_newest:
        return TraceStep("write", "unknown", wording.LONG_AGO, facts=facts)
    what = wording.DELETED if evidence.is_deletion else wording.WRITTEN
    return TraceStep("write", "passed", what.format(version=version), at_ms, facts)


def _publication(evidence: Evidence) -> TraceStep:
    row, entry = evidence.row, evidence.entry
    if entry is not None:
        facts: JsonObject = {"entry": _opaque(entry.entry_id), "partition": evidence.partition}
        at_ms = entry.at_ms - evidence.valkey_ahead_ms
        return TraceStep("publication", "passed", wording.PUBLISHED, at_ms, facts)
    if row is not None and row.published_ms is not None:
        step = TraceStep("publication", "passed", wording.PUBLISHED_BEFORE, row.published_ms)
        # Marks are collected before they are written.
        return replace(step, is_at_latest=True)
    if _change(evidence) is not None:
        return TraceStep("publication", "passed", wording.PUBLISHED_SURELY)
    if evidence.feed is not None:
        return _passed_by_feed(evidence, evidence.feed)
    if row is not None:
        return TraceStep("publication", "waiting", wording.NOT_PUBLISHED, verdict="not_published")
    return TraceStep("publication", "unknown", wording.PUBLISHED_LONG_AGO)


def _passed_by_feed(evidence: Evidence, feed: FeedProgress) -> TraceStep:
    """Return whether the feed of native collections has reached the version. Its position is that
    of its last tick: all transactions up to it are published.
    """
    stored = evidence.stored
    if feed.position is None:
        return TraceStep("publication", "unknown", wording.FEED_BEGINS)
    if stored is None or stored.xid is None:
        return TraceStep("publication", "unknown", wording.LOGGED_LONG_AGO)
    # Earlier versions are before it in the log.
    if stored.xid <= feed.position:
        return TraceStep("publication", "passed", wording.PASSED_BY_FEED)
    if stored.version == evidence.version:
        return TraceStep("publication", "waiting", wording.NOT_FED, verdict="not_published")
    return TraceStep("publication", "unknown", wording.LOGGED_LONG_AGO)


def _is_hypothetical(evidence: Evidence) -> bool:
    """Return whether the subscriber is hypothetical: a hub's view of its nodes is then missing."""
    return "nodes" not in evidence.hub


def _matching(evidence: Evidence) -> TraceStep:
    nodes = _objects(evidence.hub.get("nodes"))
    filters = [node for node in nodes if node["node"] == "filter"]
    mine = [node for node in filters if node["partition"] == evidence.partition]
    watches = all(node["watches"] for node in mine)
    facts: JsonObject = {"partition": evidence.partition, "watches": watches}
    detail = wording.WATCHED if watches else wording.NOT_WATCHED
    if _is_hypothetical(evidence):
        detail = wording.WOULD_BE_WATCHED
    if evidence.filter is not None:
        kind, paths, reached = evidence.filter.reach
        facts |= {"found_by": kind, "paths": list(paths), "reached": reached}
        detail += " " + wording.reach(kind, paths, reached=reached)
    if watches or _change(evidence) is not None:
        return TraceStep("matching", "passed", detail, facts=facts)
    return TraceStep("matching", "waiting", detail, facts=facts, verdict="not_watched")


def _filter(evidence: Evidence) -> TraceStep:
    return _clause(evidence, "filter", evidence.filter, "no_match")


def _rule(evidence: Evidence) -> TraceStep | None:
    if not evidence.is_ruled:
        return None
    if evidence.hub.get("outdated") is True:
        return TraceStep("rule", "waiting", wording.RULES_CHANGED, verdict="rules_changed")
    if evidence.rule is None and evidence.body is not None:
        return TraceStep("rule", "stopped", wording.DENIED, verdict="hidden")
    return _clause(evidence, "rule", evidence.rule, "hidden")


def _clause(evidence: Evidence, stage: str, clause: Clause | None, verdict: str) -> TraceStep:
    change = _change(evidence)
    left = change is not None and change["match"] == "remove"
    left |= _is_grouped(evidence) and evidence.matched_before is True
    if evidence.is_deletion:
        return TraceStep(stage, "passed", wording.NOTHING_LEFT)
    if clause is None:
        if change is not None:
            return TraceStep(stage, "passed", wording.MATCHED_SURELY)
        return TraceStep(stage, "unknown", wording.CONTENT_GONE)
    facts: JsonObject = {"explanation": clause.explanation, "before": evidence.matched_before}
    sentences = wording.sentences(clause.explanation)
    if clause.matches:
        return TraceStep(stage, "passed", f"{wording.HOLDS[stage]} {sentences}", facts=facts)
    if left:
        detail = f"{wording.HOLDS_NO_MORE[stage]} {sentences}"
        return TraceStep(stage, "passed", detail, facts=facts)
    detail = f"{wording.HOLDS_NOT[stage]} {sentences}"
    if evidence.matched_before is False:
        detail += " " + wording.NOR_BEFORE
    return TraceStep(stage, "stopped", detail, None, facts, verdict)


def _is_grouped(evidence: Evidence) -> bool:
    """Return whether subscribers receive rows of groups instead of documents."""
    return evidence.hub.get("grouped") is True


def _window(evidence: Evidence) -> TraceStep | None:
    hub, change = evidence.hub, _change(evidence)
    if _is_grouped(evidence):
        return TraceStep("window", "stopped", wording.GROUPED, verdict="grouped")
    if hub.get("sorted") is not True:
        return None
    facts: JsonObject = {
        name: hub.get(name) for name in ("offset", "limit", "rows", "held_index", "place")
    }
    if change is not None:
        return TraceStep("window", "passed", wording.IN_WINDOW, facts=facts)
    if hub.get("held_version") == evidence.version:
        place = int(str(hub["held_index"])) + int(str(hub["offset"])) + 1
        return TraceStep("window", "passed", wording.AT_PLACE.format(place=place), facts=facts)
    if hub.get("renewing") is True:
        return TraceStep("window", "waiting", wording.RENEWING, facts=facts, verdict="renewing")
    if hub.get("place") in ("before", "behind") and evidence.body is not None:
        detail = wording.OUTSIDE[str(hub["place"])].format(**_shown_window(hub))
        return TraceStep("window", "stopped", detail, None, facts, "outside_window")
    if evidence.is_deletion:
        return TraceStep(
            "window", "stopped", wording.NEVER_IN_WINDOW, None, facts, "outside_window"
        )
    return TraceStep("window", "unknown", wording.WINDOW_UNKNOWN, facts=facts)


def _shown_window(hub: JsonObject) -> dict[str, int]:
    offset, rows = int(str(hub["offset"])), int(str(hub["rows"] or 0))
    return {"first": offset + 1, "last": offset + rows}


def _hub(evidence: Evidence) -> TraceStep:
    hub, change = evidence.hub, _change(evidence)
    if _is_hypothetical(evidence):
        return _hypothetical_step(evidence)
    facts: JsonObject = {"state": hub.get("state"), "held_version": hub.get("held_version")}
    if change is not None:
        match = str(change["match"])
        facts |= {
            "match": match,
            "log_position": _opaque(change["position"]),
            "changes": change["of"],
        }
        detail = wording.SHOWN[match]
        return TraceStep("hub", "passed", detail, _hub_time_ms(evidence, change, "at_us"), facts)
    return _unshown(evidence, facts)


def _hypothetical_step(evidence: Evidence) -> TraceStep:
    if evidence.is_deletion:
        return TraceStep("hub", "stopped", wording.NEVER_HELD, verdict="deleted")
    if evidence.body is None:
        return TraceStep("hub", "unknown", wording.CONTENT_GONE)
    return TraceStep("hub", "passed", wording.WOULD_HOLD, verdict="would_match")


def _unshown(evidence: Evidence, facts: JsonObject) -> TraceStep:
    """Return why the hub has sent nothing of the version."""
    hub = evidence.hub
    if hub.get("waits_for_batch") is True:
        return TraceStep("hub", "waiting", wording.WAITS_FOR_BATCH, facts=facts, verdict="batch")
    if evidence.is_deletion:
        return _deletion_unshown(evidence, facts)
    if _was_in_rows(evidence):
        at_ms = _hub_time_ms(evidence, hub, "registered_us")
        step = TraceStep("hub", "stopped", wording.IN_ROWS, at_ms, facts, "in_result")
        return replace(step, causes=_IN_DATABASE)
    if evidence.body is None:
        return _nothing_known(hub, wording.NOTHING_SHOWN, facts)
    later = _later_version(evidence)
    if later is not None:
        facts |= {"later_version": later}
        detail = wording.OUTRUN.format(version=later)
        return TraceStep("hub", "stopped", detail, None, facts, "outrun")
    if hub.get("state") == "starting":
        return TraceStep("hub", "waiting", wording.STARTING, facts=facts, verdict="starting")
    if hub.get("forgot") is True:
        return TraceStep("hub", "unknown", wording.FORGOTTEN, facts=facts, verdict="forgotten")
    return TraceStep("hub", "waiting", wording.NOT_HEARD, facts=facts, verdict="under_way")


def _deletion_unshown(evidence: Evidence, facts: JsonObject) -> TraceStep:
    hub = evidence.hub
    if hub.get("held_version") is not None:
        return TraceStep("hub", "waiting", wording.NOT_HEARD, facts=facts, verdict="under_way")
    if hub.get("gone_version") == evidence.version:
        return _nothing_known(hub, wording.FORGOTTEN, facts)
    return TraceStep("hub", "stopped", wording.NEVER_HELD, None, facts, "no_match")


def _nothing_known(hub: JsonObject, detail: str, facts: JsonObject) -> TraceStep:
    forgot = hub.get("forgot") is True
    verdict = "forgotten" if forgot else "unclear"
    return TraceStep(
        "hub", "unknown", wording.FORGOTTEN if forgot else detail, None, facts, verdict
    )


def _later_version(evidence: Evidence) -> int | None:
    """Return a later version that the hub knows of."""
    versions = [evidence.hub.get("held_version"), evidence.hub.get("gone_version")]
    versions += [change["version"] for change in _objects(evidence.hub.get("changes"))]
    known = [version for version in versions if isinstance(version, int)]
    later = [version for version in known if version > (evidence.version or 0)]
    return min(later, default=None)


def _delivery(evidence: Evidence) -> TraceStep | None:
    change = _change(evidence)
    if change is None:
        return None
    how = str(change["told"])
    at_ms = _hub_time_ms(evidence, change, "told_us")
    facts: JsonObject = {
        name: change.get(name)
        for name in ("told", "reason", "groups", "first_event", "last_event", "delivery")
    }
    facts["in_front"] = change.get("in_front")
    if how in wording.UNTOLD:
        state, verdict = wording.UNTOLD_VERDICTS[how]
        return TraceStep(
            "delivery", cast("State", state), wording.UNTOLD[how], None, facts, verdict
        )
    detail = wording.TOLD[how].format(events=_events(change), reason=change.get("reason"))
    if how == "together" and change.get("first_event") is None:
        detail = wording.UNDONE
    return _delivery_step(how, change, TraceStep("delivery", "passed", detail, at_ms, facts))


def _delivery_step(how: str, change: JsonObject, step: TraceStep) -> TraceStep:
    delivery = str(change.get("delivery"))
    if how == "muted":
        return TraceStep("delivery", "stopped", step.detail, step.at_ms, step.facts, "muted")
    if how == "anew":
        return TraceStep("delivery", "stopped", step.detail, step.at_ms, step.facts, "dropped")
    detail = f"{step.detail} {wording.DELIVERY[delivery].format(count=change.get('in_front'))}"
    if delivery == "dropped":
        return TraceStep("delivery", "stopped", detail, step.at_ms, step.facts, "dropped")
    if delivery != "taken":
        return TraceStep("delivery", "waiting", detail, step.at_ms, step.facts, "not_taken")
    verdict = {"together": "coalesced", "result": "result"}.get(how, "told")
    return TraceStep("delivery", "passed", detail, step.at_ms, step.facts, verdict)


def _events(change: JsonObject) -> str:
    first, last = change.get("first_event"), change.get("last_event")
    return f"event {first}" if first == last else f"events {first} to {last}"


def _change(evidence: Evidence) -> JsonObject | None:
    """Return what the hub sent for exactly this version."""
    changes = [
        change
        for change in _objects(evidence.hub.get("changes"))
        if change["version"] == evidence.version
    ]
    return changes[-1] if changes else None


def _was_in_rows(evidence: Evidence) -> bool:
    """Return whether the initial rows of the subscription already had the version. A snapshot that
    sees the write proves this only for a version that is known to match.
    """
    hub = evidence.hub
    seen = hub.get("rows_have_it") is True and evidence.body is not None
    return seen or hub.get("held_version") == evidence.version


def _hub_time_ms(evidence: Evidence, source: JsonObject, name: str) -> float | None:
    """Return one of the hub's times by the clock that dates writes."""
    value = source.get(name)
    return value / 1000 - evidence.valkey_ahead_ms if isinstance(value, int) else None


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_STAGES: tuple[Callable[[Evidence], TraceStep | None], ...] = (
    _write,
    _publication,
    _matching,
    _filter,
    _rule,
    _window,
    _hub,
    _delivery,
)
