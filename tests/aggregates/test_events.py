"""Events go into aggregates, each once, all rollups together."""

from __future__ import annotations

import datetime
import gzip
import json
import os
import time

import pytest

from aggregates.api.events import MAX_EVENT_BYTES, MAX_LINE_BYTES
from foundation.scope import scoped
from tests.aggregates.aggregate_client import AggregateClient, Json, make_aggregate
from tests.caller import problem, with_key
from tests.make import make_key, make_tenant
from tests.peak_memory import peak_memory

NDJSON = "application/x-ndjson"


def request(customer: str = "acme", latency_ms: int = 10, **more: object) -> Json:
    return {
        "customer": customer,
        "app": "shop",
        "endpoint": "/cart",
        "latency_ms": latency_ms,
        **more,
    }


def count(aggregate: AggregateClient, **query_body: object) -> int:
    (row,) = aggregate.rows(group_by=[], measures=["count"], **query_body)
    return int(row["count"])


def test_an_event_is_in_every_rollup_at_once(requests_5m: AggregateClient) -> None:
    answer = requests_5m.caller.post(f"{requests_5m.path}/events", request(latency_ms=40))
    assert (answer.status_code, answer.json()) == (201, {"applied": 1, "repeated": 0})
    for rollup in (["customer"], ["customer", "app"], ["customer", "app", "endpoint"]):
        (row,) = requests_5m.rows(rollup=rollup)
        assert (row["count"], row["total"], row["latency"], row["peak"]) == (1, 40, 40, 40)
        assert {name: row[name] for name in rollup} == {name: request()[name] for name in rollup}


def test_several_events_are_added_together_or_not_at_all(requests_5m: AggregateClient) -> None:
    answer = requests_5m.add(request(), request("bolt", 20), request("bolt", 40))
    assert answer == {"applied": 3, "repeated": 0}
    broken = [request(), request(latency_ms="slow"), request()]  # type: ignore[arg-type]
    refusal = requests_5m.caller.post(f"{requests_5m.path}/events", broken)
    error = problem(refusal, 400, "invalid_body")["errors"][0]
    assert error["pointer"] == "/1/latency_ms"
    rows = requests_5m.rows(group_by=["customer"])
    assert {row["customer"]: row["total"] for row in rows} == {"acme": 10, "bolt": 60}


@pytest.mark.parametrize("body", [[], "text", 3, [1], [[]]])
def test_what_is_no_event_is_refused(requests_5m: AggregateClient, body: object) -> None:
    problem(requests_5m.caller.post(f"{requests_5m.path}/events", body), 400, "invalid_body")


def test_an_event_with_a_name_is_added_once(requests_5m: AggregateClient) -> None:
    named = request(event_id="first")
    assert requests_5m.add(named) == {"applied": 1, "repeated": 0}
    again = requests_5m.caller.post(f"{requests_5m.path}/events", named)
    assert (again.status_code, again.json()) == (200, {"applied": 0, "repeated": 1})
    assert requests_5m.add(named, request()) == {"applied": 1, "repeated": 1}
    assert count(requests_5m) == 2


def test_a_repeated_call_with_a_key_is_answered_as_before(requests_5m: AggregateClient) -> None:
    path, events = f"{requests_5m.path}/events", [request(), request()]
    first = requests_5m.caller.post(path, events, Idempotency_Key="once")
    again = requests_5m.caller.post(path, events, Idempotency_Key="once")
    assert first.json() == again.json() == {"applied": 2, "repeated": 0}
    assert again.headers["Idempotency-Replayed"] == "true"
    other = requests_5m.caller.post(path, [request()], Idempotency_Key="once")
    problem(other, 422, "idempotency_mismatch")
    assert count(requests_5m) == 2


def test_events_are_counted_in_the_bucket_of_their_time(requests_5m: AggregateClient) -> None:
    hour = datetime.datetime.now(datetime.UTC).replace(minute=0, second=0, microsecond=0)
    hour -= datetime.timedelta(hours=1)
    moments = [hour + datetime.timedelta(minutes=minute) for minute in (0, 4, 5, 11)]
    requests_5m.add(*(request(at=moment.isoformat()) for moment in moments))
    ms = int((hour + datetime.timedelta(minutes=12)).timestamp() * 1000)
    requests_5m.add(request(at=ms), request(at={"$date": (hour).isoformat()}))
    rows = requests_5m.rows(group_by=["at"], order=[["at", 1]])
    assert [row["count"] for row in rows] == [3, 1, 2]
    times = [datetime.datetime.fromisoformat(row["at"]) for row in rows]
    assert times == [hour + datetime.timedelta(minutes=minute) for minute in (0, 5, 10)]


def test_an_old_event_is_accepted_only_without_an_id(requests_5m: AggregateClient) -> None:
    old = int((time.time() - 3 * 86_400) * 1000)
    path = f"{requests_5m.path}/events"
    refusal = requests_5m.caller.post(path, request(at=old, event_id="e"))
    assert problem(refusal, 400, "event_too_old")["errors"][0]["pointer"] == "/at"
    assert requests_5m.add(request(at=old), Idempotency_Key="k")["applied"] == 1
    assert count(requests_5m) == 1


