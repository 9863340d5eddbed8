"""An installation in which Spark or Java is missing."""

from __future__ import annotations

import os
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

import pytest

from rillbase_server.launcher import preflight
from rillbase_server.launcher.preflight import choose_processes_without_spark, java_problem


@pytest.fixture(autouse=True)
def _nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in preflight.WITHOUT_SPARK:
        # Set first, so that the value that the code chooses is removed after the test.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None if name == "pyspark" else find_spec(name)

    monkeypatch.setattr(preflight, "find_spec", find)


@pytest.mark.usefixtures("without_spark")
def test_without_spark_processes_and_threads_are_used_and_the_user_is_notified() -> None:
    note = choose_processes_without_spark()
    assert "Spark is not installed: the matching grid runs as processes" in note
    assert os.environ["RILLBASE_GRID"] == "processes"
    assert os.environ["RILLBASE_ANALYTICS_WORKERS"] == "threads"
    assert java_problem() is None


@pytest.mark.usefixtures("without_spark")
def test_spark_is_required_where_the_user_has_chosen_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RILLBASE_GRID", "spark")
    choose_processes_without_spark()
    assert os.environ["RILLBASE_GRID"] == "spark"
    problem = java_problem()
    assert problem is not None
    assert problem.what == "RILLBASE_GRID=spark requires Spark, which is not installed."
    assert problem.fix.endswith("or set RILLBASE_GRID=processes.")


def test_with_spark_nothing_is_chosen() -> None:
    assert choose_processes_without_spark() == ""
    assert "RILLBASE_GRID" not in os.environ


def test_without_java_processes_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "java_version", lambda: None)
    problem = java_problem()
    assert problem is not None
    assert "requires Java 17 or newer; Java is not installed" in problem.what
    assert "set RILLBASE_GRID=processes" in problem.fix
