"""The HTTP client for calls that the service makes by itself."""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

LOOPBACK = ("all://localhost", "all://127.0.0.1", "all://[::1]")


def open_client(limit: float) -> "httpx.AsyncClient":
    """A client that follows no redirection; `limit` is in seconds, for each wait."""
    import httpx  # 100 ms, and most services call nobody

    # It logs every address in full.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # A proxy of the environment's is for what lies outside of this machine.
    direct = {pattern: httpx.AsyncHTTPTransport() for pattern in LOOPBACK}
    return httpx.AsyncClient(timeout=limit, follow_redirects=False, mounts=direct)
