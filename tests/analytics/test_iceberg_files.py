"""Files of the authority as S3 clients read them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
import requests
from django.utils import timezone

from analytics.iceberg import file_credentials
from foundation.scope import scoped
from tenants.models import ApiKey
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import files_of, make_dataset
from tests.analytics.signed_request import S3Client
from tests.analytics.test_iceberg import fill
from tests.caller import Caller, with_key
from tests.make import make_key
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.analytics.dataset_client import DatasetClient


def table_of(shop: DatasetClient, caller: Caller | None = None, name: str = "orders") -> Any:
    slug = shop.account.slug
    path = f"/v1/iceberg/v1/{slug}/namespaces/{shop.name}/tables/{name}"
    answer = (caller or shop.caller).get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def path_of(location: str) -> str:
    """Return the path of an object on the server."""
    return "/v1/iceberg/files/" + location.removeprefix("s3://")


def rows_path(shop: DatasetClient) -> str:
    (file, *_) = sorted((files_of(shop.id) / "authority").iterdir())
    return below(shop, f"authority/{file.name}")


def below(shop: DatasetClient, path: str) -> str:
    return f"/v1/iceberg/files/{shop.id}/{path}"


def refused(answer: requests.Response, status: int, code: str) -> str:
    """Assert that the response is an error of S3; return its message."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/xml"
    assert f"<Code>{code}</Code>" in answer.text
    return answer.text


@pytest.fixture
def filled(shop: DatasetClient) -> DatasetClient:
    fill(shop)
    return shop


@pytest.fixture
def client(filled: DatasetClient) -> S3Client:
    return S3Client(table_of(filled)["config"])


def test_ranges_of_files_are_read(filled: DatasetClient, client: S3Client) -> None:
    path = rows_path(filled)
    content = (files_of(filled.id) / "authority" / path.rpartition("/")[2]).read_bytes()
    size = len(content)
    whole = client.get(path)
    assert (whole.status_code, whole.content) == (200, content)
    assert whole.headers["Accept-Ranges"] == "bytes"
    head = client.get(path, "HEAD")
    assert (head.status_code, head.headers["Content-Length"]) == (200, str(size))
    assert head.headers["ETag"] == whole.headers["ETag"]
    for text, begin, end in (
        ("bytes=0-3", 0, 4),
        ("bytes=4-", 4, size),
        ("bytes=-8", size - 8, size),
        (f"bytes=-{size * 2}", 0, size),
        (f"bytes=1-{size * 2}", 1, size),
    ):
        part = client.get(path, Range=text)
        assert (part.status_code, part.content) == (206, content[begin:end])
        assert part.headers["Content-Range"] == f"bytes {begin}-{end - 1}/{size}"
    for text in (f"bytes={size}-", "bytes=3-2", "bytes=-0"):
        part = client.get(path, Range=text)
        assert (part.status_code, part.headers["Content-Range"]) == (416, f"bytes */{size}")
    for text in ("bytes=0-1,4-5", "rows=0-1", "bytes=-"):
        assert client.get(path, Range=text).content == content


def test_ranges_of_rewritten_manifests_are_read(filled: DatasetClient) -> None:
    shown = table_of(filled)
    client = S3Client(shown["config"])
    for snapshot in shown["metadata"]["snapshots"]:
        path = path_of(snapshot["manifest-list"])
        content = client.get(path).content
        assert content.startswith(b"Obj\x01")
        assert client.get(path, Range="bytes=4-10").content == content[4:11]
        assert client.get(path, "HEAD").headers["Content-Length"] == str(len(content))


def test_the_metadata_is_a_file_too(filled: DatasetClient) -> None:
    shown = table_of(filled)
    answer = S3Client(shown["config"]).get(path_of(shown["metadata-location"]))
    assert answer.json() == shown["metadata"]


