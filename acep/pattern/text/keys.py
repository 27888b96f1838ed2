"""Read the keys in brackets that are functions of an attribute: ``[lower(user)]``."""

from __future__ import annotations

from acep.pattern import expressions as ex
from acep.pattern.key_calls import key_call
from acep.pattern.spelling import attribute_text, expression_text
from acep.pattern.text.predicates import expression, scalar_named, scalar_of
from acep.pattern.text.references import path
from acep.pattern.text.syntax import Branch, branches, fail, quote, span, tokens

__all__ = ["key_of_call"]


def key_of_call(branch: Branch) -> str:
    """Return the name of a key that is a function of an attribute, as in ``[lower(user)]``."""
    (token,), (source, *args) = tokens(branch), branches(branch)
    attribute = ex.Attribute("e", None, path(source), span(source))
    hint = "lower(user), or regexp_extract(path, '/user/([0-9]+)', 1)"
    entry = scalar_named(branch, token, token.lower(), 1 + len(args))
    constants = [expression(arg) for arg in args]
    for constant_value, arg in zip(constants, args, strict=True):
        if not isinstance(constant_value, ex.Literal) or not isinstance(constant_value.value, bool | int | str):
            raise fail("a key is a function of one attribute and of constants", arg, hint, code="query_type")
    call = scalar_of(entry, (attribute, *constants), span(branch))
    if isinstance(call, ex.Call):
        parts = [attribute_text(attribute.name), *map(expression_text, constants)]
        called = f"{call.name}({', '.join(parts)})"
        if key_call(called) is not None:
            return called
    raise fail(f"{quote(token)} gives no key: a key is a function of a text", branch, hint, code="query_type")
