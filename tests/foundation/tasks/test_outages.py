"""What crashes and an absent broker do to tasks: they delay them, and lose none."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from foundation.models import OutboxTask
from foundation.tasks import run_after_commit
from foundation.tasks.broker import Broker
from foundation.tasks.dispatch import hand_over_due
from tests.celery_worker import running_beat
from tests.foundation.tasks.bench import Bench
from tests.foundation.tasks.notes import TIMEOUT_S, lines, wait_for_lines
from tests.waiting import wait_until


def _waiting(file: Path) -> int:
    return OutboxTask.objects.using("relay").filter(arguments__file=str(file)).count()


def test_tasks_wait_while_the_broker_is_away_and_run_once_it_is_back(
    own_bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    own_bench.worker.start()
    own_bench.broker.kill()
    began = time.monotonic()
    for number in range(20):
        own_bench.run("note", {"file": str(file), "text": str(number)})
    assert time.monotonic() - began < 5, "a request must not wait for the broker"
    assert _waiting(file) == 20
    assert not file.exists()

    own_bench.broker.start()
    wait_until(
        lambda: sorted(lines(file), key=int) == [str(n) for n in range(20)],
        what="every task to run once, the broker being back",
        timeout_s=TIMEOUT_S,
    )
    assert _waiting(file) == 0


def test_tasks_wait_while_the_broker_is_frozen(own_bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    own_bench.worker.start()
    own_bench.broker.freeze()
    began = time.monotonic()
    own_bench.run("note", {"file": str(file), "text": "patience"})
    assert time.monotonic() - began < 2, "a request must not wait for the broker"
    assert _waiting(file) == 1
    own_bench.broker.thaw()
    wait_until(lambda: "patience" in lines(file), what="the task to run", timeout_s=TIMEOUT_S)


def test_a_task_whose_whole_worker_dies_is_done_again_by_the_next_one(
    own_bench: Bench, tmp_path: Path
) -> None:
    file, gate = tmp_path / "notes", tmp_path / "gate"
    own_bench.worker.start()
    own_bench.run("linger", {"file": str(file), "gate": str(gate)})
    wait_for_lines(file, ["begun"])
    own_bench.worker.kill()
    gate.touch()
    own_bench.worker.start(visibility_timeout_s=1)
    wait_for_lines(file, ["begun", "begun", "finished"])


def test_a_worker_that_is_stopped_finishes_its_task_first(own_bench: Bench, tmp_path: Path) -> None:
    file, gate = tmp_path / "notes", tmp_path / "gate"
    own_bench.worker.start()
    own_bench.run("linger", {"file": str(file), "gate": str(gate)})
    wait_for_lines(file, ["begun"])
    stopping = threading.Thread(target=own_bench.worker.stop)
    stopping.start()
    gate.touch()
    stopping.join()
    assert lines(file) == ["begun", "finished"]


def test_several_dispatchers_at_once_hand_each_task_over_once(
    own_bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    own_bench.broker.kill()
    for number in range(60):
        own_bench.run("note", {"file": str(file), "text": str(number)})
    own_bench.broker.start()

    def dispatch() -> None:
        broker = Broker()
        for _ in range(4):
            hand_over_due(broker, limit=10)
        broker.close()

    threads = [threading.Thread(target=dispatch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: _waiting(file) == 0, what="the outbox to empty")
    with own_bench.broker.client() as client:
        assert client.llen("default") == 60


def test_the_clock_of_the_installation_relays_what_is_due(
    bench_without_relay: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    bench_without_relay.worker.start()
    run_after_commit("bench.note", {"file": str(file), "text": "due"}, due_in_s=0.1)
    with running_beat(tmp_path, bench_without_relay.broker.url):
        wait_for_lines(file, ["due"])
