"""The home, the embedded service, its socket and its key; or a service elsewhere."""

import os
import shutil
import stat
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

from quarterdeck.cli.background import answers, running_pid
from quarterdeck.cli.checks.finding import Finding, fail, ok, warn
from quarterdeck.cli.checks.source_hosts import check_hosts
from quarterdeck.cli.target import Target
from quarterdeck.cli.words import services_text
from quarterdeck.local.home import Home
from quarterdeck.local.sockets import ADDRESS_LIMIT

FREE_BYTES = 1 << 30
"""Less free space than this is worth a word: a clone and its builds fill it soon."""

OTHERS = 0o077
OTHERS_MAY_PASS = 0o066
"""What must be off for a home that root owns: its sandboxes' user passes through it."""


async def check_installation(target: Target) -> AsyncGenerator[Finding]:
    """What is needed to reach the service that is meant."""
    if not target.embedded:
        yield await _elsewhere(target)
        return
    for finding in check_home(target.home):
        yield finding
    yield await _service(target.home)
    if (others := await _services(target)) is not None:
        yield others
    yield _socket(target.home)
    yield _key(target.home)
    for finding in check_hosts():
        yield finding


def check_home(home: Home) -> Generator[Finding]:
    """Whether the home can be used and is private."""
    root = home.root
    existing = next(path for path in (root, *root.parents) if path.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        yield fail("home", f"{existing} is not writable", "Set QUARTERDECK_HOME elsewhere.")
        return
    if existing != root:
        yield ok("home", f"{root} (made at the first start)")
    else:
        yield _privacy(root)
    free = shutil.disk_usage(existing).free
    text = f"{free / (1 << 30):.1f} GiB free"
    yield ok("disk", text) if free >= FREE_BYTES else warn("disk", text, "Make room.")


def _privacy(root: Path) -> Finding:
    found = root.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        return fail("home", f"{root} belongs to another user", "Set QUARTERDECK_HOME elsewhere.")
    if mode & (OTHERS_MAY_PASS if found.st_uid == 0 else OTHERS):
        step = f"Run: chmod 700 {root} (the service does it when it starts)."
        return warn("home", f"{root} is open to others (mode {mode:o})", step)
    return ok("home", f"{root} (mode {mode:o})")


async def _service(home: Home) -> Finding:
    pid = running_pid(home)
    if await answers(home):
        return ok("service", f"answers (process {pid})" if pid else "answers")
    if pid is not None:
        step = f"Look at {home.log}; qd stop ends it."
        return fail("service", f"process {pid} runs and does not answer", step)
    return ok("service", "does not run; qd or qd serve starts it")


async def _services(target: Target) -> Finding | None:
    """Whether services that share the database are there; None when nobody can be asked."""
    from quarterdeck.client.errors import ClientError

    if target.current_key() is None or not await answers(target.home):
        return None
    try:
        async with target.client() as client:
            known = await client.services.list()
    except ClientError:
        return None  # who answers but not this says so above
    own = next(f"home {one.home_id}" for one in known if one.own)
    away = [one for one in known if not one.alive]
    if not away:
        return ok("services", f"{services_text(known)}; {own} answers")
    step = "Start them again; replicas of theirs cannot be reached meanwhile: " + ", ".join(
        f"home {one.home_id} ({one.url})" for one in away
    )
    return warn("services", f"{services_text(known)}; {own} answers", step)


def _socket(home: Home) -> Finding:
    path = home.socket
    note = "; longer than a socket address, which is allowed for"
    text = f"{path}{note if len(os.fsencode(path)) > ADDRESS_LIMIT else ''}"
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return ok("socket", f"{text} (not there now)")
    if mode & OTHERS:
        return warn("socket", f"{text} is open to others (mode {mode:o})", "Restart the service.")
    return ok("socket", f"{text} (mode {mode:o})")


def _key(home: Home) -> Finding:
    try:
        mode = stat.S_IMODE(home.key.stat().st_mode)
    except OSError:
        return ok("key", "none yet; made at the first start")
    if mode & OTHERS:
        return fail("key", f"readable by others (mode {mode:o})", f"Run: chmod 600 {home.key}")
    if not os.access(home.key, os.R_OK):
        return fail("key", f"{home.key} cannot be read", "Run qd as the user who owns the home.")
    return ok("key", f"{home.key} (mode {mode:o})")


async def _elsewhere(target: Target) -> Finding:
    from quarterdeck.client.errors import ClientError

    try:
        async with target.client() as client:
            health = await client.health.get()
            await client.replicas.list(limit=1)
    except ClientError as e:
        return fail("service", f"{target.endpoint}: {e.message}", e.next_step)
    return ok("service", f"{target.endpoint} answers (version {health.version}), key accepted")
