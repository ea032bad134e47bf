"""Runs git in the person's repository.

What a replica sent may be made to use up the machine: a patch of 2 MB can hold files of gigabytes. So
a `bounded` git has limits of memory, of processor time and of output.
"""

import asyncio
import codecs
import sys
from collections.abc import AsyncIterable, Mapping, Sequence
from contextlib import suppress
from os import devnull
from pathlib import Path
from signal import SIGXCPU

from quarterdeck.local.processes import end_process

GIT_MEMORY = 2 << 30
"""Most bytes of memory for git, and for each of its child processes."""
GIT_SECONDS = 900
"""Most seconds of processor time for each of them."""
OUTPUT_BYTES = 256 << 20
"""Most bytes of git's output, which is held in memory."""
ERROR_BYTES = 1 << 20
"""Most bytes of git's messages."""
PATCH_BYTES = 256 << 20
"""Most bytes of a patch to apply; it is held in memory."""
CHUNK = 1 << 16
_QUIET = (
    *("-c", f"core.hooksPath={devnull}", "-c", "advice.detachedHead=false"),
    # Names that some file systems take for `.git`, such as Linux's own where they fold case.
    *("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"),
    # Programs that an untrusted checkout configures.
    *("-c", "core.fsmonitor=false", "-c", "core.alternateRefsCommand=true"),
    # A replica can name another submodule as its own, and files of submodules cannot be put back.
    *("-c", "submodule.recurse=false"),
)
_NO_MEMORY = ("out of memory", "cannot allocate memory")
_NO_TIME = f"died of signal {SIGXCPU.value}"
_NOT_STARTED, _NOT_FOUND = 126, 127
"""Statuses of a shell that cannot start a program."""
_STEP = "Ask the replica's agent which of its files or commits are so large."


class CheckoutError(Exception):
    """git refused; `details` holds its output."""

    def __init__(self, message: str, details: str | None = None) -> None:
        super().__init__(message)
        self.details = details


class NoRepositoryError(CheckoutError):
    """The directory is in no git repository with a work tree."""


async def read_patch(parts: AsyncIterable[bytes]) -> bytes:
    """Return a patch that comes in parts.

    Raises:
        CheckoutError: it is too long.
    """
    patch = bytearray()
    async for part in parts:
        patch += part
        if len(patch) > PATCH_BYTES:
            raise CheckoutError(
                f"The replica's changes are more than {PATCH_BYTES >> 20} MB.",
                "Fetch or merge its branch instead: only commits are brought over then.",
            )
    return bytes(patch)


async def run_git(
    *arguments: str,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    data: bytes = b"",
    allowed: Sequence[int] = (0,),
    printed: bool = False,
    bounded: bool = True,
) -> bytes:
    """Run git and return its output.

    Args:
        data: its standard input.
        allowed: exit statuses that are no error.
        printed: show its messages on standard error, without control sequences.
        bounded: it works on what a replica sent.

    Raises:
        NoRepositoryError: the directory does not exist.
        CheckoutError: git refused, is not installed, or reached a limit.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *(_limits() if bounded else ()),
            *("git", *_QUIET, *arguments),
            cwd=directory,
            env=environment,
            stdin=asyncio.subprocess.PIPE if data else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError as error:
        if not await asyncio.to_thread(directory.is_dir):
            raise NoRepositoryError(f"{directory} does not exist.") from error
        raise CheckoutError("git is not installed.") from error
    except OSError as error:
        raise CheckoutError(f"git could not be started: {error.strerror}.") from error
    except ValueError as error:  # a name of a server that no argument can be
        raise CheckoutError("git cannot be asked this.", str(error)) from error
    try:
        output, errors, _ = await asyncio.gather(
            _read(process.stdout, bounded), _messages(process.stderr, printed), _feed(process, data)
        )
        await process.wait()
    finally:
        await end_process(process)
    if process.returncode not in allowed:
        raise _refusal(errors.decode(errors="replace").strip(), process.returncode, bounded)
    return output


def _limits() -> Sequence[str]:
    """Return a command prefix that limits memory and processor time, where the system can."""
    limits = f"ulimit -S -d {GIT_MEMORY >> 10} 2>/dev/null; ulimit -S -t {GIT_SECONDS} 2>/dev/null"
    return ("/bin/sh", "-c", f'{limits}; exec "$@"', "sh")


def _refusal(message: str, status: int | None, bounded: bool) -> CheckoutError:
    if bounded and any(text in message.lower() for text in _NO_MEMORY):
        text = f"What the replica sent takes too much memory: git may have {GIT_MEMORY >> 20} MB."
        return CheckoutError(text, _STEP)
    if bounded and (status == -SIGXCPU or _NO_TIME in message):
        text = f"What the replica sent takes too long: git may work for {GIT_SECONDS} seconds."
        return CheckoutError(text, _STEP)
    if bounded and status == _NOT_FOUND:
        return CheckoutError("git is not installed.")
    if bounded and status == _NOT_STARTED:
        return CheckoutError(f"git could not be started: {message.rpartition(': ')[2]}.")
    return CheckoutError("git refused this.", message or None)


async def _read(stream: asyncio.StreamReader | None, bounded: bool) -> bytes:
    assert stream is not None
    output = bytearray()
    while chunk := await stream.read(CHUNK):
        output += chunk
        if bounded and len(output) > OUTPUT_BYTES:
            text = f"git printed more than {OUTPUT_BYTES >> 20} MB about what the replica sent."
            raise CheckoutError(text, _STEP)
    return bytes(output)


async def _messages(stream: asyncio.StreamReader | None, printed: bool) -> bytes:
    """Return git's messages, and show them at once where they are to be `printed`.

    Some are the replica's own words, so control characters are replaced.
    """
    assert stream is not None
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    end = bytearray()
    while chunk := await stream.read(CHUNK):
        end += chunk
        del end[:-ERROR_BYTES]
        if printed:
            text = decoder.decode(chunk)
            sys.stderr.write("".join(c if c.isprintable() or c in "\r\n\t" else "?" for c in text))
            sys.stderr.flush()
    return bytes(end)


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    """Write all data, then close; a git that ends early reports why."""
    if process.stdin is None:
        return
    with suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
