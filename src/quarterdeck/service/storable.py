"""Text from outside that goes into columns: PostgreSQL stores no NUL character.

Request bodies with one are refused. What agents and programs print is kept whole in the log, whose
JSON escapes the character; in the columns made of it, it becomes the replacement character.
"""

from typing import Any, cast

NUL, REPLACEMENT = "\0", "\ufffd"


def storable(text: str) -> str:
    """The text without NUL characters."""
    return text.replace(NUL, REPLACEMENT)


def storable_json(value: Any) -> Any:
    """A JSON value, all of its texts without NUL characters."""
    match value:
        case str():
            return storable(value)
        case list():
            return [storable_json(one) for one in cast("list[Any]", value)]
        case dict():
            entries = cast("dict[str, Any]", value)
            return {storable(key): storable_json(one) for key, one in entries.items()}
        case _:
            return value
