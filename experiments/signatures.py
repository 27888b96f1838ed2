"""Show the shared options of entry points in the signatures of the documentation site: an extension of Griffe."""

from __future__ import annotations

import re
from typing import Any

import griffe

from acep.runtime import options as shared
from acep.runtime.options import StreamOptions

__all__ = ["ListedOptions"]

UNPACKED = re.compile(r"Unpack\[(\w+)\]")


class ListedOptions(griffe.Extension):
    """List the options in place of ``**options: Unpack[...]``, with their types and defaults."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """List the options of a function, if it has some."""
        unpacked = [UNPACKED.fullmatch(str(parameter.annotation)) for parameter in func.parameters]
        if not unpacked or unpacked[-1] is None:
            return
        keywords = getattr(shared, unpacked[-1][1]).__annotations__
        parameters = [parameter for parameter in func.parameters if not UNPACKED.fullmatch(str(parameter.annotation))]
        for name, field in StreamOptions.__dataclass_fields__.items():
            if name in keywords:
                kind, default = griffe.ParameterKind.keyword_only, repr(field.default)
                parameters.append(griffe.Parameter(name, kind=kind, annotation=str(field.type), default=default))
        func.parameters = griffe.Parameters(*parameters)
