"""The demo tenant has a source with data that changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.caller import with_key
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.caller import Caller

ROOT = Path(__file__).resolve().parents[2]
PER_START_S = 120.0
#: The demo, whose deliveries arrive in seconds instead of minutes.
DEMO = """
import sys
from examples.demo import __main__ as demo, couriers
couriers.STATE_S = 4.0
sys.exit(demo.main())
"""


def stock(caller: Caller) -> list[Any]:
    answer = caller.post("/v1/collections/stock/query", {"filter": {}, "limit": 100})
    return [item["document"] for item in answer.json()["items"]] if answer.ok else []


def on_hand(caller: Caller) -> int:
    return sum(row["on_hand"] for row in stock(caller))


@pytest.mark.usefixtures("following")
@pytest.mark.timeout(300)
def test_the_stock_of_the_demo_is_followed_after_each_start(server: str, tmp_path: Path) -> None:
    from tests.make import make_tenant

    account = make_tenant(plan="dedicated")
    caller = with_key(server, account.admin_key)
    key = tmp_path / "demo.key"
    key.write_text(account.admin_key)
    source = f"/api/v1/tenants/{account.slug}/collections/stock/source"
    argv = [sys.executable, "-c", DEMO, "--url", server, "--key-file", str(key)]
    seen: set[str] = set()
    for _ in range(2):
        process = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        try:

            def is_live(seen: set[str] = seen) -> bool:
                result = caller.get(source)
                return (
                    result.ok
                    and result.json()["state"] == "live"
                    and result.json()["connection"] not in seen
                    and len(stock(caller)) == 16
                )

            wait_until(is_live, what="the stock to be followed", timeout_s=PER_START_S)
            seen.add(caller.get(source).json()["connection"])
            before = on_hand(caller)
            wait_until(
                lambda before=before: on_hand(caller) != before,  # type: ignore[misc]
                what="a sale",
                timeout_s=PER_START_S,
            )
        finally:
            process.terminate()
            _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert {row["goods"] for row in stock(caller)} == {"Bread", "Flowers", "Books", "Wine"}
