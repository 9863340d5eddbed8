"""Headers are found under any spelling, and listing them shows what Django's own would."""

from __future__ import annotations

import pytest
from django.http.request import HttpHeaders

from rillbase_server.request_headers import LazyHeaders

META = {
    "REQUEST_METHOD": "GET",
    "CONTENT_TYPE": "application/json",
    "HTTP_AUTHORIZATION": "Bearer x",
    "HTTP_X_REQUEST_ID": "7",
    "HTTP_EMPTY": "",
}


@pytest.mark.parametrize(
    "name", ["Content-Type", "authorization", "X-Request-Id", "x_request_id", "Empty"]
)
def test_a_header_is_found_as_django_finds_it(name: str) -> None:
    assert LazyHeaders(META)[name] == HttpHeaders(META)[name]
    assert name in LazyHeaders(META)


@pytest.mark.parametrize("name", ["Request-Method", "If-Match", "Http-Authorization", ""])
def test_other_environ_entries_are_not_found_as_headers(name: str) -> None:
    assert name not in LazyHeaders(META)
    assert LazyHeaders(META).get(name) is None
    assert LazyHeaders(META).get(name, "else") == "else"
    with pytest.raises(KeyError):
        LazyHeaders(META)[name]


def test_listing_shows_every_header() -> None:
    assert dict(LazyHeaders(META)) == dict(HttpHeaders(META))
    assert len(LazyHeaders(META)) == 4
    assert repr(LazyHeaders(META)) == repr(HttpHeaders(META))
