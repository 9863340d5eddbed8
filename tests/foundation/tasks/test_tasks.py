"""What a task promises, with a real worker: it runs after the commit, and again when it fails."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from django.db import connections, transaction
from django.utils import timezone
from psycopg import sql

from foundation import request_context
from foundation.ids import uuid7
from foundation.models import DeadLetter, OutboxTask
from foundation.scope import scoped
from foundation.tasks import AlreadyRequeued, requeue, run_after_commit
from foundation.tasks.context import TaskContext
from foundation.tasks.failures import TaskFailure, settle
from foundation.tasks.retry_policy import RetryPolicy
from tests.foundation.tasks.bench import Bench
from tests.foundation.tasks.notes import TIMEOUT_S, lines, wait_for_lines
from tests.make import make_tenant
from tests.waiting import wait_until

HOUR = datetime.timedelta(hours=1)


def _letters(file: Path) -> list[DeadLetter]:
    return list(DeadLetter.objects.using("relay").filter(arguments__file=str(file)))


def _wait_for_letter(file: Path) -> DeadLetter:
    wait_until(lambda: bool(_letters(file)), what="a dead letter", timeout_s=TIMEOUT_S)
    (letter,) = _letters(file)
    return letter


def test_a_task_runs_after_the_commit_and_not_before(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    with transaction.atomic():
        bench.run("note", {"file": str(file), "text": "in the transaction"})
        run_after_commit("bench.note", {"file": str(file) + ".other", "text": "x"}, using="auth")
        wait_for_lines(Path(f"{file}.other"), ["x"])  # the worker is at work all the while
        assert not file.exists()
    wait_for_lines(file, ["in the transaction"])


def test_a_task_of_a_rolled_back_transaction_never_runs(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    with transaction.atomic():
        bench.run("note", {"file": str(file), "text": "never"})
        transaction.set_rollback(True)
    bench.run("note", {"file": str(tmp_path / "after"), "text": "done"})
    wait_for_lines(tmp_path / "after", ["done"])
    assert not file.exists()


@pytest.mark.usefixtures("bench")
def test_a_delayed_task_waits_in_the_outbox_and_then_runs(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    row = run_after_commit("bench.note", {"file": str(file), "text": "late"}, due_in_s=1.5)
    assert OutboxTask.objects.using("relay").filter(pk=row.pk).exists()
    wait_for_lines(file, ["late"])
    wait_until(
        lambda: not OutboxTask.objects.using("relay").filter(pk=row.pk).exists(),
        what="the row to go once the task has ended",
    )


@pytest.mark.usefixtures("bench")
def test_a_task_has_the_request_id_and_tenant_of_its_origin(tmp_path: Path) -> None:
    account = make_tenant()
    token = request_context.request_id.set("req-42")
    try:
        with scoped(tenant_id=account.tenant.id):
            run_after_commit(
                "bench.tell_context", {"file": str(tmp_path / "n")}, tenant_id=account.tenant.id
            )
    finally:
        request_context.request_id.reset(token)
    wait_for_lines(tmp_path / "n", [f"req-42 {account.tenant.id}"])


def test_a_failed_task_is_retried(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    bench.run("fail", {"file": str(file), "times": 2})
    wait_for_lines(file, ["tried"] * 3)
    assert _letters(file) == []


def test_after_its_last_attempt_a_task_becomes_a_dead_letter_that_can_be_requeued(
    bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    bench.run("fail", {"file": str(file), "times": 3})
    letter = _wait_for_letter(file)
    assert lines(file) == ["tried"] * 3
    assert (letter.name, letter.attempts, letter.requeued_at) == ("bench.fail", 3, None)
    assert letter.error.rstrip().endswith("RuntimeError: it went wrong")

    requeue(letter)
    wait_for_lines(file, ["tried"] * 4)
    with pytest.raises(AlreadyRequeued):
        requeue(letter)


def test_a_task_whose_process_is_killed_is_repeated(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    bench.run("die", {"file": str(file), "times": 1})
    wait_for_lines(file, ["begun", "begun", "finished"])


def test_a_task_that_always_kills_its_process_becomes_a_dead_letter(
    bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    bench.run("die", {"file": str(file), "times": 99})
    letter = _wait_for_letter(file)
    assert lines(file) == ["begun"] * 3
    assert "process died" in letter.error
    assert letter.attempts == 3


def test_a_task_that_ignores_its_time_limit_is_killed_and_tried_again(
    bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    bench.run("hang", {"file": str(file), "times": 1})
    wait_for_lines(file, ["begun", "begun"])
    assert "interrupted" in lines(Path(f"{file}.soft"))
    assert _letters(file) == []


def test_a_task_that_always_exceeds_its_time_limit_becomes_a_dead_letter(
    bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    bench.run("hang", {"file": str(file), "times": 99})
    letter = _wait_for_letter(file)
    assert "hard time limit" in letter.error
    assert lines(file) == ["begun"] * 3


@pytest.mark.usefixtures("bench")
def test_a_task_unknown_to_this_release_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    row = run_after_commit("bench.of_a_newer_release", {"file": str(file)})
    wait_until(
        lambda: OutboxTask.objects.using("relay").filter(pk=row.pk, attempt=2).exists(),
        what="the task to be kept for another attempt",
        timeout_s=TIMEOUT_S,
    )
    OutboxTask.objects.using("relay").filter(pk=row.pk).delete()


def test_a_periodic_task_that_keeps_failing_leaves_one_dead_letter(bench: Bench) -> None:
    letters = DeadLetter.objects.using("relay").filter(name="bench.fail_on_schedule")
    bench.run("fail_on_schedule", {})
    bench.run("fail_on_schedule", {})
    wait_until(
        lambda: [x.attempts for x in letters.all()] == [2],
        what="both failures to be counted in one dead letter",
        timeout_s=TIMEOUT_S,
    )


def test_settling_a_failure_twice_schedules_one_attempt() -> None:
    rows = OutboxTask.objects.using("relay")
    failure = _failure(uuid7(), tracked=True)
    rows.create(
        id=UUID(failure.task_id), name="bench.note", due_at=timezone.now(), handed_to="a broker"
    )
    for _ in range(2):
        settle(failure, RetryPolicy())
    (row,) = rows.filter(pk=failure.task_id)
    assert (row.attempt, row.handed_to) == (2, "")
    row.delete()


def test_a_failed_task_that_another_copy_of_its_message_has_finished_is_not_tried_again() -> None:
    failure = _failure(uuid7(), tracked=True)
    settle(failure, RetryPolicy())
    assert not OutboxTask.objects.using("relay").filter(pk=failure.task_id).exists()


def test_a_failed_task_that_the_release_before_handed_over_gets_a_row_again() -> None:
    failure = _failure(uuid7(), tracked=False)
    for _ in range(2):
        settle(failure, RetryPolicy())
    (row,) = OutboxTask.objects.using("relay").filter(pk=failure.task_id)
    assert row.attempt == 2
    row.delete()


def _failure(task_id: UUID, *, tracked: bool) -> TaskFailure:
    context = TaskContext(tracked=tracked)
    return TaskFailure(str(task_id), "bench.note", {}, context, "it went wrong")


@pytest.mark.parametrize("tracked", [True, False])
def test_a_task_that_fails_before_its_hand_over_is_committed_is_tried_again(
    *, tracked: bool
) -> None:
    task_id = uuid7()
    rows = OutboxTask.objects.using("relay")
    rows.create(id=task_id, name="bench.note", due_at=timezone.now() + HOUR)
    with ThreadPoolExecutor(1) as worker:
        with transaction.atomic(using="relay"):
            row = rows.select_for_update().get(pk=task_id)
            # The broker has the task now, and the worker is quick.
            settling = worker.submit(_settle, _failure(task_id, tracked=tracked))
            wait_until(_blocks_another, what="the worker to find the row held")
            if tracked:
                row.handed_to = "a broker"
                row.save()
            else:
                row.delete()  # as the release before does
        settling.result()
    (again,) = rows.filter(pk=task_id)
    assert (again.attempt, again.handed_to) == (2, "")
    again.delete()


def _settle(failure: TaskFailure) -> None:
    try:
        settle(failure, RetryPolicy())
    finally:
        connections.close_all()


def _blocks_another() -> bool:
    """Whether another transaction waits for a lock that this thread's transaction holds."""
    with connections["relay"].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone()[0])


