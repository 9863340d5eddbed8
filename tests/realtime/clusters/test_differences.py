"""Differences between two states of an object, and additions by others."""

from __future__ import annotations

from typing import Any

from realtime.clusters.kubernetes.differences import (
    HIDDEN,
    FieldDifference,
    differences,
    taken_over,
)
from realtime.clusters.kubernetes.objects.naming import MANAGER, Object


def test_differences_name_their_paths() -> None:
    before: Object = {"spec": {"replicas": 1, "ports": [{"port": 1}, {"port": 2}]}}
    after: Object = {"spec": {"replicas": 0, "ports": [{"port": 1}, {"port": 3}], "paused": True}}
    assert differences(before, after) == [
        FieldDifference("spec.paused", None, True),
        FieldDifference("spec.ports[1].port", 2, 3),
        FieldDifference("spec.replicas", 1, 0),
    ]


def test_fields_of_the_api_server_are_no_difference() -> None:
    before: Object = {
        "kind": "Pod",
        "metadata": {"uid": "1", "resourceVersion": "1"},
        "status": {"a": 1},
    }
    after: Object = {"metadata": {"uid": "1", "resourceVersion": "2", "managedFields": []}}
    assert differences(before, after) == []


def test_values_of_secrets_are_never_shown() -> None:
    before: Object = {"kind": "Secret", "data": {"key": "b2xk"}}
    after: Object = {"kind": "Secret", "data": {"key": "bmV3"}}
    assert differences(before, after) == [FieldDifference("data.key", HIDDEN, HIDDEN)]


def entry(manager: str, operation: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


def test_fields_added_by_other_managers_are_taken_over() -> None:
    ours = entry(MANAGER, "Apply", {"f:spec": {"f:replicas": {}, "f:template": {"f:a": {}}}})
    strange = entry("kubectl-edit", "Update", {"f:spec": {"f:template": {"f:b": {}}}})
    state = entry("kube-controller-manager", "Update", {"f:status": {}}, subresource="status")
    taken = taken_over({"metadata": {"managedFields": [ours, strange, state]}})
    joined: Object = {"f:spec": {"f:replicas": {}, "f:template": {"f:a": {}, "f:b": {}}}}
    assert taken == [{**ours, "fieldsV1": joined}, state]


def test_labels_and_status_of_others_are_kept() -> None:
    ours = entry(MANAGER, "Apply", {"f:spec": {}})
    labels = entry("someone", "Update", {"f:metadata": {"f:labels": {"f:team": {}}}})
    assert taken_over({"metadata": {"managedFields": [ours, labels]}}) is None
    assert taken_over({"metadata": {}}) is None
