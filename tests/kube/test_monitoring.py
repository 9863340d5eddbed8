"""Alerts and dashboards refer to existing metrics, and each alert says what to do."""

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

pytestmark = pytest.mark.kube
ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "operations" / "kubernetes.md"
#: Metrics of Kubernetes itself and of Prometheus.
FOREIGN = {
    "up",
    "kube_job_status_failed",
    "kubelet_volume_stats_available_bytes",
    "kubelet_volume_stats_capacity_bytes",
}
FIGURE = re.compile(r"\b((?:rillbase|kube|kubelet)_[a-z_]+|up)(?=\{)")


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of all metrics of the programs."""
    result = set(FOREIGN) | _of_the_storage_node(tmp_path_factory.mktemp("node"))
    for family in REGISTRY.collect():
        endings = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}
        result |= {family.name + ending for ending in endings.get(family.type, [""])}
    return result


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


def test_every_dashboard_uses_existing_metrics(figures: set[str]) -> None:
    release = rendered("everything")
    maps = [
        manifest
        for manifest in release.of("ConfigMap")
        if "dashboard" in manifest["metadata"]["name"]
    ]
    assert len(maps) == 3
    for manifest in maps:
        (text,) = manifest["data"].values()
        dashboard = json.loads(text)
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                used = set(FIGURE.findall(target["expr"]))
                assert used, panel["title"]
                assert used <= figures, panel["title"]
                assert 'namespace="data"' in target["expr"]


def test_each_alert_leads_to_its_place_in_the_guide() -> None:
    headings = {
        heading.lower() for heading in re.findall(r"^### (\w+)$", GUIDE.read_text(), re.MULTILINE)
    }
    (rule,) = rendered("everything").of("PrometheusRule")
    named = {alert["alert"].lower() for group in rule["spec"]["groups"] for alert in group["rules"]}
    assert {name for name in headings if name.startswith("rillbase")} == named
    for group in rule["spec"]["groups"]:
        for alert in group["rules"]:
            page, anchor = alert["annotations"]["runbook_url"].split("#")
            assert page.endswith("/operations/kubernetes/")
            assert anchor == alert["alert"].lower()
            assert 'namespace="data"' in alert["expr"]
            assert "JOB" not in alert["expr"]
