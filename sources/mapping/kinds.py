"""The supported column types, and how each is converted to a document value.

A conversion is chosen by a type's oid in PostgreSQL's catalogue, which never changes, or by the
catalogue's description of a user-defined type: a domain is its underlying type, an enum is text, an
array is a list of its elements. Unlisted types are rejected, by name.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring as quote

from sources.mapping.arrays import Nested, parse_array
from sources.mapping.cells import check_values
from sources.mapping.moments import moment_ms
from sources.mapping.numbers import decimal128
from sources.mapping.plain_json import plain_json

#: Converts a value's text, in PostgreSQL's format, to Extended JSON.
Mapper = Callable[[str], str]

MAX_DOMAINS = 32


def _boolean(text: str) -> str:
    return "true" if text == "t" else "false"


def _integer(text: str) -> str:
    # The text comes from a tenant's server: it may be anything.
    return str(int(text))


def _number_long(text: str) -> str:
    return f'{{"$numberLong":"{int(text)}"}}'


def _double(text: str) -> str:
    return f'{{"$numberDouble":{quote(text)}}}'


def _numeric(text: str) -> str:
    digits = decimal128(text)
    return quote(text) if digits is None else f'{{"$numberDecimal":"{digits}"}}'


def _moment(text: str) -> str:
    if text == "infinity":
        return '{"$maxKey":1}'
    if text == "-infinity":
        return '{"$minKey":1}'
    return f'{{"$date":{{"$numberLong":"{moment_ms(text)}"}}}}'


def _bytea(text: str) -> str:
    content = base64.b64encode(bytes.fromhex(text.removeprefix("\\x"))).decode()
    return f'{{"$binary":{{"base64":"{content}","subType":"00"}}}}'


#: Names of built-in types.
_BUILT_IN: Mapping[int, Mapper] = {
    16: _boolean,
    17: _bytea,
    18: quote,  # "char"
    19: quote,  # name
    20: _number_long,  # bigint
    21: _integer,  # smallint
    23: _integer,  # integer
    25: quote,  # text
    114: plain_json,  # json
    142: quote,  # xml
    650: quote,  # cidr
    700: _double,  # real
    701: _double,  # double precision
    774: quote,  # macaddr8
    829: quote,  # macaddr
    869: quote,  # inet
    1042: quote,  # character
    1043: quote,  # character varying
    1082: _moment,  # date
    1083: quote,  # time
    1114: _moment,  # timestamp
    1184: _moment,  # timestamp with time zone
    1186: quote,  # interval
    1266: quote,  # time with time zone
    1560: quote,  # bit
    1562: quote,  # bit varying
    1700: _numeric,
    2950: quote,  # uuid
    3802: plain_json,  # jsonb
}
#: Types of extensions, by name.
_BY_NAME: Mapping[str, Mapper] = {"citext": quote, "ltree": quote}
#: Types allowed in a key: documents store their values exactly, so that a key leads back to its
#: row.
KEY_TYPES = frozenset({16, 18, 19, 20, 21, 23, 25, 1042, 1043, 1082, 2950})


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """A type's properties in the catalogue."""

    oid: int
    name: str
    #: `b`ase, `d`omain, `e`num and others.
    kind: str
    #: The base type of a domain; 0: not a domain.
    base: int
    #: The element type of an array; 0: not an array.
    element: int


Types = Mapping[int, TypeFacts]


def underlying(oid: int, types: Types) -> int:
    """Return the base type of a domain, through all levels, or any other type itself."""
    for _ in range(MAX_DOMAINS):
        facts = types.get(oid)
        if facts is None or facts.kind != "d":
            break
        oid = facts.base
    return oid


def mapper(oid: int, types: Types) -> Mapper | None:
    """Return the conversion of a type's values; None: not supported."""
    oid = underlying(oid, types)
    if oid in _BUILT_IN:
        return _BUILT_IN[oid]
    facts = types.get(oid)
    if facts is None:
        return None
    if facts.kind == "e":
        return quote
    if facts.element:
        inner = mapper(facts.element, types)
        return None if inner is None else _array_of(inner)
    return _BY_NAME.get(facts.name)


def may_be_key(oid: int, types: Types) -> bool:
    """Return whether a column of this type may be part of a key."""
    oid = underlying(oid, types)
    facts = types.get(oid)
    return oid in KEY_TYPES or (facts is not None and facts.kind == "e")


def _array_of(inner: Mapper) -> Mapper:
    def write(value: Nested | str | None) -> str:
        if value is None:
            return "null"
        if isinstance(value, str):
            return inner(value)
        return "[" + ",".join(map(write, value)) + "]"

    def write_text(text: str) -> str:
        check_values(text)
        return write(parse_array(text))

    return write_text
