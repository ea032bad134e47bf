"""The async API client: one class per resource over one connection.

Names are found when they are first used: who needs only `client.errors` or `client.items` (the
cockpit, before its first frame) does not pay for the HTTP library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.client.connection import LOCAL_URL, Connection
    from quarterdeck.client.names import NEUTRAL, WireNames

_HOMES = {
    "Client": "client",
    "Connection": "connection",
    "LOCAL_URL": "connection",
    "NEUTRAL": "names",
    "WireNames": "names",
}

__all__ = ["LOCAL_URL", "NEUTRAL", "Client", "Connection", "WireNames"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module("quarterdeck.client._lean")  # before the HTTP library, see there
    return getattr(import_module(f"quarterdeck.client.{_HOMES[name]}"), name)
