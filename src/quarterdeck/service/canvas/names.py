"""The name of an upload (INTERFACE 6)."""

from collections.abc import Collection, Iterator
from itertools import count
from pathlib import PurePosixPath

from quarterdeck.service.errors import ApiError
from quarterdeck.wire.canvas import CANVAS_NAME_LIMIT
from quarterdeck.wire.errors import ErrorCode


def clean_name(text: str) -> str:
    """The name relative to the canvas, without empty parts and `.`.

    Raises:
        ApiError: INVALID_REQUEST when it is empty, too long, absolute, leads upward or holds
            control characters.
    """
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise _refused("no control characters")
    if text.startswith("/"):
        raise _refused("relative to the canvas, so not absolute")
    parts = [part for part in text.strip().split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _refused("without ..")
    name = "/".join(parts)
    if not name or text.rstrip().endswith("/"):
        raise _refused("not empty")
    if len(_encoded(name)) > CANVAS_NAME_LIMIT:
        raise _refused(f"at most {CANVAS_NAME_LIMIT} bytes")
    return name


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, or with `-2`, `-3`, ... the first that is not taken."""
    return next(candidate for candidate in _candidates(name) if candidate not in taken)


def _candidates(name: str) -> Iterator[str]:
    yield name
    path = PurePosixPath(name)
    for number in count(2):
        ending = f"-{number}{path.suffix}"
        room = CANVAS_NAME_LIMIT - len(name.encode()) + len(path.name.encode()) - len(ending)
        stem = path.stem.encode()[:room].decode(errors="ignore")
        yield str(path.with_name(stem + ending))


def _encoded(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError as e:
        raise _refused("text") from e


def _refused(rule: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST,
        "The canvas cannot hold a file of this name.",
        f"filename: {rule}",
    )
