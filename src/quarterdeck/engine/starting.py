"""Starting processes: what their variables may take, and how a start that failed is told.

Linux gives the arguments and variables of a process one room together. Variables are each within
their own bound and may still be too large for it together; then nothing at all can be started.
"""

import errno
import os
import resource
from collections.abc import Mapping

from quarterdeck.engine.errors import EngineRefused
from quarterdeck.wire.errors import ErrorCode

_LEAST, _MOST = 128 << 10, 6 << 20
"""Bytes that Linux gives at least and at most; between them it is a quarter of the stack."""
_FOR_ARGUMENTS = 16 << 10
"""Bytes of it that are left to arguments."""
_EACH = 10
"""Bytes that a variable takes beyond its name and value: a sign between, an end and a pointer."""

_ADVICE = (
    "Take some away, or put what is large into files of the environment, then start the "
    "workspace again."
)


def too_large(environment: Mapping[str, str]) -> str | None:
    """Says so when no process can be started with these variables, and what to do."""
    size = sum(
        len(os.fsencode(key)) + len(os.fsencode(value)) + _EACH
        for key, value in environment.items()
    )
    room = _room() - _FOR_ARGUMENTS
    if size <= room:
        return None
    return (
        f"The environment's variables are together too large for a process: {size:,} bytes, "
        f"where at most {room:,} fit. {_ADVICE}"
    )


def not_started(sentence: str, error: Exception) -> EngineRefused:
    """The refusal of a call whose process could not be started."""
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        reason = "The environment's variables are together too large for a process."
        return EngineRefused(ErrorCode.CONFLICT, f"{sentence} {reason} {_ADVICE}", str(error))
    return EngineRefused(ErrorCode.INTERNAL_ERROR, sentence, str(error))


def _room() -> int:
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _MOST if stack == resource.RLIM_INFINITY else min(max(stack // 4, _LEAST), _MOST)
