"""How many files the launcher's processes may have open."""

import json
import resource
import subprocess
import sys

import pytest

PROGRAM = """
import json, resource
from rillbase_server.launcher.open_files import raise_open_files
warning = raise_open_files()
print(json.dumps([warning, resource.getrlimit(resource.RLIMIT_NOFILE)[0]]))
"""


@pytest.mark.parametrize(("hard", "is_warned"), [(4_096, False), (1_000, True)])
def test_the_soft_limit_is_raised_and_a_low_hard_limit_causes_a_warning(
    hard: int,
    is_warned: bool,  # noqa: FBT001 -- what is expected
) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard)),
    )
    warning, soft = json.loads(answer.stdout)
    assert soft == hard
    assert bool(warning) == is_warned
    assert ("ulimit -Hn" in warning) == is_warned
