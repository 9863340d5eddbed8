"""What plans allow."""

from __future__ import annotations

import pytest

from tenants.models import Plan
from tenants.quotas import LIMITS

PLANS = ("free", "standard", "dedicated", "unlimited")
#: Only the dedicated plan includes a cluster.
_DEDICATED = {"cluster_write_partitions"}


def test_every_plan_defines_every_limit() -> None:
    """A migration whose update row security hides would leave a plan with the smallest limit."""
    for plan in Plan.objects.using("staff").filter(name__in=PLANS):
        assert set(LIMITS) == set(plan.limits), plan.name


@pytest.mark.parametrize("limit", sorted(set(LIMITS) - _DEDICATED))
def test_a_larger_plan_allows_more(limit: str) -> None:
    plans = {plan.name: plan.limits for plan in Plan.objects.using("staff").all()}
    allowed = [plans[name][limit] for name in PLANS]
    assert allowed == sorted(set(allowed))
