"""What a link is for: all but `SIGN_IN` come by mail."""

from __future__ import annotations

from enum import StrEnum


class Purpose(StrEnum):
    """Those for addresses are proofs that a user holds one."""

    VERIFY = "verify"
    RESET = "reset"
    CHANGE = "change"
    INVITATION = "invitation"
    #: Printed by the launcher on a development machine, for whoever sits at it.
    SIGN_IN = "sign_in"


PROOFS = (Purpose.VERIFY, Purpose.RESET, Purpose.CHANGE, Purpose.SIGN_IN)
