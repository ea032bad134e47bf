"""Requests of the service to configured URLs."""

import logging
import ssl
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


LOOPBACK = ("all://localhost", "all://127.0.0.1", "all://[::1]")


@cache
def trusted_context() -> ssl.SSLContext:
    """Return the TLS context of all clients: reading the certificates of the authorities takes 30 ms."""
    import httpx

    return httpx.create_ssl_context()


def open_client(limit: float) -> "httpx.AsyncClient":
    """Return a client for configured URLs, which follows no redirection; `limit` is in seconds, for each operation."""
    import httpx  # 100 ms, and most services make no calls

    # It logs every address in full.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # A proxy of the environment is for hosts outside of this machine.
    trusted = trusted_context()
    direct = {pattern: httpx.AsyncHTTPTransport(verify=trusted) for pattern in LOOPBACK}
    return httpx.AsyncClient(
        timeout=limit,
        follow_redirects=False,
        verify=trusted,
        mounts=direct,
        headers={"Accept-Encoding": "identity"},
    )


class AnswerError(ValueError):
    """An answer that is not read. Its text is for people."""


async def read_answer(answer: "httpx.Response", limit: int) -> bytes:
    """Return the body of an answer, of at most `limit` bytes.

    It is never decompressed: a few bytes may unpack to any number.

    Raises:
        AnswerError: it is longer, or compressed.
        httpx.HTTPError: the connection broke.
    """
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        raise AnswerError("its answer is compressed, which was not asked for")
    content = bytearray()
    async for chunk in answer.aiter_raw():
        content += chunk
        if len(content) > limit:
            raise AnswerError("its answer is too long")
    return bytes(content)
