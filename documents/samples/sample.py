"""The definition of a sample data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foundation.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class SampleCollection:
    """A collection in the control plane's form, and its documents as Extended JSON."""

    declaration: JsonObject
    documents: Sequence[JsonObject]

    @property
    def name(self) -> str:
        return str(self.declaration["name"])
