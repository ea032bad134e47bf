"""Bounds of what a container engine or a cluster answers: another party, which may be damaged or hostile."""

from collections.abc import Generator
from contextlib import contextmanager

import aiohttp

from quarterdeck.sandboxes.errors import SandboxError

ANSWER_BYTES = 8 << 20
"""Most bytes of an answer; a list of a thousand containers has about three million."""
REASON_CHARACTERS = 2_000
"""Most characters of what the other side says about a failure."""
_ARCHIVE = "application/x-tar"
_MALFORMED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading an answer raises that lacks a key, has another type, or is not of its format."""


class BoundedResponse(aiohttp.ClientResponse):
    """A response that refuses an archive, and a body of more than `ANSWER_BYTES`."""

    async def read(self) -> bytes:
        """Return the body.

        Raises:
            ValueError: it is refused.
        """
        if self._body is None:
            try:
                if self.content_type == _ARCHIVE:
                    raise ValueError("It is an archive.")  # which the library would open
                self._body = await read_answer(self.content)
            except BaseException:
                self.close()
                raise
        return await super().read()


async def read_answer(content: aiohttp.StreamReader) -> bytes:
    """Return all bytes of a body.

    Raises:
        ValueError: it is longer than `ANSWER_BYTES`.
    """
    body = bytearray()
    async for part in content.iter_any():
        body += part
        if len(body) > ANSWER_BYTES:
            raise ValueError(f"It has more than {ANSWER_BYTES} bytes.")
    return bytes(body)


@contextmanager
def understood(sender: str) -> Generator[None]:
    """Raise a `SandboxError` for what a malformed answer causes within the block.

    Args:
        sender: who answers, as the beginning of a sentence.
    """
    try:
        yield
    except _MALFORMED as e:
        said = f"{type(e).__name__}: {e}"[:REASON_CHARACTERS]
        raise SandboxError(f"{sender} gave an answer that cannot be understood.", said) from e
