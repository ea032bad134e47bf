"""JSON from other programs, whose shape is not guaranteed."""

from typing import Any, cast


def as_object(value: object) -> dict[str, Any]:
    """Return the value when it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """Return the value when it is a JSON array, else an empty list."""
    return cast("list[object]", value) if isinstance(value, list) else []
