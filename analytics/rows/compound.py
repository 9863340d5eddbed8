"""Composite keys as one text, which is compared, hashed and mapped to ids.

The text is the JSON list of the parts, as `json.dumps` writes it without spaces, so different keys
have different texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_CONTROL = "[\\x00-\\x1f]"


def encode(parts: Sequence[int | str]) -> str:
    """Return the text of a key."""
    return json.dumps(list(parts), ensure_ascii=False, separators=(",", ":"))


def encode_keys(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the texts of a column of keys; null if the key or a part of it is null."""
    kind = keys.type
    parts = [_part(pc.struct_field(keys, [index])) for index in range(kind.num_fields)]
    joined = pc.binary_join_element_wise(*parts, ",")
    return pc.binary_join_element_wise("[", joined, "]", "")


def decode_keys(texts: pa.Array, parts: Mapping[str, pa.DataType]) -> pa.StructArray:
    """Return the keys that the texts encode."""
    keys = [None if text is None else json.loads(text) for text in texts.to_pylist()]
    columns = [
        pa.array([None if key is None else key[index] for key in keys], kind)
        for index, kind in enumerate(parts.values())
    ]
    fields = [pa.field(name, kind) for name, kind in parts.items()]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=texts.is_null())


def _part(column: pa.Array) -> pa.Array:
    if not pa.types.is_string(column.type):
        return column.cast(pa.string())
    if pc.any(pc.match_substring_regex(column, _CONTROL)).as_py():
        texts = column.to_pylist()
        return pa.array([None if t is None else json.dumps(t, ensure_ascii=False) for t in texts])
    for special in ("\\", '"'):
        column = pc.replace_substring(column, special, f"\\{special}")
    return pc.binary_join_element_wise('"', column, '"', "")
