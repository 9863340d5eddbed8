"""`manage.py` describes its commands, and says in a line what is missing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from foundation.environment import environment
from rillbase_server.commands import GROUPS
from tenants.actions import local_links
from tests.launcher_command import ROOT, run
from tests.launcher_command import environment as without_settings
from tests.make import make_user

COMMANDS = {name for commands in GROUPS.values() for name in commands}


@pytest.mark.parametrize("arguments", [(), ("help",), ("--help",), ("-h",)])
def test_the_commands_are_listed_without_a_database(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    listed = re.findall(r"^  (\S+)  +\S", done.stdout, re.MULTILINE)
    assert listed == [name for commands in GROUPS.values() for name in commands]


def test_every_management_command_is_listed() -> None:
    files = subprocess.run(
        ["git", "ls-files", "*/management/commands/*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {Path(file).stem for file in files} - {"__init__"} <= COMMANDS


@pytest.mark.parametrize("name", ["up", "sign-in-link", "backup", "why", "grid"])
def test_a_command_describes_itself_without_a_database(name: str) -> None:
    for arguments in (("help", name), (name, "--help")):
        done = run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("usage: ")
        assert name in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"DATABASE_URL is not set"),
        ({"RILLBASE_BODY_MAX_BYTES": "many"}, r"RILLBASE_BODY_MAX_BYTES: .*valid integer"),
        ({"RILLBASE_ENV": "production"}, r"not safe for production: RILLBASE_"),
    ],
)
def test_settings_that_are_missing_or_not_valid_are_named(
    settings: dict[str, str], message: str
) -> None:
    done = run("grid", env=without_settings(**settings))
    assert done.returncode == 2
    assert re.match(f"Error: {message}", done.stderr)
    assert "Traceback" not in done.stderr


def test_a_link_is_printed_only_for_a_running_instance(tmp_path: Path) -> None:
    done = run("sign-in-link", "--data-dir", tmp_path)
    assert done.returncode == 3
    assert "No web server of Rillbase is running" in done.stderr


def test_a_printed_link_signs_its_user_in(capsys: pytest.CaptureFixture[str]) -> None:
    user = make_user()
    call_command("issue_sign_in_link", user.email)
    token = capsys.readouterr().out.strip().partition("#token=")[2]
    with transaction.atomic(using="auth"):
        assert local_links.do_redeem(token).email == user.email


def test_an_address_without_an_account_gets_no_link() -> None:
    with pytest.raises(CommandError, match="No active user has the address"):
        call_command("issue_sign_in_link", "nobody@example.com")


def test_a_production_installation_prints_no_links(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    production = environment().model_copy(update={"rillbase_env": "production"})
    monkeypatch.setattr(local_links, "environment", lambda: production)
    with pytest.raises(CommandError, match="production"):
        call_command("issue_sign_in_link", make_user().email)
