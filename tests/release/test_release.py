"""What users install from a release works in empty environments."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rillbase_server.version import VERSION
from scripts.release.build import oldest_glibc, packages
from tests.documentation.account import account_of_installation
from tests.documentation.fences import DOCS, examples
from tests.documentation.reader import Reader
from tests.launcher_process import LauncherDirectory, RunningLauncher
from tests.release.conftest import Machine

pytestmark = [pytest.mark.release, pytest.mark.timeout(1800)]
#: The glibc of manylinux2014.
OLDEST_GLIBC = (2, 17)
SERVER, SDK = "rillbase_server-*.whl", "rillbase-*.whl"
USE_NATIVE = "import rillbase_native as native; print(len(dir(native)))"


def test_the_checksums_are_those_of_the_files(release: Path) -> None:
    lines = (release / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    files = {path.name: path for path in release.iterdir() if path.is_file()}
    del files["SHA256SUMS"]
    assert set(sums) == set(files)
    for name, path in files.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sums[name]


def test_every_package_of_the_release_is_there(release: Path) -> None:
    kinds = {path.name.split("-")[0] + path.suffix for path in packages(release)}
    assert kinds == {
        "rillbase_server.whl",
        "rillbase_native.whl",
        "rillbase_storage_node.whl",
        "rillbase.whl",
        "rillbase.gz",
        "rillbase.tgz",
    }


def test_the_bill_of_materials_lists_each_component_once(release: Path) -> None:
    (file,) = release.glob("*.cdx.json")
    bill = json.loads(file.read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    references = [component["bom-ref"] for component in bill["components"]]
    assert len(references) == len(set(references))
    kinds = {reference.partition("/")[0] for reference in references}
    assert kinds == {"pkg:pypi", "pkg:cargo", "pkg:npm"}
    names = {component["name"] for component in bill["components"]}
    assert {"django", "pyspark", "pyo3", "react"} <= names
    assert not {"pytest", "proptest", "zensical"} & names


@pytest.mark.parametrize(
    ("pattern", "member"),
    [
        ("rillbase_native-*.whl", "rillbase_native/rillbase_native.abi3.so"),
        ("rillbase_storage_node-*.whl", "rillbase-node"),
    ],
)
def test_native_wheels_run_on_old_systems(
    release: Path, tmp_path: Path, pattern: str, member: str
) -> None:
    (wheel,) = release.glob(pattern)
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(member)]
        glibc = oldest_glibc(Path(archive.extract(name, tmp_path)))
    print(f"{wheel.name} needs glibc {glibc}")  # noqa: T201 -- shown by `-rP`, for the record
    assert tuple(map(int, glibc.split("."))) <= OLDEST_GLIBC


def test_the_native_packages_are_complete_in_themselves(machine: Machine) -> None:
    native, node = (machine.package(f"rillbase_{name}-*") for name in ("native", "storage_node"))
    python = machine.environment("native", native, node)
    assert int(machine.run([python, "-c", USE_NATIVE])) > 0
    # Without options, it says which it needs, and exits with 2.
    tell = machine.run(["sh", "-c", '"$0" || true', python.parent / "rillbase-node"])
    assert tell.startswith("rillbase-node: ")


@pytest.fixture(scope="module", params=["uvx", "pipx"])
def installed(request: pytest.FixtureRequest, machine: Machine) -> list[str]:
    """The command that starts the server, as each tool installs it."""
    server = machine.package(SERVER)
    if request.param == "uvx":
        run = [machine.uv, "tool", "run", "--no-config", "--find-links", machine.packages]
        return [str(word) for word in (*run, "--from", server, "rillbase-server")]
    pipx = request.getfixturevalue("pipx")
    machine.run([pipx, "install", "--pip-args", f"--find-links {machine.packages}", server])
    return [str(machine.folder / "bin" / "rillbase-server")]


def test_the_command_describes_itself(installed: list[str], machine: Machine) -> None:
    for arguments in ([], ["--help"]):
        text = machine.run([*installed, *arguments])
        assert "usage: rillbase-server " in text
        assert "start everything and stay in the foreground" in text
    assert machine.run([*installed, "--version"]).splitlines()[-1] == VERSION


@pytest.fixture(scope="module")
def running(
    installed: list[str], machine: Machine, request: pytest.FixtureRequest
) -> Iterator[RunningLauncher]:
    folder = machine.folder / request.node.name
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    place = LauncherDirectory(folder / str(len(list(folder.iterdir()))), installed)
    place.output.parent.mkdir(mode=0o755)
    with place.up(**machine.variables) as launched:
        yield launched


def test_the_quick_start_works_as_it_is_written(
    running: RunningLauncher, machine: Machine, tmp_path: Path
) -> None:
    def run_python(source: str, folder: Path) -> str:
        (folder / "app.py").write_text(source)
        python = machine.environment("sdk", machine.package(SDK))
        return machine.run([python, "-W", "error", "app.py"], folder)

    def run_javascript(source: str, folder: Path) -> str:
        (folder / "app.mjs").write_text(f"{source}\nprocess.exit(0);\n")
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund"]
        machine.run([*install, machine.package("rillbase-*.tgz")], folder)
        # Node.js 20 has a WebSocket behind this switch.
        return machine.run(["node", "--experimental-websocket", "app.mjs"], folder)

    account = account_of_installation(running.ready["url"], running.ready["api_key"])
    programs = {"python": run_python, "js": run_javascript}
    parts = examples(DOCS / "start.md")
    assert {part.language for part in parts} == {"sh", "python", "js"}
    Reader(running.ready["url"], account, tmp_path, programs=programs).try_all(parts)


def test_a_server_without_spark_reports_it_and_has_console_and_documentation(
    running: RunningLauncher, machine: Machine
) -> None:
    assert (
        "Spark is not installed: the matching grid runs as processes" in running.output.read_text()
    )
    for path, text in (("/", "<title>Rillbase"), ("/docs/start/", "Quickstart")):
        page = machine.run(
            ["curl", "--silent", "--fail", "--location", running.ready["url"] + path]
        )
        assert text in page
