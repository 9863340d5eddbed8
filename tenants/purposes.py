"""What a link in a mail is for."""

from __future__ import annotations

from enum import StrEnum


class Purpose(StrEnum):
    """All but an invitation are proofs that a user holds an address."""

    VERIFY = "verify"
    RESET = "reset"
    CHANGE = "change"
    INVITATION = "invitation"


PROOFS = (Purpose.VERIFY, Purpose.RESET, Purpose.CHANGE)
