"""Cargo's tests that fail once are run once more, in a workspace of a few lines."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.flaky_tests import REPORT
from tests.environment import ROOT

MANIFEST = """
[workspace]
members = ["other", "small"]
resolver = "2"
"""
PACKAGE = """
[package]
name = "{name}"
version = "1.0.0"
edition = "2021"
"""
STEADY = "#[test] fn steady() {}\n"
FAILS_TWICE = "#[test] fn fails() { panic!() }\n"
ABORTS = "#[test] fn aborts() { std::process::abort() }\n"


def fails_once(name: str) -> str:
    return f"""
#[test] fn {name}() {{
    let ran = concat!(env!("CARGO_MANIFEST_DIR"), "/{name}.ran");
    if !std::path::Path::new(ran).exists() {{
        std::fs::write(ran, "").unwrap();
        panic!("not yet");
    }}
}}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    lock = "version = 3\n"
    for name in ("other", "small"):
        folder = tmp_path / "native" / name
        (folder / "src").mkdir(parents=True)
        (folder / "src" / "lib.rs").write_text(STEADY)
        (folder / "tests").mkdir()
        (folder / "Cargo.toml").write_text(PACKAGE.format(name=name))
        lock += f'\n[[package]]\nname = "{name}"\nversion = "1.0.0"\n'
    (tmp_path / "native" / "Cargo.toml").write_text(MANIFEST)
    (tmp_path / "native" / "Cargo.lock").write_text(lock)
    return tmp_path


def run(workspace: Path, **tests: str) -> subprocess.CompletedProcess[str]:
    """Run programs of tests, as `make test` does."""
    for name, source in tests.items():
        (workspace / "native" / "small" / "tests" / f"{name}.rs").write_text(source)
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom scripts import cargo_tests\n"
    program += "sys.exit(cargo_tests.main(['--workspace', '--lib', '--tests']))"
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=workspace,
        check=False,
        capture_output=True,
        text=True,
    )


def flaky_list(workspace: Path) -> list[str]:
    return (workspace / REPORT).read_text().splitlines()


def test_a_run_passes_if_its_failures_pass_alone(workspace: Path) -> None:
    first = STEADY + fails_once("fails_once")
    done = run(workspace, first=first, second="mod inner {" + fails_once("fails_also") + "}")
    assert done.returncode == 0, done.stdout
    message = "(in the run: small/tests/{}:9 not yet; alone: passed)"
    assert flaky_list(workspace) == [
        f"FLAKY: small --test first fails_once {message.format('first.rs:7')}",
        f"FLAKY: small --test second inner::fails_also {message.format('second.rs:6')}",
    ]
    assert done.stdout.endswith("2 flaky, accepted\n")


def test_a_run_without_failures_has_no_list(workspace: Path) -> None:
    assert run(workspace, first=STEADY).returncode == 0
    assert not (workspace / REPORT).exists()


def test_a_run_fails_if_a_test_fails_twice(workspace: Path) -> None:
    done = run(workspace, first=FAILS_TWICE + fails_once("fails_once"))
    assert done.returncode != 0
    assert "FAILED TWICE: small --test first fails " in done.stdout
    assert "FLAKY: small --test first fails_once " in done.stdout


def test_a_run_fails_with_more_than_three_flaky_tests(workspace: Path) -> None:
    done = run(workspace, first="".join(fails_once(f"fails_{n}") for n in range(4)))
    assert done.returncode != 0
    assert "4 flaky, at most 3 are accepted" in done.stdout


def test_a_program_that_aborts_fails_the_run(workspace: Path) -> None:
    done = run(workspace, first=fails_once("fails_once"), second=ABORTS)
    assert done.returncode != 0
    assert "once more" not in done.stdout


def test_code_that_does_not_compile_fails_the_run(workspace: Path) -> None:
    done = run(workspace, first="fn")
    assert done.returncode != 0
    assert "error" in done.stdout


def test_each_file_of_tests_belongs_to_a_program() -> None:
    """Where one program has several files, cargo does not look for others."""
    forgotten = []
    for main in sorted((ROOT / "native").glob("*/tests/main.rs")):
        declared = set(re.findall(r"^mod (\w+);", main.read_text(), re.MULTILINE))
        programs = (main.parents[1] / "Cargo.toml").read_text()
        for path in sorted(main.parent.glob("*.rs")):
            is_program = f'"tests/{path.name}"' in programs
            if not is_program and path.stem not in declared:
                forgotten.append(str(path.relative_to(ROOT)))
    assert forgotten == []