def test_a_sum_that_would_overflow_changes_nothing(requests_5m: AggregateClient) -> None:
    most = {"$numberLong": str(2**63 - 1)}
    requests_5m.add(request(latency_ms=5))
    refusal = requests_5m.caller.post(
        f"{requests_5m.path}/events",
        [request(latency_ms=most), request(latency_ms=most)],  # type: ignore[arg-type]
    )
    if refusal.status_code != 201:
        problem(refusal, 400, "sum_overflow")
        assert count(requests_5m) == 1


def test_lines_are_added_while_they_arrive(requests_5m: AggregateClient) -> None:
    lines = [json.dumps(request(f"c{n % 7}", n)) for n in range(2_500)]
    lines[1200], lines[1800] = "{", json.dumps(request(latency_ms="slow"))  # type: ignore[arg-type]
    text = "\n".join(lines).encode()
    answer = requests_5m.caller.call(
        "POST",
        f"{requests_5m.path}/events",
        raw=gzip.compress(text),
        Content_Type=NDJSON,
        Content_Encoding="gzip",
    )
    assert answer.status_code == 200, answer.text
    response = answer.json()
    assert (response["applied"], response["lines"], response["complete"]) == (2_498, 2_500, True)
    assert sorted(refused["line"] for refused in response["refused"]) == [1_201, 1_801]
    assert count(requests_5m) == 2_498


def test_large_events_of_a_stream_are_rejected_as_they_arrive(requests_5m: AggregateClient) -> None:
    large = json.dumps(request(note="x" * 4_000_000)).encode()
    text = gzip.compress(b"\n".join([large] * 40 + [json.dumps(request()).encode()]))
    with peak_memory() as peak:
        answer = requests_5m.caller.call(
            "POST",
            f"{requests_5m.path}/events",
            raw=text,
            Content_Type=NDJSON,
            Content_Encoding="gzip",
        )
    response = answer.json()
    assert (response["applied"], len(response["refused"])) == (1, 40)
    assert peak.added_mib < 64


def test_a_stream_of_nonsense_is_abandoned(requests_5m: AggregateClient) -> None:
    answer = requests_5m.caller.call(
        "POST", f"{requests_5m.path}/events", raw=b"nonsense\n" * 1_000, Content_Type=NDJSON
    )
    response = answer.json()
    assert (response["applied"], response["complete"], len(response["refused"])) == (0, False, 100)


def test_a_line_far_beyond_an_event_is_refused_and_the_others_are_added(
    requests_5m: AggregateClient,
) -> None:
    line = json.dumps(request()).encode()
    long = b'{"a":[%b0]}' % (b"0," * MAX_LINE_BYTES)
    answer = requests_5m.caller.call(
        "POST",
        f"{requests_5m.path}/events",
        raw=b"\n".join((line, long, line)),
        Content_Type=NDJSON,
    )
    response = answer.json()
    assert (response["applied"], response["lines"], response["complete"]) == (2, 3, True)
    (refused,) = response["refused"]
    assert refused["line"] == 2
    assert str(MAX_EVENT_BYTES) in json.dumps(refused["error"])


def test_a_list_of_millions_of_events_is_refused_before_they_are_counted(
    requests_5m: AggregateClient,
) -> None:
    millions = b"[%b{}]" % (b"{}," * 10_000_000)
    with peak_memory(os.getpid()) as peak:
        answer = requests_5m.caller.call(
            "POST", f"{requests_5m.path}/events", raw=millions, Content_Type="application/json"
        )
        problem(answer, 413, "document_too_large")
    # The client's own copies of the body are in this process, too.
    assert peak.added_mib < 512


def test_a_stream_with_a_key_adds_its_lines_once(requests_5m: AggregateClient) -> None:
    text = "\n".join(json.dumps(request(latency_ms=n)) for n in range(50)).encode()
    results = [
        requests_5m.caller.call(
            "POST",
            f"{requests_5m.path}/events",
            raw=text,
            Content_Type=NDJSON,
            Idempotency_Key="stream",
        ).json()
        for _ in range(2)
    ]
    assert [(t["applied"], t["repeated"]) for t in results] == [(50, 0), (0, 50)]


def test_adding_needs_the_scope_to_write(server: str, requests_5m: AggregateClient) -> None:
    with scoped(tenant_id=requests_5m.account.tenant.id):
        reads = make_key(requests_5m.account.tenant, scopes=["aggregates:read"])
    caller = with_key(server, reads)
    path = requests_5m.path
    details = problem(caller.post(f"{path}/events", request()), 403, "missing_scope")
    assert "aggregates:write" in details["detail"]
    assert caller.post(f"{path}/query", {}).status_code == 200


def test_another_tenants_aggregate_does_not_exist(
    server: str, requests_5m: AggregateClient
) -> None:
    stranger = with_key(server, make_tenant().admin_key)
    problem(stranger.post(f"{requests_5m.path}/events", request()), 404, "not_found")
    problem(stranger.post(f"{requests_5m.path}/query", {}), 404, "not_found")
    other = make_aggregate(server)
    other.add(request("theirs"))
    requests_5m.add(request("ours"))
    assert [row["customer"] for row in requests_5m.rows(group_by=["customer"])] == ["ours"]
