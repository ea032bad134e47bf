"""Text from outside that goes into columns: PostgreSQL stores no NUL character.

Request bodies with one are refused. What agents and programs print is kept whole in the log, whose
JSON escapes the character; in the columns made of it, it becomes the replacement character. So does
half of a surrogate pair, which JSON can hold and UTF-8 cannot.
"""

import re
from typing import Any, cast

NUL, REPLACEMENT = "\0", "\ufffd"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with nothing that a column cannot hold."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def storable_json(value: Any) -> Any:
    """A JSON value, all of its texts storable."""
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
