"""Write and read times by templates, as TO_CHAR and TO_DATE of SQL have them: YYYY-MM-DD HH24:MI:SS."""

from __future__ import annotations

import re
from datetime import datetime

__all__ = ["check_template", "read_time", "write_time"]

_FIELD = re.compile(r"YYYY|YY|MM|DD|HH24|HH12|MI|SS|FF[1-6]|AM|PM|\"[^\"]*\"|[^A-Za-z0-9\"]")
_DIGITS = {"YYYY": 4, "YY": 2}


def check_template(template: str) -> tuple[str, ...]:
    """Return the fields of a template and what stands between them.

    Raises :class:`ValueError` with the part that no field is.

    >>> check_template("YYYY-MM")
    ('YYYY', '-', 'MM')
    """
    fields: list[str] = []
    position = 0
    while position < len(template):
        field = _FIELD.match(template.upper(), position)
        if field is None:
            raise ValueError(re.split(r"[^A-Za-z0-9]", template[position:])[0] or template[position:])
        is_quoted = field.group().startswith('"')
        fields.append(template[position : field.end()] if is_quoted else field.group())
        position = field.end()
    return tuple(fields)


def write_time(template: str, *numbers: int) -> str:
    """Return a time as text: its year, month, day, hour, minute, second and microsecond are ``numbers``.

    >>> write_time("HH12:MI AM", 2026, 1, 31, 13, 5, 0, 0)
    '01:05 PM'
    """
    year, month, day, hour, minute, second, micros = numbers
    plain = {"MM": month, "DD": day, "HH24": hour, "HH12": (hour + 11) % 12 + 1, "MI": minute, "SS": second}
    parts: list[str] = []
    for field in check_template(template):
        if field in plain:
            parts.append(f"{plain[field]:02d}")
        elif field in _DIGITS:
            parts.append(f"{year:04d}"[-_DIGITS[field] :])
        elif field.startswith("FF"):
            parts.append(f"{micros:06d}"[: int(field[2])])
        elif field in ("AM", "PM"):
            parts.append("AM" if hour < 12 else "PM")
        else:
            parts.append(field.strip('"') if field != '"' else field)
    return "".join(parts)


def read_time(template: str, text: str) -> datetime:
    """Return the time that a text is by a template; parts that it has not are the first ones.

    Raises :class:`ValueError` for a text that does not fit.

    >>> read_time("DD.MM.YYYY", "31.1.2026")
    datetime.datetime(2026, 1, 31, 0, 0)
    """
    pattern, names = "", []
    for field in check_template(template):
        if field in ("YY", "AM", "PM", "HH12"):
            raise ValueError(field)
        if field in ("YYYY", "MM", "DD", "HH24", "MI", "SS") or field.startswith("FF"):
            names.append(field[:2] if field.startswith("FF") else field)
            pattern += r"(\d{4})" if field == "YYYY" else r"(\d{1,6})" if field.startswith("FF") else r"(\d{1,2})"
        else:
            pattern += re.escape(field.strip('"') if len(field) > 1 else field)
    fitting = re.fullmatch(pattern, text.strip())
    if fitting is None or len(set(names)) < len(names):
        raise ValueError(text)
    values = dict(zip(names, fitting.groups(), strict=True))
    micros = int(values.get("FF", "0").ljust(6, "0"))
    return datetime(
        int(values.get("YYYY", 1970)), int(values.get("MM", 1)), int(values.get("DD", 1)), int(values.get("HH24", 0)),
        int(values.get("MI", 0)), int(values.get("SS", 0)), micros,
    )  # fmt: skip
