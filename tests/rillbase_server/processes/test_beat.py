"""The installation's clock, and the file in which it remembers when each task was last due."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from celery.beat import Scheduler
from django.conf import settings

from rillbase_server.celery import app
from rillbase_server.processes import beat
from tests.background_service import running_service
from tests.own_valkey import free_port
from tests.waiting import TIMEOUT_S, until

#: Serves two services, one of which is a clock that never returns from its first tick.
HANGING = """
import sys, threading
import django
django.setup()
from rillbase_server.processes import beat
from rillbase_server.processes.runner import serve
from rillbase_server.processes.table import BEAT, PIPELINE, ProcessDeclaration
beat.STALLED_S, beat.LOOK_S, beat.GRACE_S = 0.2, 0.05, 0.05
beat._Scheduler.tick = lambda scheduler: threading.Event().wait()
serve(ProcessDeclaration("two", (BEAT, PIPELINE), 0), "127.0.0.1", int(sys.argv[1]))
"""


async def test_a_clock_that_ends_closes_the_file_of_its_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedulers: list[Scheduler] = []

    class RecordedScheduler(beat._Scheduler):
        def setup_schedule(self) -> None:
            super().setup_schedule()
            schedulers.append(self)

    monkeypatch.setattr(beat, "_Scheduler", RecordedScheduler)
    monkeypatch.setitem(app.conf, "beat_schedule_filename", str(tmp_path / "beat"))
    async with running_service(beat.Beat()):
        await until(lambda: bool(schedulers), "the schedule's file to be opened")
        assert schedulers[0].schedule.keys() >= app.conf.beat_schedule.keys()
    with pytest.raises(ValueError, match="closed shelf"):
        _ = schedulers[0].schedule


async def test_a_clock_that_hangs_ends_its_process_instead_of_a_second_one_beside_it(
    tmp_path: Path,
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HANGING, str(free_port())),
        cwd=settings.BASE_DIR,
        env={**os.environ, "RILLBASE_DATA_DIR": str(tmp_path)},
        stderr=subprocess.PIPE,
    )
    try:
        _, written = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 1
    assert b"the service failed and does not stop: beat" in written
