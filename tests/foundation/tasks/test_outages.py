"""Crashes and an unavailable broker delay tasks, but lose none."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from django.db import transaction

from foundation.models import DeadLetter, OutboxTask
from foundation.tasks import run_after_commit
from foundation.tasks.broker import Broker
from foundation.tasks.dispatch import hand_over_due
from tenants.mail import MailTemplate, post
from tests.celery_worker import running_beat
from tests.foundation.tasks.bench import Bench
from tests.foundation.tasks.notes import TIMEOUT_S, lines, wait_for_lines
from tests.mailbox import all_mails_to
from tests.make import unique
from tests.waiting import wait_until


def _unfinished(file: Path) -> int:
    return OutboxTask.objects.using("relay").filter(arguments__file=str(file)).count()


def _waiting(file: Path) -> int:
    rows = OutboxTask.objects.using("relay")
    return rows.filter(arguments__file=str(file), handed_to="").count()


def _handed_over(file: Path) -> int:
    return _unfinished(file) - _waiting(file)


def test_tasks_wait_while_the_broker_is_down_and_run_afterwards(
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
    wait_until(lambda: _unfinished(file) == 0, what="the rows to go, the tasks having ended")


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


def test_the_next_worker_repeats_a_task_whose_worker_died(own_bench: Bench, tmp_path: Path) -> None:
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
        sent = sorted(int(text) for text in _texts(client.lrange("default", 0, -1), file))
    assert sent == list(range(60))


def test_beat_relays_due_tasks(bench_without_relay: Bench, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    bench_without_relay.worker.start()
    run_after_commit("bench.note", {"file": str(file), "text": "due"}, due_in_s=0.1)
    with running_beat(tmp_path, bench_without_relay.broker.url):
        wait_for_lines(file, ["due"])


def test_tasks_that_the_broker_loses_with_its_data_run_all_the_same(
    own_bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    for number in range(20):
        own_bench.run("note", {"file": str(file), "text": str(number)})
    wait_until(lambda: _handed_over(file) == 20, what="the broker to have the tasks")
    own_bench.broker.kill()
    own_bench.broker.start()
    own_bench.worker.start()
    wait_until(
        lambda: sorted(lines(file), key=int) == [str(n) for n in range(20)],
        what="every task to run once",
        timeout_s=TIMEOUT_S,
    )
    wait_until(lambda: _unfinished(file) == 0, what="the rows to go")


def test_tasks_of_a_broker_that_is_emptied_while_it_runs_are_handed_over_again(
    own_bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    own_bench.run("note", {"file": str(file), "text": "kept"})
    wait_until(lambda: _handed_over(file) == 1, what="the broker to have the task")
    with own_bench.broker.client() as client:
        client.flushall()
    own_bench.worker.start()
    wait_for_lines(file, ["kept"])


def test_a_task_that_is_running_when_the_broker_loses_its_data_is_finished(
    own_bench: Bench, tmp_path: Path
) -> None:
    file, gate = tmp_path / "notes", tmp_path / "gate"
    own_bench.worker.start()
    own_bench.run("linger", {"file": str(file), "gate": str(gate)})
    wait_for_lines(file, ["begun"])
    own_bench.broker.kill()
    own_bench.worker.kill()
    gate.touch()
    own_bench.broker.start()
    own_bench.worker.start()
    wait_for_lines(file, ["begun", "begun", "finished"])
    wait_until(lambda: _unfinished(file) == 0, what="the row to go")


def test_a_task_that_failed_before_the_broker_lost_its_data_keeps_its_attempts(
    own_bench: Bench, tmp_path: Path
) -> None:
    file, letters = tmp_path / "notes", DeadLetter.objects.using("relay")
    own_bench.worker.start()
    own_bench.run("fail", {"file": str(file), "times": 99})
    wait_until(lambda: bool(lines(file)), what="the first attempt", timeout_s=TIMEOUT_S)
    with own_bench.broker.client() as client:
        client.flushall()
    mine = letters.filter(arguments__file=str(file))
    wait_until(mine.exists, what="a dead letter", timeout_s=TIMEOUT_S)
    assert [letter.attempts for letter in mine] == [3]
    assert _unfinished(file) == 0


def test_a_second_copy_of_a_message_whose_task_has_ended_does_nothing(
    own_bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    own_bench.run("note", {"file": str(file), "text": "once"})
    wait_until(lambda: _handed_over(file) == 1, what="the broker to have the task")
    with own_bench.broker.client() as client:
        (message,) = client.lrange("default", 0, -1)
        client.lpush("default", message)
    own_bench.worker.start()
    own_bench.run("note", {"file": f"{file}.last", "text": "done"})
    wait_for_lines(Path(f"{file}.last"), ["done"])
    assert lines(file) == ["once"]


def test_a_mail_that_the_broker_loses_is_sent_all_the_same(own_bench: Bench) -> None:
    address = f"{unique('lost')}@example.test"
    with transaction.atomic():
        post(MailTemplate.ALREADY_REGISTERED, address)
    mail = OutboxTask.objects.using("relay").filter(arguments__to=address)
    wait_until(mail.exclude(handed_to="").exists, what="the broker to have the task")
    own_bench.broker.kill()
    own_bench.broker.start()
    own_bench.worker.start()
    assert len(all_mails_to(address)) == 1


def _texts(messages: list[bytes], file: Path) -> Iterator[str]:
    """Yield the texts of the queued notes for the file. Other tests' tasks may be queued too."""
    for message in messages:
        _, arguments, _ = json.loads(base64.b64decode(json.loads(message)["body"]))
        if arguments.get("file") == str(file):
            yield arguments["text"]
