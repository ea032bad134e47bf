"""Files of the person's machine that go with a message."""

import base64
from pathlib import Path

from quarterdeck.wire.canvas import CANVAS_LIMIT
from quarterdeck.wire.images import media_type_of
from quarterdeck.wire.messages import Base64Source, Image


class NotReadableError(Exception):
    """A file cannot be taken along; the text says why."""


def home_path(typed: str) -> Path:
    """A path as a person types it: `~` is their home directory, where it is known."""
    try:
        return Path(typed).expanduser()
    except RuntimeError:
        return Path(typed)


def read_file(path: Path) -> bytes:
    """What is in a file.

    Raises:
        NotReadableError: there is none, it is no file, or it is too large.
    """
    try:
        # A pipe or a device would be read for ever.
        if path.exists() and not path.is_file():
            raise NotReadableError("That is no file.")
        if path.stat().st_size > CANVAS_LIMIT:
            raise NotReadableError(f"It is larger than {CANVAS_LIMIT >> 20} MB.")
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NotReadableError(f"It cannot be read: {reason}.") from error
    return content


def image_of(content: bytes) -> Image | None:
    """The content as an image of a message; None when it is no image that messages take."""
    media_type = media_type_of(content)
    if media_type is None:
        return None
    data = base64.b64encode(content).decode()
    return Image(source=Base64Source(type="base64", media_type=media_type, data=data))
