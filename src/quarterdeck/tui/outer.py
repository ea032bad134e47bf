"""The terminal around the cockpit, and the multiplexer that may stand between."""

import asyncio
import fcntl
import struct
import sys
import termios
from collections.abc import Mapping

SECONDS = 2.0
"""For a program that only passes something on."""

ESCAPE = "\x1b"

USUAL_ASPECT = 2.0
"""How many times higher than wide a cell mostly is."""
LEAST_ASPECT, MOST_ASPECT = 1.0, 4.0
"""What terminals say beyond these is wrong."""


def cell_aspect() -> float:
    """How many times higher than wide the terminal says that its cells are; many do not say it."""
    try:
        told = fcntl.ioctl(sys.__stderr__.fileno(), termios.TIOCGWINSZ, bytes(8))  # pyright: ignore[reportOptionalMemberAccess]
    except (OSError, ValueError, AttributeError):
        return USUAL_ASPECT  # no terminal
    return _aspect(*struct.unpack("HHHH", told))


def _aspect(rows: int, columns: int, width: int, height: int) -> float:
    if not (rows and columns and width and height):
        return USUAL_ASPECT
    aspect = (height / rows) / (width / columns)
    return aspect if LEAST_ASPECT <= aspect <= MOST_ASPECT else USUAL_ASPECT


def in_tmux(environment: Mapping[str, str]) -> bool:
    """Whether tmux is what the cockpit draws on."""
    return bool(environment.get("TMUX"))


def is_remote(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is on another machine."""
    return bool(environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"))


def through_tmux(sequence: str) -> str:
    """A sequence for the terminal around tmux, as tmux passes it on when that is allowed."""
    doubled = sequence.replace(ESCAPE, ESCAPE * 2)
    return f"{ESCAPE}Ptmux;{doubled}{ESCAPE}\\"


async def tmux_passes() -> bool:
    """Whether tmux lets sequences through from here."""
    for options in ("-Apqv", "-gqv"):
        found = await ask(["tmux", "show", options, "allow-passthrough"])
        if found:
            return found in ("on", "all")
    return False


async def ask(command: list[str]) -> str | None:
    """What a program prints, None when it cannot be run or fails."""
    return await _run(command, b"", asyncio.subprocess.PIPE)


async def give(command: list[str], typed: bytes) -> bool:
    """Whether a program took what it was given. It may go on in the background, as xclip does."""
    return await _run(command, typed, asyncio.subprocess.DEVNULL) is not None


async def _run(command: list[str], typed: bytes, output: int) -> str | None:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=output,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(SECONDS):
            printed, _ = await process.communicate(typed)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
    return (printed or b"").decode(errors="replace").strip() if process.returncode == 0 else None
