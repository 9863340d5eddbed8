"""What follows an attempt: pure decisions from its result and the duration of the failures."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tenants.webhooks.attempt import DeliveryAttempt

#: Pauses after the first, second, … failed attempt: ten attempts over two days.
PAUSES_S = (5, 30, 120, 600, 3600, 10_800, 21_600, 43_200, 86_400)
#: Jitter, as a share of a pause, so that deliveries that failed together spread out.
JITTER = 0.2
#: A webhook that has failed continuously for so long is disabled.
DISABLE_AFTER = datetime.timedelta(days=3)
SHORTEST_HOLD_S, LONGEST_HOLD_S = 5.0, 600.0
GONE = 410

Dice = Callable[[], float]


class DeliveryVerdict(StrEnum):
    """The state of a delivery after an attempt."""

    DELIVERED = "delivered"
    RETRY = "retry"
    FAILED = "failed"
    #: The receiver asked for no further deliveries.
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """The verdict, and the pause before the next attempt if there is one."""

    verdict: DeliveryVerdict
    pause_s: float = 0.0


def decide_retry(
    attempt: DeliveryAttempt, attempts: int, dice: Dice = random.random
) -> RetryDecision:
    """Decide what follows attempt number `attempts` (1, 2, …)."""
    if attempt.successful:
        return RetryDecision(DeliveryVerdict.DELIVERED)
    if attempt.status == GONE:
        return RetryDecision(DeliveryVerdict.GONE)
    if attempt.refused or attempts > len(PAUSES_S):
        return RetryDecision(DeliveryVerdict.FAILED)
    return RetryDecision(DeliveryVerdict.RETRY, PAUSES_S[attempts - 1] * (1 + JITTER * dice()))


def hold_s(failing_for: datetime.timedelta) -> float:
    """Return how long a failing webhook is put on hold.

    Half as long as it has been failing: a receiver that is briefly unavailable is soon called
    again, and one that has been dead for an hour costs one attempt per ten minutes, however many
    deliveries wait for it.
    """
    return min(max(failing_for.total_seconds() / 2, SHORTEST_HOLD_S), LONGEST_HOLD_S)


def is_hopeless(failing_for: datetime.timedelta) -> bool:
    """Return whether a webhook has failed for so long that it is disabled."""
    return failing_for >= DISABLE_AFTER
