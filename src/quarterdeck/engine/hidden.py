"""Keys of agents in what is recorded: an agent may print its environment, and its own key with it.

The agent's own child processes have its key, so a command can show it. It goes no further than the
agent: neither the journal nor, through it, the service's database and its readers are told.
A key that comes in two pieces of a stream is not recognized.
"""

import re
from collections.abc import Mapping

from pydantic_core import to_json

STARS = b"********"
SHORTEST = 8
"""What is shorter is no key, and may stand in any text."""
_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=(.+)", re.DOTALL)


class Hidden:
    """Takes keys out of JSON. `credentials` may change: keys can be given to a running engine."""

    def __init__(self, credentials: Mapping[str, str]) -> None:
        self._credentials = credentials
        self._known: tuple[str, ...] = ()
        self._keys: list[bytes] = []

    def __call__(self, content: bytes) -> bytes:
        known = tuple(self._credentials.values())
        if known != self._known:
            self._known, self._keys = known, sorted(map(_as_json, known), key=len, reverse=True)
        for key in self._keys:
            if len(key) >= SHORTEST and key in content:
                content = content.replace(key, STARS)
        return content


def _as_json(credential: str) -> bytes:
    """As it stands inside a JSON text. A credential may be `VARIABLE=key`."""
    named = _NAMED.fullmatch(credential)
    return to_json(named[1] if named else credential)[1:-1]
