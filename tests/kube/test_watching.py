"""Alerts and dashboards are about figures that there are, and each alert says what to do."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest
import yaml
from prometheus_client import REGISTRY

import foundation.metrics  # noqa: F401 -- registers them
from tests.kube.rendering import CHART, rendered
from tests.own_valkey import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "operations" / "kubernetes.md"
#: Figures of Kubernetes itself and of Prometheus.
FOREIGN = {
    "up",
    "kube_job_status_failed",
    "kubelet_volume_stats_available_bytes",
    "kubelet_volume_stats_capacity_bytes",
}
FIGURE = re.compile(r"\b((?:rillbase|kube|kubelet)_[a-z_]+|up)(?=\{)")


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of all figures that the programs have."""
    found = set(FOREIGN) | _of_the_storage_node(tmp_path_factory.mktemp("node"))
    for family in REGISTRY.collect():
        endings = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}
        found |= {family.name + ending for ending in endings.get(family.type, [""])}
    return found


def _of_the_storage_node(directory: Path) -> set[str]:
    import os
    import subprocess
    import sys

    port, metrics = free_port(), free_port()
    argv = [str(Path(sys.prefix) / "bin" / "rillbase-node"), "--directory", str(directory)]
    argv += ["--listen", f"127.0.0.1:{port}", "--metrics", f"127.0.0.1:{metrics}"]
    with subprocess.Popen(argv, env={**os.environ, "RILLBASE_NODE_TOKEN": "t" * 32}) as node:
        pages: list[str] = []

        def answers() -> bool:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics") as page:
                    pages.append(page.read().decode())
            except OSError:
                return False
            return True

        try:
            wait_until(answers, what="the storage node's figures")
        finally:
            node.kill()
    return set(re.findall(r"^# TYPE (\w+)", pages[0], re.MULTILINE))


def test_each_alert_is_about_figures_that_there_are(figures: set[str]) -> None:
    for alert in yaml.safe_load((CHART / "files/alerts.yaml").read_text()):
        used = set(FIGURE.findall(alert["expr"]))
        assert used, alert["name"]
        assert used <= figures, alert["name"]


def test_each_dashboard_shows_figures_that_there_are(figures: set[str]) -> None:
    release = rendered("everything")
    maps = [each for each in release.of("ConfigMap") if "dashboard" in each["metadata"]["name"]]
    assert len(maps) == 3
    for each in maps:
        (text,) = each["data"].values()
        dashboard = json.loads(text)
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                used = set(FIGURE.findall(target["expr"]))
                assert used, panel["title"]
                assert used <= figures, panel["title"]
                assert 'namespace="data"' in target["expr"]


def test_each_alert_leads_to_its_place_in_the_guide() -> None:
    headings = {
        each.lower() for each in re.findall(r"^### (\w+)$", GUIDE.read_text(), re.MULTILINE)
    }
    (rule,) = rendered("everything").of("PrometheusRule")
    named = {each["alert"].lower() for group in rule["spec"]["groups"] for each in group["rules"]}
    assert {name for name in headings if name.startswith("rillbase")} == named
    for group in rule["spec"]["groups"]:
        for each in group["rules"]:
            page, anchor = each["annotations"]["runbook_url"].split("#")
            assert page.endswith("/operations/kubernetes/")
            assert anchor == each["alert"].lower()
            assert 'namespace="data"' in each["expr"]
            assert "JOB" not in each["expr"]
