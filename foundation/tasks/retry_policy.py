"""Decides when a failed task runs again, with Celery's exponential backoff."""

from __future__ import annotations

from dataclasses import dataclass

from celery.utils.time import get_exponential_backoff_interval


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a task is retried, and after which delays. The fields have the names of Celery's
    options of tasks.

    A delay is random (*full jitter*), so tasks that failed together because a common server was
    unavailable are not retried together. Its upper bound doubles with each retry. Twelve retries
    with the usual delays take about an hour.
    """

    max_retries: int = 12
    retry_backoff: int = 2
    retry_backoff_max: int = 3600

    def retry_in_s(self, attempt: int) -> int | None:
        """Return the delay after attempt number `attempt` (1, 2, …) has failed, or None after the
        last attempt.
        """
        if attempt > self.max_retries:
            return None
        delay_s: int = get_exponential_backoff_interval(
            self.retry_backoff, attempt - 1, self.retry_backoff_max, full_jitter=True
        )
        return delay_s
