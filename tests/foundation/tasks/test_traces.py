"""The traces of tasks that fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from tests.foundation.tasks.bench import Bench
from tests.foundation.tasks.notes import TIMEOUT_S
from tests.otlp_receiver import Receiver, attributes
from tests.waiting import wait_until


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver of the traces of all processes that the test starts."""
    receiver = Receiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    yield receiver
    receiver.close()


def test_the_span_of_each_failed_attempt_has_its_error_and_whether_it_is_retried(
    receiver: Receiver, own_bench: Bench, tmp_path: Path
) -> None:
    own_bench.worker.start()
    own_bench.run("fail", {"file": str(tmp_path / "notes"), "times": 99})
    wait_until(
        lambda: len(_attempts(receiver)) == 3, what="a span per attempt", timeout_s=TIMEOUT_S
    )
    assert _attempts(receiver) == [
        ("RETRY", "RuntimeError"),
        ("RETRY", "RuntimeError"),
        ("FAILURE", "PermanentFailure"),
    ]


def _attempts(receiver: Receiver) -> list[tuple[object, str]]:
    """Return the state of each attempt, and the type of the error that its span has."""
    spans = [span for span in receiver.spans if span.name == "run bench.fail"]
    spans.sort(key=lambda span: span.start_time_unix_nano)
    return [
        (attributes(span)["rillbase.task_state"], str(value.value.string_value).rpartition(".")[2])
        for span in spans
        if span.status.code == Status.STATUS_CODE_ERROR
        for event in span.events
        for value in event.attributes
        if value.key == "exception.type"
    ]
