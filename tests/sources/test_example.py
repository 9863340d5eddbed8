"""The example of a shop that only writes SQL runs as its help says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.caller import with_key
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.sources.upstream import Database

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.usefixtures("following")
def test_a_shop_that_only_writes_sql_is_watched(server: str, database: Database) -> None:
    from tests.make import make_tenant

    account = make_tenant(plan="dedicated")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "examples.postgresql", "--url", server),
            *("--database", database.url, "--seconds", "2"),
        ],
        cwd=ROOT,
        env={**os.environ, "RILLBASE_KEY": account.admin_key},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "all writes are SQL" in run.stdout
    ((paid,),) = database.rows("SELECT count(*) FROM shop_orders WHERE state = 'paid'")
    assert paid > 0
    caller, path = with_key(server, account.admin_key), f"/api/v1/tenants/{account.slug}/sources"
    # A source is removed with its collection, once its slot and publication are gone.
    wait_until(lambda: caller.get(path).json()["items"] == [], what="nothing to be left behind")
