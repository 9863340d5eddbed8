"""Images are built from what there is, run as nobody in particular, and hold what they start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from scripts import check_images
from tests.kube.rendering import CHART


def test_containerfiles_copy_existing_files_and_do_not_run_as_root() -> None:
    assert check_images.complaints_of_texts() == []


def test_every_package_of_ours_is_copied() -> None:
    server = check_images.IMAGES / "server.Containerfile"
    held = {source for source, _ in check_images.copied(server, "server")}
    ours = {name.partition(".")[0] for name in settings.INSTALLED_APPS}
    assert {name for name in ours if (check_images.ROOT / name).is_dir()} <= held


@pytest.mark.long
def test_the_layout_of_the_server_loads_all_that_is_started_in_it(tmp_path: Path) -> None:
    check_images.lay_out(tmp_path)
    assert not (tmp_path / "tests").exists()
    assert check_images.complaints_of_layout(tmp_path) == []


def test_the_server_image_contains_the_documentation_that_it_serves(tmp_path: Path) -> None:
    check_images.lay_out(tmp_path, "documentation")
    for line in check_images.lines(check_images.IMAGES / "server.Containerfile"):
        if line.word == "RUN" and line.rest.startswith("/build/tools/bin/"):
            command = line.rest.replace("/build/tools/bin", str(Path(sys.executable).parent))
            subprocess.run(command.split(), cwd=tmp_path, check=True)
    assert (tmp_path / "site" / "index.html").is_file()
    assert (tmp_path / "site" / "llms-full.txt").is_file()
    copied = [
        line.rest
        for line in check_images.lines(check_images.IMAGES / "server.Containerfile")
        if line.word == "COPY" and line.rest.startswith("--from=documentation")
    ]
    served = Path(settings.SITE_DIR).relative_to(check_images.ROOT)
    assert copied == [f"--from=documentation /build/site ./{served}"]


def test_the_chart_starts_only_what_the_layout_check_loads() -> None:
    started = {
        word
        for file in (CHART / "templates").rglob("*.yaml")
        for line in file.read_text().splitlines()
        if "manage.py" in line
        for word in [line.split("manage.py, ")[1].split(",")[0].split("]")[0]]
    }
    assert all(f'"{word}"' in check_images.PROGRAM for word in started - {"grid"})


def test_the_entry_point_of_executors_keeps_options_of_java_apart(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    java.chmod(0o755)
    names = "DRIVER_URL EXECUTOR_ID EXECUTOR_CORES APPLICATION_ID EXECUTOR_POD_IP"
    names += " RESOURCE_PROFILE_ID EXECUTOR_POD_NAME"
    environment = {f"SPARK_{name}": name.lower() for name in names.split()}
    environment |= {
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_HOME": "/spark",
        "PATH": "/usr/bin:/bin",
    }
    environment |= {"SPARK_JAVA_OPT_0": "-Da=one and two", "SPARK_JAVA_OPT_1": "-Db=*"}
    entry = check_images.IMAGES / "spark-entrypoint.sh"
    done = subprocess.run(
        [str(entry), "executor"],
        env={**environment, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    words = done.stdout.splitlines()
    assert words[:4] == ["-Da=one and two", "-Db=*", "-Xms512m", "-Xmx512m"]
    assert words[-2:] == ["--podName", "executor_pod_name"]


def test_the_entry_point_runs_any_other_command() -> None:
    entry = check_images.IMAGES / "spark-entrypoint.sh"
    done = subprocess.run([str(entry), "echo", "a b"], capture_output=True, text=True, check=True)
    assert done.stdout == "a b\n"


def test_images_of_the_chart_are_those_that_are_built() -> None:
    images = yaml.safe_load((CHART / "values.yaml").read_text())["images"]
    ours = {each["repository"] for each in images.values() if isinstance(each, dict)}
    built = {
        f"rillbase/{file.name.removesuffix('.Containerfile')}" for file in check_images.files()
    }
    assert {each for each in ours if each.startswith("rillbase/")} == built
