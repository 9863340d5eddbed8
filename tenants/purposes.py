"""The purposes of links: all but `SIGN_IN` are mailed."""

from __future__ import annotations

from enum import StrEnum


class Purpose(StrEnum):
    """Purposes about addresses prove that a user owns one."""

    VERIFY = "verify"
    RESET = "reset"
    CHANGE = "change"
    INVITATION = "invitation"
    #: Printed by the launcher on a development machine, for its local user.
    SIGN_IN = "sign_in"


PROOFS = (Purpose.VERIFY, Purpose.RESET, Purpose.CHANGE, Purpose.SIGN_IN)
