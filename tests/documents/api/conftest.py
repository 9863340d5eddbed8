"""The tests of the data plane run for both backends."""

from __future__ import annotations

from tests.documents.backends import backend, pytest_generate_tests

__all__ = ["backend", "pytest_generate_tests"]
