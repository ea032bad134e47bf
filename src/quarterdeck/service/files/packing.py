"""The stored form of an index: zlib of JSON (see `wire.engine.IndexedFiles`)."""

import json
import zlib
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from quarterdeck.wire.files import INDEX_LIMIT, FileStatus

LARGEST = 256 << 20
"""Bytes of JSON that are read at most: an engine may say anything."""

PackedRepository = tuple[str, list[str], str]
_Packed = TypeAdapter(
    Annotated[list[tuple[str, Annotated[list[str], Field(max_length=INDEX_LIMIT)], str]], ...]
)

STATUS_OF = {
    "u": FileStatus.UNCHANGED,
    "c": FileStatus.CHANGED,
    "n": FileStatus.UNTRACKED,
}


class BadIndexError(Exception):
    """What an engine sent is no index."""


def pack(repositories: Sequence[PackedRepository]) -> bytes:
    """The stored form."""
    text = json.dumps(repositories, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode(), 1)


def unpack(packed: bytes) -> list[PackedRepository]:
    """The repositories of a stored form.

    Raises:
        BadIndexError: it is none.
    """
    try:
        stream = zlib.decompressobj()
        text = stream.decompress(packed, LARGEST)
        if not stream.eof:
            raise BadIndexError("The index is cut short, or too long.")
        found = _Packed.validate_json(text)
    except (zlib.error, ValidationError) as e:
        raise BadIndexError("The index has no known form.") from e
    if any(len(paths) != len(statuses) for _, paths, statuses in found):
        raise BadIndexError("The index has another number of states than of files.")
    return found