def test_only_files_of_retained_states_exist(filled: DatasetClient, client: S3Client) -> None:
    folder = files_of(filled.id)
    (folder / "authority" / "unrecorded.parquet").write_bytes(b"PAR1")
    (folder / "secret").write_bytes(b"secret")
    metadata = sorted((folder / "iceberg" / "orders" / "metadata").iterdir())
    (earlier, *_) = [path for path in metadata if path.suffix == ".json"]
    for path in (
        "authority/unrecorded.parquet",
        "secret",
        "authority/../secret",
        "authority/..",
        "authority/",
        "iceberg/orders/metadata/../../../secret",
        f"iceberg/orders/metadata/{earlier.name}",
        "iceberg/stock/metadata/anything.avro",
        "iceberg/../metadata/anything.avro",
        "iceberg/orders/metadata/anything.avro",
    ):
        refused(client.get(below(filled, path)), 404, "NoSuchKey")
    for path, raw in (
        ("authority/../secret", "authority/%2e%2e/secret"),
        ("authority/../secret", "authority/..%2fsecret"),
        ("iceberg/../../metadata/secret", "iceberg/..%2f../metadata/secret"),
        ("authority//etc/passwd", "authority/%2fetc%2fpasswd"),
    ):
        answer = client.get(below(filled, path), raw=below(filled, raw))
        refused(answer, 404, "NoSuchKey")
    segments = list((folder / "segments").rglob("*.*"))
    assert segments
    for file in segments:
        refused(client.get(below(filled, file.relative_to(folder).as_posix())), 404, "NoSuchKey")


def test_links_are_not_followed(filled: DatasetClient, tmp_path: Path) -> None:
    shown = table_of(filled)
    client = S3Client(shown["config"])
    manifest_list = path_of(shown["metadata"]["snapshots"][0]["manifest-list"])
    for path in (rows_path(filled), manifest_list):
        file = files_of(filled.id) / path.removeprefix(below(filled, ""))
        target = tmp_path / file.name
        file.rename(target)
        refused(client.get(path), 404, "NoSuchKey")
        file.symlink_to(target)
        refused(client.get(path), 404, "NoSuchKey")
        file.unlink()
        file.mkdir()
        refused(client.get(path), 404, "NoSuchKey")
        file.rmdir()
        target.rename(file)
        assert client.get(path).status_code == 200


def test_a_client_beyond_its_rate_gets_the_error_of_s3(filled: DatasetClient) -> None:
    from tenants.models import Quota

    client, path = S3Client(table_of(filled)["config"]), rows_path(filled)
    limits = {"requests_per_s": 1, "requests_burst": 2}
    Quota(tenant=filled.account.tenant, limits=limits).save(using="staff")
    wait_until(lambda: client.get(path).status_code == 503, what="the limit")
    refused(client.get(path), 503, "SlowDown")


def test_a_snapshot_that_was_not_committed_has_no_files(
    filled: DatasetClient, client: S3Client
) -> None:
    shown = table_of(filled)["metadata"]["snapshots"]
    (path, *_) = [path_of(snapshot["manifest-list"]) for snapshot in shown]
    assert client.get(path).status_code == 200
    from analytics.models import Run

    runs = Run.unscoped.using("relay").filter(dataset_id=filled.id, stage="authority")
    runs.filter(last=1).delete()
    refused(client.get(path), 404, "NoSuchKey")


def test_metadata_that_names_files_of_others_is_not_rewritten(filled: DatasetClient) -> None:
    from analytics.iceberg.file_locations import FileLocations
    from analytics.pipeline.catalogue import ForeignFile

    locations, folder = FileLocations(filled.id), files_of(filled.id)
    assert (
        locations.relative((folder / "authority" / "a.parquet").as_uri()) == "authority/a.parquet"
    )
    for location in (
        "file:///etc/passwd",
        folder.as_uri(),
        f"{folder.as_uri()}-other/a.parquet",
        f"{folder.as_uri()}/authority/../../other",
        f"s3://{filled.id}/a.parquet",
    ):
        with pytest.raises(ForeignFile):
            locations.public(location)


