"""The JavaScript SDK's own tests, with a server and a clock that they play themselves."""

from __future__ import annotations

import subprocess

from tests.sdk.javascript import compiled, report


def test_the_tests_of_the_javascript_sdk_pass() -> None:
    tests = sorted((compiled() / "test").glob("*.test.js"))
    assert tests
    ran = subprocess.run(
        ["node", "--test", *map(str, tests)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, report(ran)
