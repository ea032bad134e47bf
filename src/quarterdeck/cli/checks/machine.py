"""Programs and the sandbox of this machine."""

import asyncio
import platform
import shutil
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from quarterdeck.cli.checks.finding import Finding, fail, ok, warn
from quarterdeck.local.home import Home


async def check_machine(home: Home) -> AsyncGenerator[Finding]:
    """Python, git, bubblewrap, isolation."""
    yield _python()
    yield await _git()
    yield await _bubblewrap()
    async for finding in _isolation(home):
        yield finding


def _python() -> Finding:
    return ok("python", f"{platform.python_version()} at {sys.executable}")


async def _git() -> Finding:
    found = shutil.which("git")
    if found is None:
        return fail("git", "not installed", "Install git: repositories are cloned with it.")
    return ok("git", f"{await first_line(found, '--version')} at {found}")


async def _bubblewrap() -> Finding:
    found = shutil.which("bwrap")
    if found is None:
        return warn(
            "bwrap",
            "not installed: sandboxes are plain processes",
            "Install bubblewrap to keep agents apart from your files.",
        )
    return ok("bwrap", f"{await first_line(found, '--version')} at {found}")


async def _isolation(home: Home) -> AsyncGenerator[Finding]:
    from quarterdeck.sandboxes.port import SandboxError
    from quarterdeck.sandboxes.process import ProcessDriver

    try:
        with _somewhere(home) as place:
            isolation = await ProcessDriver(place).isolation()
    except SandboxError as e:
        yield fail("isolation", str(e), e.details)
        return
    if isolation.mode == "none":
        yield warn("isolation", f"none: {isolation.note or 'no reason was found'}")
    else:
        yield ok("isolation", isolation.mode)
    yield ok("sandbox user", isolation.user)
    for limit in isolation.limits:
        yield ok("limits", limit)


@contextmanager
def _somewhere(home: Home) -> Generator[Home]:
    """The home, or one that is gone again afterwards: a look makes none."""
    if home.root.exists():
        yield home
        return
    with TemporaryDirectory(prefix="qd-doctor-") as directory:
        yield Home(Path(directory))


async def first_line(*command: str) -> str:
    """The first line that a program prints; empty when it cannot be run."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return ""
    output, _ = await process.communicate()
    return output.decode(errors="replace").partition("\n")[0].strip()
