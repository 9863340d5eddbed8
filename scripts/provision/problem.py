"""A problem that stops a set-up, as one line for people."""

from __future__ import annotations


class SetUpProblem(Exception):
    """Its text is the whole message; no traceback is shown for it."""
