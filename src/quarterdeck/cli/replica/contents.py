"""A file that a service sent: printed when it is text, or written to disk as it is."""

import base64
from pathlib import Path

from quarterdeck.cli.errors import NotDone
from quarterdeck.cli.output import put, say


def data_of(content: str | None, encoded: str | None) -> bytes:
    """The bytes of an answer that holds text or base64."""
    return content.encode() if content is not None else base64.b64decode(encoded or "")


def hand_out(content: str | None, encoded: str | None, output: Path | None) -> None:
    """Prints text without control sequences, or writes the bytes to `output`.

    Raises:
        NotDone: it is no text and there is nowhere to write it, or it cannot be written.
    """
    if output is not None:
        data = data_of(content, encoded)
        try:
            output.write_bytes(data)
        except OSError as e:
            raise NotDone(f"{output} cannot be written: {e.strerror or e}.") from e
        say(f"{len(data)} bytes are in {output}.")
    elif content is None:
        raise NotDone("This is no text.", "Write it to disk with: --output FILE.")
    else:
        put(content, end="")
