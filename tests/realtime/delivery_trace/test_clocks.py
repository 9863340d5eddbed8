"""How the difference between the clocks is measured."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from realtime.delivery_trace.clocks import time_us


def test_the_time_of_valkey_is_read_in_microseconds() -> None:
    assert time_us([b"1700000000", b"000042"]) == 1_700_000_000_000_042


def test_another_reply_than_a_time_is_an_error_of_the_server() -> None:
    with pytest.raises(ResponseError):
        time_us([b"1700000000"])
