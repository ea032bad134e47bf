"""Which versions of engines a service works with.

A service takes over engines that an earlier version has started, and images may be older or newer. Raise
`OLDEST` when something is removed that engines since then depended on.
"""

from quarterdeck import __version__

OLDEST = (0, 1, 0)


def is_supported(version: str) -> bool:
    """Return whether the service works with engines of a version: not older, nor of a later release line."""
    try:
        numbers = _numbers(version)
    except ValueError:
        return False
    return numbers >= OLDEST and numbers[:2] <= _numbers(__version__)[:2]


def supported_text() -> str:
    """Return the supported versions, for a person."""
    return f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, _numbers(__version__)[:2]))}.x"


def _numbers(version: str) -> tuple[int, ...]:
    """Return the three numbers that a version starts with."""
    first, second, rest = version.split(".", 2)
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return int(first), int(second), int(digits)
