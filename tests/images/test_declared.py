"""What images are made from fits what the chart and the compose file start, before any is built."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import yaml
from django.conf import settings
from django.core.management import get_commands

from rillbase_server.version import VERSION
from scripts.images import images
from scripts.provision.places import CHECKOUT
from tests.images import compose
from tests.kube.rendering import CHART

_COMMAND = re.compile(r"manage\.py, (\w+)")


def test_each_image_runs_as_the_charts_account() -> None:
    for image in images.IMAGES:
        text = image.containerfile.read_text()
        assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["10001:10001"]
        # What a build executes would leave its traces in the image.
        assert "\nRUN" not in text


def test_the_servers_wheel_holds_every_package_of_ours() -> None:
    build = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    included = set(build["targets"]["wheel"]["only-include"])
    apps = {name.partition(".")[0] for name in settings.INSTALLED_APPS}
    ours = {name for name in apps if (CHECKOUT / name).is_dir()}
    assert ours
    assert ours <= included


def test_the_chart_and_the_compose_file_start_commands_that_exist() -> None:
    texts = [file.read_text() for file in (CHART / "templates").rglob("*.yaml")]
    texts += [file.read_text() for file in (CHART / "templates").rglob("*.tpl")]
    started = {
        name for text in [*texts, compose.FILE.read_text()] for name in _COMMAND.findall(text)
    }
    assert {"web", "grid", "prepare_database"} <= started
    assert started <= set(get_commands())


def test_the_chart_refers_to_the_images_that_are_built() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["images"]
    ours = {each["repository"] for each in values.values() if isinstance(each, dict)}
    built = {f"rillbase/{image.name}" for image in images.IMAGES}
    assert {each for each in ours if each.startswith("rillbase/")} == built


def test_the_compose_file_and_the_chart_use_the_same_images() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["images"]
    chart = {
        f"{each['repository']}:{each['tag'] or VERSION}"
        for each in values.values()
        if isinstance(each, dict)
    }
    used = {service["image"] for service in compose.services().values()}
    # The grid of one machine is processes of the server's image, without Spark.
    assert chart - used == {f"rillbase/spark:{VERSION}"}
    assert used <= chart


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
    entry = images.FOLDER / "spark-entrypoint.sh"
    done = subprocess.run(
        [str(entry), "executor"],
        env={**environment, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    words = done.stdout.splitlines()
    assert words[:4] == ["-Da=one and two", "-Db=*", "-Xms512m", "-Xmx512m"]
    # Otherwise it would not read the file with the secret.
    assert "-Dspark.master=k8s://executor" in words
    assert words[-2:] == ["--podName", "executor_pod_name"]


def test_the_entry_point_runs_any_other_command() -> None:
    entry = images.FOLDER / "spark-entrypoint.sh"
    done = subprocess.run([str(entry), "echo", "a b"], capture_output=True, text=True, check=True)
    assert done.stdout == "a b\n"
