"""Times of steps that contradict no cause: nothing happens before what it follows from.

Times come from several clocks and from records that are made later, so they say less about the
order than the stages do. A time that contradicts the order is replaced by that of the cause, and
is marked as approximate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from foundation.json_types import JsonObject

State = Literal["passed", "stopped", "waiting", "unknown"]

#: Times have whole milliseconds in part of the evidence.
_PRECISION_MS = 1.0


@dataclass(frozen=True, slots=True)
class TraceStep:
    """The result of one stage."""

    stage: str
    state: State
    detail: str
    at_ms: float | None = None
    facts: JsonObject = field(default_factory=dict)
    #: The verdict, if this stage decides it.
    verdict: str = ""
    #: The stages that it follows from; None: all stages before it.
    causes: frozenset[str] | None = None
    #: Whether it happened at `at_ms` or earlier.
    is_at_latest: bool = False
    #: Whether `at_ms` had to be replaced.
    is_approximate: bool = False

    def follows(self, stage: str) -> bool:
        """Return whether a stage before this one is among its causes."""
        return self.causes is None or stage in self.causes


def after_cause(steps: Sequence[TraceStep]) -> list[TraceStep]:
    """Return the steps, in their order, none of them earlier than one of its causes."""
    dated: list[TraceStep] = []
    for number, step in enumerate(steps):
        if step.at_ms is None:
            dated.append(step)
            continue
        at_ms = step.at_ms
        if step.is_at_latest:
            effects = [later for later in steps[number + 1 :] if later.follows(step.stage)]
            at_ms = min([at_ms, *_times(effects)])
        at_ms = max([at_ms, *_times([cause for cause in dated if step.follows(cause.stage)])])
        is_approximate = abs(at_ms - step.at_ms) >= _PRECISION_MS
        dated.append(replace(step, at_ms=at_ms, is_approximate=is_approximate))
    return dated


def _times(steps: Sequence[TraceStep]) -> list[float]:
    return [step.at_ms for step in steps if step.at_ms is not None]
