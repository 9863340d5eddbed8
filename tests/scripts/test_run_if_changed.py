"""Steps of the checks that are skipped while nothing that they depend on has changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import run_if_changed
from scripts.provision.places import CHECKOUT


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout, and a cache of its own."""
    monkeypatch.setenv("RILLBASE_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "checkout"
    for name in ("helm/chart.yaml", "tenants/models.py", "console/page.tsx", "tests/waiting.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("first")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


def runs(checkout: Path, step: str = "kube", *, code: int = 0) -> bool:
    """Return whether the command of a step is run, which exits with `code`."""
    mark = checkout.parent / "mark"
    mark.unlink(missing_ok=True)
    script = f"import pathlib, sys; pathlib.Path({str(mark)!r}).touch(); sys.exit({code})"
    assert run_if_changed.run(step, [sys.executable, "-c", script], checkout) == (
        code if mark.exists() else 0
    )
    return mark.exists()


def test_a_step_that_has_passed_is_skipped(checkout: Path) -> None:
    assert runs(checkout)
    assert not runs(checkout)
    assert runs(checkout, "examples")


def test_a_step_that_has_failed_is_run_again(checkout: Path) -> None:
    assert runs(checkout, code=3)
    assert runs(checkout)


@pytest.mark.parametrize("name", ["helm/chart.yaml", "tenants/models.py", "tests/waiting.py"])
def test_a_step_is_run_when_a_file_that_it_depends_on_has_changed(
    checkout: Path, name: str
) -> None:
    runs(checkout)
    (checkout / name).write_text("second")
    assert runs(checkout)
    (checkout / name).write_text("first")
    assert not runs(checkout)


def test_new_and_removed_files_count(checkout: Path) -> None:
    runs(checkout)
    (checkout / "helm" / "values.yaml").touch()
    assert runs(checkout)
    (checkout / "helm" / "chart.yaml").unlink()
    assert runs(checkout)


def test_other_files_do_not_count(checkout: Path) -> None:
    runs(checkout)
    (checkout / "console" / "page.tsx").write_text("second")
    assert not runs(checkout)


@pytest.mark.parametrize("step", run_if_changed.STEPS)
def test_every_path_that_a_step_depends_on_exists(step: str) -> None:
    inputs = {str(path.relative_to(CHECKOUT)) for path in run_if_changed.inputs(step)}
    for pattern in (*run_if_changed.PRODUCT, *run_if_changed.STEPS[step]):
        start = pattern.removeprefix(":(glob)").partition("*")[0]
        assert any(name.startswith(start) for name in inputs), pattern
