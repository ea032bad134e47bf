"""The async API client: one class per resource over one connection."""

from quarterdeck.client import _lean as _lean  # before the HTTP library, see there
from quarterdeck.client.client import Client
from quarterdeck.client.connection import LOCAL_URL, Connection
from quarterdeck.client.names import NEUTRAL, WireNames

__all__ = ["LOCAL_URL", "NEUTRAL", "Client", "Connection", "WireNames"]
