"""Which addresses and URLs tenants may name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.outbound import OutboundClient, TargetRefused
from foundation.outbound.addresses import is_public, parse_address
from foundation.outbound.targets import DENIED_PORTS, parse_target

PRIVATE_V4 = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.7",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
]
PRIVATE_V6 = [
    "::",
    "::1",
    "::7f00:1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "fec0::1",
    "ff02::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "64:ff9b:1::1",
]


def is_public_text(text: str) -> bool:
    address = parse_address(text)
    assert address is not None
    return is_public(address)


@pytest.mark.parametrize("address", PRIVATE_V4 + PRIVATE_V6)
def test_addresses_of_no_public_host_are_refused(address: str) -> None:
    assert not is_public_text(address)


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "100.128.0.1", "172.32.0.1", "2606:4700::1111", "2a00:1450:4001::64"],
)
def test_addresses_of_public_hosts_are_admitted(address: str) -> None:
    assert is_public_text(address)


@pytest.mark.parametrize("inner", PRIVATE_V4)
def test_no_form_of_ipv6_carries_a_private_ipv4_address_through(inner: str) -> None:
    number = int.from_bytes(bytes(map(int, inner.split("."))), "big")
    high, low = number >> 16, number & 0xFFFF
    forms = [
        f"::ffff:{inner}",
        f"::{high:x}:{low:x}",
        f"::ffff:0:{high:x}:{low:x}",
        f"64:ff9b::{high:x}:{low:x}",
        f"64:ff9b:1::{high:x}:{low:x}",
        f"2002:{high:x}:{low:x}::1",
        f"2001:0:{high:x}:{low:x}:0:0:{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}",
    ]
    assert [form for form in forms if is_public_text(form)] == []


def test_an_ipv6_only_network_reaches_public_hosts_through_nat64() -> None:
    assert is_public_text("64:ff9b::8.8.8.8")


@given(st.ip_addresses(v=6))
def test_only_global_unicast_addresses_are_ever_public(address: object) -> None:
    text = str(address)
    if is_public_text(text):
        assert text[0] in "23" or text.startswith("64:ff9b::")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://hooks.example/", "must begin with https"),
        ("ftp://hooks.example/", "must begin with https"),
        ("hooks.example", "must begin with https"),
        ("https://user:secret@hooks.example/", "user name or password"),
        ("https://@hooks.example/", "user name or password"),
        ("https://hooks.example:22/", "Port 22"),
        ("https://hooks.example:0/", "Port 0"),
        ("https://hooks.example:99999/", "malformed"),
        ("https://hooks.example:x/", "malformed"),
        ("https://[::1/", "malformed"),
        ("https://[fe80::1%25eth0]/", "not valid"),
        ("https:///path", "not valid"),
        ("https://hooks..example/", "not valid"),
        ("https://hooks.example\\@evil.example/", "characters that are not allowed"),
        ("https://hooks.example/a\r\nX-Evil: 1", "characters that are not allowed"),
        ("https://hooks.example/\x00", "characters that are not allowed"),
        (" https://hooks.example/", "characters that are not allowed"),
        ("https://hooks.example/\ud800", "characters that are not allowed"),
        ("https://hooks.example/" + "a" * 3000, "longer than"),
        ("https://" + "a" * 64 + ".example/", "not valid"),
    ],
)
def test_a_url_that_may_not_be_called_is_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(TargetRefused, match=reason):
        parse_target(url, allow_http=False)


def test_a_url_is_parsed_as_it_will_be_called() -> None:
    target = parse_target(
        "https://BÜCHER.example.:8443/a b?q=ü#part".replace(" ", "%20"), allow_http=False
    )
    assert target.host == "xn--bcher-kva.example"
    assert target.authority == "xn--bcher-kva.example:8443"
    assert target.path == "/a%20b?q=%C3%BC"
    assert parse_target("https://[2606:4700::1]", allow_http=False).authority == "[2606:4700::1]"


def test_ports_of_databases_mail_and_cluster_control_are_denied() -> None:
    assert {22, 25, 5432, 6379, 2375, 6443, 10250, 11211} <= DENIED_PORTS
    assert not {80, 443, 8000, 8080, 8443} & DENIED_PORTS


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "127。0。0。1",
        "ⓛocalhost",
        "[::1]",
        "[::ffff:10.0.0.1]",
    ],
)
def test_no_spelling_of_an_inner_address_gets_through_the_real_resolver(host: str) -> None:
    with pytest.raises(TargetRefused, match="public internet"):
        OutboundClient().check(f"https://{host}/")


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    def resolver(_host: str, _port: int, _timeout_s: float) -> Sequence[str]:
        return ["1.1.1.1", "2606:4700::1111", "10.0.0.1"]

    client = OutboundClient(resolver=resolver)
    with pytest.raises(TargetRefused, match="public internet") as refusal:
        client.check("https://hooks.example/")
    assert "10.0.0.1" not in str(refusal.value)


def test_loopback_is_called_only_where_the_setting_allows_it_and_nothing_else_by_http() -> None:
    def lan(_host: str, _port: int, _timeout_s: float) -> Sequence[str]:
        return ["192.168.0.1"]

    def public(_host: str, _port: int, _timeout_s: float) -> Sequence[str]:
        return ["1.1.1.1"]

    OutboundClient(allow_loopback=True).check("http://127.0.0.1:8000/")
    with pytest.raises(TargetRefused, match="https"):
        OutboundClient().check("http://127.0.0.1:8000/")
    with pytest.raises(TargetRefused, match="public internet"):
        OutboundClient(allow_loopback=True, resolver=lan).check("http://printer.example/")
    with pytest.raises(TargetRefused, match="https"):
        OutboundClient(allow_loopback=True, resolver=public).check("http://hooks.example/")
    with pytest.raises(TargetRefused, match="public internet"):
        OutboundClient(allow_loopback=True).check("http://[::ffff:127.0.0.1]:8000/")
