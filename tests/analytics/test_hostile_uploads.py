"""Malicious uploads are rejected, and affect only their sender."""

from __future__ import annotations

import gzip
import os
import resource
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.analytics.dataset_client import NDJSON, PARQUET, as_lines, make_dataset
from tests.analytics.hostile_bodies import BOMBS, mutants, parquet, repeated
from tests.caller import problem
from tests.own_server import another_server
from tests.peak_memory import peak_memory

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient

#: How much memory of the web server a decompression bomb may use, since its body passes through it.
FLAT_MIB = 96


def files(shop: DatasetClient) -> list[Path]:
    from tests.analytics.dataset_client import files_of

    return [path for path in files_of(shop.id).rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_rejected_without_affecting_the_web_server(
    shop: DatasetClient, name: str, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_UPLOAD_MEMORY_MIB", "256")
    body, media_type = BOMBS[name]()
    with peak_memory() as peak:
        answer = shop.send("uploads", body, media_type, table="orders")
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["code"] in ("invalid_upload", "upload_limit_exceeded")
    assert peak.added_mib < FLAT_MIB
    assert (shop.query("orders")["state"], files(shop)) == (0, [])


def test_a_dictionary_of_long_texts_is_accepted_within_bounds(shop: DatasetClient) -> None:
    body = parquet(repeated(1024, 100_000))
    assert len(body) < 32_768
    answer = shop.send("uploads", body, PARQUET, table="orders")
    assert (answer.status_code, answer.json()["rows"]) == (201, 100_000)
    assert shop.rows("orders", columns=["id"]) == [{"id": 7}]


def test_an_upload_names_the_limit_that_it_exceeds(
    shop: DatasetClient, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_UPLOAD_MEMORY_MIB", "128")
    body = parquet(pa.table({"id": [1], "customer": ["x" * 100_000_000]}))
    details = problem(
        shop.send("uploads", body, PARQUET, table="orders"), 422, "upload_limit_exceeded"
    )
    assert "memory" in details["detail"]


def test_decompression_bombs_of_one_tenant_do_not_affect_another(
    server: str, shop: DatasetClient
) -> None:
    bomb, media_type = BOMBS["a Parquet dictionary"]()
    other = make_dataset(server)
    with ThreadPoolExecutor(8) as threads:
        sent = [
            threads.submit(shop.send, "uploads", bomb, media_type, table="orders")
            for _ in range(16)
        ]
        for number in range(5):
            other.insert("orders", {"id": number})
        answers = [item.result() for item in sent]
    assert {answer.status_code for answer in answers} == {422}
    assert len(other.rows("orders")) == 5


def test_mutated_uploads_are_accepted_or_rejected_and_never_fail(shop: DatasetClient) -> None:
    send_mutants(shop, seed=1, count=130)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_mutated_uploads_are_accepted_or_rejected_and_never_fail(shop: DatasetClient) -> None:
    seed = int(os.environ.get("RILLBASE_FUZZ_SEED", "2"))
    for round_ in range(10):
        send_mutants(shop, seed=seed + round_, count=1300)


def send_mutants(shop: DatasetClient, seed: int, count: int) -> None:
    with ThreadPoolExecutor(4) as threads, peak_memory() as peak:
        for name, answer in threads.map(
            lambda mutant: (mutant[0], send_mutant(shop, *mutant[1:])), mutants(seed, count)
        ):
            assert answer.status_code < 500, f"{name}: {answer.text}"
            if answer.status_code >= 400:
                assert answer.json()["code"] in (
                    "invalid_upload",
                    "invalid_parameter",
                    "invalid_body",
                    "upload_limit_exceeded",
                ), f"{name}: {answer.text}"
    assert peak.added_mib < FLAT_MIB
    children_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    assert children_mib < 2048


def send_mutant(shop: DatasetClient, body: bytes, media_type: str) -> Any:
    table = {} if media_type == NDJSON else {"table": "orders"}
    return shop.send("uploads", body, media_type, **table)


def test_a_damaged_compressed_body_is_refused(shop: DatasetClient) -> None:
    whole = gzip.compress(as_lines([{"orders": {"id": number}} for number in range(1000)]))
    for body in (whole[:-20], whole[:100] + whole[120:], whole + b"more"):
        answer = shop.caller.call(
            "POST",
            f"{shop.path}/uploads",
            raw=body,
            Content_Type=NDJSON,
            Content_Encoding="gzip",
        )
        problem(answer, 400, "invalid_body")
    assert files(shop) == []


def test_the_web_server_never_loads_the_decoder(shop: DatasetClient) -> None:
    with another_server() as other:
        caller = replace(shop.caller, base=other.url)
        lines = as_lines([{"orders": {"id": 1}}])
        answer = caller.call("POST", f"{shop.path}/uploads", raw=lines, Content_Type=NDJSON)
        assert answer.status_code == 201, answer.text
        maps = Path(f"/proc/{other.process.pid}/maps").read_text()
    assert "libarrow" not in maps
