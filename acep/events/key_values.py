"""Compute keys that are functions of a text: ``[lower(user)]``."""

from __future__ import annotations

import pyarrow as pa

from acep.pattern.key_calls import KeyCall

__all__ = ["KEY_TYPES", "key_values"]

KEY_TYPES = {"text": pa.string(), "integer": pa.int64(), "condition": pa.bool_()}
"""The types of keys by what their function gives."""


def key_values(texts: pa.Array, call: KeyCall) -> pa.Array:
    """Return a function of texts, computed once for each distinct text; null for a null.

    >>> from acep.pattern.key_calls import key_call
    >>> key_values(pa.array(["A", None, "a"]), key_call("lower(user)")).to_pylist()
    ['a', None, 'a']
    """
    encoded = texts.cast(pa.string()).dictionary_encode()
    values = pa.array(call.values_of(encoded.dictionary.to_pylist()), KEY_TYPES[call.gives])
    return values.take(encoded.indices)
