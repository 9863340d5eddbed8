"""Images hold Debian's packages and ours, and nothing that a process does not need."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from scripts.images.images import IMAGES
from tests.images.conftest import GetImage
from tests.images.container import Container
from tests.kube.rendering import CHART

pytestmark = [pytest.mark.images, pytest.mark.timeout(900)]
NAMES = [image.name for image in IMAGES]
#: Programs that would help an intruder more than a process of ours.
UNWANTED = {"apt", "apt-get", "cc", "curl", "gcc", "git", "make", "pip", "pip3", "ssh", "wget"}


@pytest.mark.parametrize("name", NAMES)
def test_an_image_has_no_apt_compiler_or_setuid_program(image: GetImage, name: str) -> None:
    root = image(name).root
    programs = {
        each.name for folder in ("usr/bin", "usr/sbin") for each in (root / folder).iterdir()
    }
    assert programs & UNWANTED == set()
    assert list((root / "etc").glob("apt/sources.list*")) == []
    for name_of_host in ("hostname", "hosts", "resolv.conf"):
        assert (root / "etc" / name_of_host).read_text() == ""
    # Engines mount devices of their own over those of the image.
    folders = [each for each in root.iterdir() if each.name != "dev"]
    entries = [entry for folder in folders for entry in (folder, *folder.rglob("*"))]
    modes = {entry: entry.lstat().st_mode for entry in entries if not entry.is_symlink()}
    assert [each for each, mode in modes.items() if each.is_file() and mode & 0o6000] == []
    # What every account may write to are the directories for temporary files.
    shared = {str(each.relative_to(root)) for each, mode in modes.items() if mode & stat.S_IWOTH}
    assert shared <= {"tmp", "var/tmp", "run/lock"}


@pytest.mark.parametrize("name", NAMES)
def test_all_of_our_files_belong_to_root(image: GetImage, name: str) -> None:
    ours = list((image(name).root / "opt").rglob("*"))
    assert ours
    assert {each.lstat().st_uid for each in ours} == {0}
    assert [each for each in ours if not each.is_symlink() and each.stat().st_mode & 0o022] == []


@pytest.mark.parametrize("name", NAMES)
def test_programs_run_as_an_unprivileged_user_on_read_only_files(
    image: GetImage, name: str, machine: Path
) -> None:
    opened = image(name)
    assert opened.user == "10001:10001"
    container = Container(opened, machine / f"contents-{name}")
    done = container.run(
        "sh", "-c", "id -u; touch /tmp/a && echo written; touch /a /opt/a /etc/a; ls /root"
    )
    assert done.stdout.split() == ["10001", "written"]
    assert done.stderr.count("Read-only file system") == 3
    assert "Permission denied" in done.stderr


def test_the_server_compiled_its_bytecode_beforehand(image: GetImage) -> None:
    home = image("server").root / "opt" / "rillbase" / "rillbase_bundle" / "home"
    assert list((home / "documents").glob("__pycache__/*.pyc"))
    assert not (home / "tests").exists()


def test_native_modules_load_on_the_images_c_library(image: GetImage, machine: Path) -> None:
    for name in ("server", "spark"):
        container = Container(image(name), machine / f"native-{name}")
        imports = "import rillbase_native, numpy, pyarrow, duckdb, psycopg, uvloop, cryptography"
        done = container.run("python", "-c", imports)
        assert done.returncode == 0, done.stderr


def test_the_chart_refers_to_these_images(image: GetImage) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["images"]
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    ours = [values[key]["repository"] for key in ("server", "storageNode", "spark")]
    assert sorted(image(name).tag for name in NAMES) == sorted(f"{each}:{version}" for each in ours)


def test_spark_finds_its_java(image: GetImage, machine: Path) -> None:
    container = Container(image("spark"), machine / "java")
    done = container.run("sh", "-c", '"$JAVA_HOME"/bin/java -version && java -version')
    assert done.returncode == 0, done.stderr
    assert done.stderr.count('openjdk version "17') == 2
    version = (
        "import pyspark, os; print(os.environ['SPARK_HOME'] == os.path.dirname(pyspark.__file__))"
    )
    assert container.run("python", "-c", version).stdout.strip() == "True"


def test_executors_start_by_the_images_entry_point(image: GetImage, machine: Path) -> None:
    """Without a driver an executor fails, but as Spark's own program."""
    names = "APPLICATION_ID EXECUTOR_POD_IP EXECUTOR_POD_NAME"
    variables = {f"SPARK_{name}": name.lower() for name in names.split()}
    variables |= {"SPARK_EXECUTOR_MEMORY": "256m", "SPARK_EXECUTOR_CORES": "1"}
    variables |= {"SPARK_EXECUTOR_ID": "1", "SPARK_RESOURCE_PROFILE_ID": "0"}
    variables |= {"SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:1"}
    container = Container(image("spark"), machine / "executor", environment=variables)
    container.start(["executor"])
    try:
        assert container.wait(300) != 0
    except subprocess.TimeoutExpired:
        container.close()
    assert "KubernetesExecutorBackend" in container.output
    assert "127.0.0.1:1" in container.output
