"""A tenant, and a caller with its admin key."""

from __future__ import annotations

import pytest

from tests.caller import Caller, with_key
from tests.make import TenantAccount, make_tenant


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant(plan="dedicated")


@pytest.fixture
def caller(server: str, account: TenantAccount) -> Caller:
    return with_key(server, account.admin_key)
