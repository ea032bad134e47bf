"""The body of a webhook as JSON that can be stored, told, and put into a prompt."""

import json
from typing import Any, cast

DEEPEST = 100
"""Levels of lists and objects in each other: what walks through a value calls itself for each."""


def read_payload(body: bytes) -> Any:
    """The value of a body.

    Raises:
        ValueError: it is no JSON, or too deep.
    """
    try:
        value = json.loads(body, parse_constant=_no_number)
    except RecursionError as e:
        raise ValueError("it is too deep") from e
    if _is_too_deep(value):
        raise ValueError("it is too deep")
    return value


def _is_too_deep(value: Any) -> bool:
    layer = [value]
    for _ in range(DEEPEST + 1):
        layer = [part for one in layer for part in _parts(one)]
        if not layer:
            return False
    return True


def _parts(value: Any) -> list[Any]:
    match value:
        case dict():
            return list(cast("dict[str, Any]", value).values())
        case list():
            return cast("list[Any]", value)
        case _:
            return []


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
