"""A backup of the storage node begins with a checkpoint."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.make import unique


def test_a_checkpoint_name_can_be_used_once() -> None:
    name, output = unique("backup"), StringIO()
    call_command("checkpoint_storage", name, stdout=output)
    taken = Path(output.getvalue().strip())
    assert (taken.parent.name, taken.name) == ("checkpoints", name)
    assert any(taken.iterdir())
    with pytest.raises(CommandError):
        call_command("checkpoint_storage", name)


def test_without_a_node_the_command_reports_it(settings_environment: pytest.MonkeyPatch) -> None:
    settings_environment.setenv("STORAGE_URL", "")
    with pytest.raises(CommandError, match="there is no storage node"):
        call_command("checkpoint_storage", "x")
