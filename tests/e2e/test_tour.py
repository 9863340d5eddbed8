"""The tour of the API works as described when its blocks are pasted one after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rillbase_server.launcher.preflight import WITHOUT_SPARK
from tests.launcher_process import LauncherDirectory
from tests.own_valkey import free_port
from tests.shell import Shell
from tests.waiting import wait_until

TOUR = Path(__file__).resolve().parents[2] / "docs" / "tour.md"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def shell() -> Iterator[Shell]:
    opened = Shell()
    yield opened
    opened.close()


def tour(receiver_port: int) -> Iterator[str]:
    """Yield the blocks after the export of the panel's values, with a free port."""
    text = TOUR.read_text().replace("9000", str(receiver_port))
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exported = [block.startswith("export URL=") for block in blocks].index(True)
    return iter(blocks[exported + 1 :])


def answers(shown: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in shown.splitlines() if line.startswith("{")]


def test_the_tour_works_as_described(launcher_directory: LauncherDirectory, shell: Shell) -> None:
    blocks = tour(free_port())
    with launcher_directory.up(**WITHOUT_SPARK) as launched:
        ready = launched.ready
        shell.paste(
            f"export URL={ready['url']} EMAIL={ready['email']}"
            f" PASSWORD='{ready['password']}' KEY={ready['api_key']}"
        )
        assert answers(shell.paste(next(blocks))) == []  # the shorthands

        _documents(shell, blocks)
        _accounts(shell, blocks)
        assert "Running" not in _jobs(shell)
    assert next(blocks, None) is None


def _jobs(shell: Shell) -> str:
    """Return the shell's jobs once the jobs that were asked to end have ended."""
    return shell.paste("wait; jobs")


def _documents(shell: Shell, blocks: Iterator[str]) -> None:
    """Queries, writes, and a live query during writes."""
    (me,) = answers(shell.paste(next(blocks)))
    assert me["tenant"] == "demo"
    (page,) = answers(shell.paste(next(blocks)))
    assert len(page["items"]) == 2  # type: ignore[arg-type]
    created, changed_todo, refused = answers(shell.paste(next(blocks)))
    assert (created["version"], changed_todo["version"]) == (1, 2)
    assert (refused["code"], refused["errors"][0]["pointer"]) == ("invalid_document", "/done")  # type: ignore[index]
    shell.paste(next(blocks))  # the live query
    shell.wait_for("watching")
    assert answers(shell.paste(next(blocks))) == []
    shell.wait_for("v4 deleted")
    (plan,) = answers(shell.paste(next(blocks)))
    assert plan["plan"]["index"] == "by-owner"  # type: ignore[index]


def _accounts(shell: Shell, blocks: Iterator[str]) -> None:
    """Signing in, tenants, keys and webhooks."""
    assert answers(shell.paste(next(blocks))) == []  # signs in, quietly

    make_tenant = next(blocks)
    (first,) = answers(shell.paste(make_tenant))
    assert first["slug"] == "my-shop"
    assert answers(shell.paste(make_tenant)) == [first]

    (key,) = answers(shell.paste(next(blocks)))
    assert (key["tenant"], key["label"]) == ("my-shop", "Back end")
    (rotated,) = answers(shell.paste(next(blocks)))
    assert str(rotated["secret"]).startswith("rbk_")

    changed, late = answers(shell.paste(next(blocks)))
    assert changed["name"] == "My corner shop"
    assert late["status"] == 412

    shell.paste(next(blocks))  # the receiver
    (webhook,) = answers(shell.paste(next(blocks)))
    assert webhook["state"] == "pending"
    shell.wait_for("received webhook.verification")
    _confirmed(shell)

    shown = shell.paste(next(blocks))
    assert "received api_key.revoked" in shown
    assert [a.get("state", a.get("code")) for a in answers(shown)] == [
        "revoked",
        "invalid_credentials",
    ]
    (audit,) = answers(shell.paste(next(blocks)))
    assert "api_key.revoked" in str(audit)


def _confirmed(shell: Shell) -> None:
    """Wait like a reader: the confirmation commits just after the receiver has answered."""
    wait_until(
        lambda: '"state":"active"' in shell.paste('api -H "$me" $SHOP/webhooks'),
        what="the webhook to be active",
    )