def test_credentials_are_for_one_dataset(filled: DatasetClient, client: S3Client) -> None:
    for account in (filled.account, None):
        other = make_dataset(filled.caller.base, account=account, name="other")
        other.insert("orders", {"id": 1})
        pipeline_steps.drain(other)
        refused(client.get(rows_path(other)), 404, "NoSuchKey")
        others = S3Client(table_of(other)["config"])
        refused(others.get(rows_path(filled)), 404, "NoSuchKey")
        assert others.get(rows_path(other)).status_code == 200


def test_a_revoked_key_cannot_read_files(filled: DatasetClient) -> None:
    key = make_key(filled.account.tenant, scopes=["analytics:read"])
    client = S3Client(table_of(filled, with_key(filled.caller.base, key))["config"])
    path = rows_path(filled)
    assert client.get(path).status_code == 200
    with scoped(tenant_id=filled.account.tenant.id):
        ApiKey.objects.filter(key_id=key.split("_")[2]).update(scopes=["topics:read"])
    wait_until(lambda: client.get(path).status_code == 403, what="the scope to be missed")
    with scoped(tenant_id=filled.account.tenant.id):
        keys = ApiKey.objects.filter(key_id=key.split("_")[2])
        keys.update(scopes=["analytics:read"], revoked_at=timezone.now())
    wait_until(lambda: "revoked" in client.get(path).text, what="the key to be rejected")
    refused(client.get(path), 403, "AccessDenied")


def test_expired_credentials_are_refused(
    filled: DatasetClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_credentials, "LIFETIME_S", -1)
    client = S3Client(table_of(filled)["config"])
    assert "expired" in refused(client.get(rows_path(filled)), 403, "AccessDenied")


def changed(config: Mapping[str, str], name: str) -> S3Client:
    """Return a client with another first character in a property."""
    value = config[name]
    return S3Client({**config, name: ("A" if value[0] != "A" else "B") + value[1:]})


def test_requests_with_other_signatures_are_refused(
    filled: DatasetClient, client: S3Client
) -> None:
    path = rows_path(filled)
    for name in ("s3.secret-access-key", "s3.access-key-id"):
        refused(changed(client.config, name).get(path), 403, "AccessDenied")
    for minutes in (-16, 16):
        client.fast = datetime.timedelta(minutes=minutes)
        assert "15 minutes" in refused(client.get(path), 403, "AccessDenied")
    client.fast = datetime.timedelta(minutes=14)
    assert client.get(path).status_code == 200


def test_the_signature_covers_the_request(filled: DatasetClient, client: S3Client) -> None:
    path = rows_path(filled)
    url = client.url(path)
    headers = client.signed("GET", url, path, {"Range": "bytes=0-3"})

    def status(method: str, url: str, **changes: str) -> int:
        sent = {**headers, **changes}
        return requests.request(method, url, headers=sent, timeout=60).status_code

    assert status("GET", url) == 206
    assert status("HEAD", url) == 403
    assert status("GET", f"{url}?versionId=1") == 403
    assert status("GET", url, range="bytes=0-4") == 403
    authorization = headers["authorization"]
    for old, new in (
        ("host;", ""),
        (";x-amz-date", ""),
        ("AWS4-HMAC-SHA256 ", "AWS4-ECDSA-P256-SHA256 "),
        ("/s3/", "/sts/"),
        ("Signature=", "Signature=0"),
        ("Credential=", "Credential=" + "A" * 2000),
    ):
        assert old in authorization
        assert status("GET", url, authorization=authorization.replace(old, new)) == 403
    assert status("GET", url, **{"x-amz-date": "yesterday"}) == 403


def test_a_key_of_the_api_does_not_open_files(filled: DatasetClient) -> None:
    refused(filled.caller.get(rows_path(filled)), 403, "AccessDenied")
    refused(Caller(filled.caller.base).get(rows_path(filled)), 403, "AccessDenied")


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_files_cannot_be_changed(filled: DatasetClient, client: S3Client, method: str) -> None:
    refused(client.get(rows_path(filled), method), 405, "MethodNotAllowed")
    refused(client.get(below(filled, "new"), method), 405, "MethodNotAllowed")
