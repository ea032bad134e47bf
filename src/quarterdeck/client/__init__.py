"""The async API client: one class per resource over one connection.

Names are imported on first use: the cockpit needs only `client.errors` and `client.stream_events`
before its first frame, and does not wait for the HTTP library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.client.connection import LOCAL_URL, HttpConnection
    from quarterdeck.client.names import NEUTRAL, WireNames

_HOMES = {
    "Client": "client",
    "HttpConnection": "connection",
    "LOCAL_URL": "connection",
    "NEUTRAL": "names",
    "WireNames": "names",
}

__all__ = ["LOCAL_URL", "NEUTRAL", "Client", "HttpConnection", "WireNames"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module("quarterdeck.client._lean")  # before the HTTP library, see there
    return getattr(import_module(f"quarterdeck.client.{_HOMES[name]}"), name)
