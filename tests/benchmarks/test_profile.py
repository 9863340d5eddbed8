"""Evaluating the stacks of a profile."""

from __future__ import annotations

from benchmarks.support.sampling import Function, functions

_STACKS = """\
run (loop.py:1);handle (web.py:7);encode (json.py:3) 6
run (loop.py:1);handle (web.py:7) 2
run (loop.py:1) 2
_bootstrap (threading.py:9);Condition.wait (threading.py:295) 90
"""


def test_functions_are_ordered_by_their_own_share_without_waiting_threads() -> None:
    assert functions(_STACKS) == [
        Function("encode (json.py:3)", 0.6, 0.6),
        Function("run (loop.py:1)", 0.2, 1.0),
        Function("handle (web.py:7)", 0.2, 0.8),
    ]
