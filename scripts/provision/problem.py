"""A problem that stops the setup, as a message for the user."""

from __future__ import annotations


class SetUpProblem(Exception):
    """Its text is the whole message; no traceback is shown for it."""
