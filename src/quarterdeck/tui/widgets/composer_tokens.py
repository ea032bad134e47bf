"""What is being named at the cursor: a command of the server, or a file."""

import re
from dataclasses import dataclass
from typing import Literal

_FILE = re.compile(r"(?:^|\s)@([^\s@]*)$")
_COMMAND = re.compile(r"^/([^\s/]*)$")


@dataclass(frozen=True)
class Token:
    """`start` is the column of its sign, `/` or `@`; `query` what stands behind the sign."""

    kind: Literal["command", "file"]
    start: int
    query: str


def token_at(before: str, row: int) -> Token | None:
    """The token that ends at the cursor. `before`: the text of the cursor's line before it."""
    if row == 0 and (found := _COMMAND.match(before)):
        return Token("command", 0, found[1])
    if found := _FILE.search(before):
        return Token("file", found.start(1) - 1, found[1])
    return None
