"""The operations guide lists the metrics that there are."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client import REGISTRY

import foundation.metrics  # noqa: F401 - registers them

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "observability.md"


def test_each_metric_is_in_the_guide_and_each_in_the_guide_exists() -> None:
    documented = set(re.findall(r"^\| `(rillbase_\w+)`", GUIDE.read_text(), re.MULTILINE))
    existing = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in REGISTRY.collect()
        if family.name.startswith("rillbase_")
    }
    assert documented == existing
