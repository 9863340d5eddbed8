"""Whatever makes nodes end a query has an error that subscribers can look up."""

from __future__ import annotations

import re
from pathlib import Path

from foundation.errors import CATALOGUE

NATIVE = Path(__file__).resolve().parents[2] / "native/live/src"
CODE = re.compile(r'(?:Refusal::new\(\s*|self\.fail\(\w+, )"(\w+)"')


def test_every_code_that_nodes_give_is_an_error_of_the_api() -> None:
    codes = {code for path in NATIVE.rglob("*.rs") for code in CODE.findall(path.read_text())}
    assert {"residual_quota", "poison", "invalid_lookup", "result_too_large"} <= codes
    assert codes <= CATALOGUE.keys()
