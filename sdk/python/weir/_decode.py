"""Reads what weir sends, by the tables of _api."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Type, TypeVar

T = TypeVar("T")

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def decode(kind: Type[T], value: Any) -> T:
    """Reads an object.

    It ignores fields that it does not know, because a newer weir may send more, and fails with a
    ValueError on any other surprise.
    """
    if not isinstance(value, dict):
        raise ValueError("the answer is not an object")
    found = {}
    for wire, (name, of, required) in kind.FIELDS.items():  # type: ignore[attr-defined]
        if value.get(wire) is not None:
            found[name] = _read(wire, of, value[wire])
        elif required:
            raise ValueError(f"the answer has no {wire}")
    return kind(**found)


def _read(wire: str, of: Any, value: Any) -> Any:
    if isinstance(of, list):
        if isinstance(value, list):
            return [decode(of[0], each) for each in value]
    elif not isinstance(of, str):
        return decode(of, value)
    elif of == "string" and isinstance(value, str):
        return value
    elif of == "boolean" and isinstance(value, bool):
        return value
    elif of in ("number", "milliseconds") and isinstance(value, int) and not isinstance(value, bool):
        return value if of == "number" else value / 1000
    elif of == "decimal" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    elif of == "time" and isinstance(value, str):
        match = _TIME.fullmatch(value)
        if match:
            seconds, fraction, zone = match.groups()
            micros = (fraction or "").ljust(6, "0")[:6]  # Python 3.9 takes three digits or six
            return datetime.fromisoformat(f"{seconds}.{micros}{'+00:00' if zone == 'Z' else zone}")
    raise ValueError(f"{wire} in the answer has the wrong type")