def test_a_task_that_meets_a_full_disk_waits_for_space_and_never_becomes_a_dead_letter(
    bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    bench.run("fill", {"file": str(file), "times": 5})
    wait_for_lines(file, ["tried"] * 6)
    assert _letters(file) == []


def test_a_task_that_cannot_be_rescheduled_is_redelivered_by_the_broker(
    bench: Bench, tmp_path: Path, postgres_url: str
) -> None:
    file = tmp_path / "notes"
    with _full_outbox(postgres_url, file):
        bench.run("fill", {"file": str(file), "times": 2})
        wait_until(lambda: len(lines(file)) >= 2, what="another attempt", timeout_s=TIMEOUT_S)
    wait_for_lines(file, ["tried"] * 3)
    assert _letters(file) == []


@contextmanager
def _full_outbox(postgres_url: str, file: Path) -> Iterator[None]:
    """Refuse rows of one task's, but for the first, as a full disk does."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE SEQUENCE task_rows")
        admin.execute("GRANT USAGE ON SEQUENCE task_rows TO PUBLIC")
        admin.execute(
            "CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF NEW.arguments->>'file' = TG_ARGV[0] AND nextval('task_rows') > 1 THEN "
            "RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END IF; RETURN NEW; END $$"
        )
        admin.execute(
            sql.SQL(
                "CREATE TRIGGER full_disk BEFORE INSERT ON foundation_outboxtask FOR EACH ROW "
                "EXECUTE FUNCTION refuse_row({})"
            ).format(sql.Literal(str(file)))
        )
        try:
            yield
        finally:
            admin.execute("DROP FUNCTION refuse_row CASCADE; DROP SEQUENCE task_rows")
