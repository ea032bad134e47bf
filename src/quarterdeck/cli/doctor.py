"""`qd doctor`: check agents, the installation, source hosts, programs, isolation and the terminal."""

import asyncio
import locale
import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import asdict
from pathlib import Path

import click

from quarterdeck.cli.agents import local_agents, own_agents
from quarterdeck.cli.background import answers, running_pid
from quarterdeck.cli.doctor_containers import check_containers
from quarterdeck.cli.errors import ConfigError, FailedError
from quarterdeck.cli.findings import Finding, Level, bounds, existing_home, fail, ok, warn
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import last_seen_text, print_json, print_text, safe_line, services_text
from quarterdeck.cli.settings import HOSTS, SECRETS, hosts_settings, read_tables, secret_files
from quarterdeck.cli.target import Target, config_path, find_target
from quarterdeck.local.home import Home
from quarterdeck.local.sockets import ADDRESS_LIMIT
from quarterdeck.wire.agents import Agent


async def check_machine(home: Home) -> AsyncGenerator[Finding]:
    """Check Python, git, bubblewrap and isolation."""
    yield ok("python", f"{platform.python_version()} at {sys.executable}")
    yield await _git()
    yield await _bubblewrap()
    async for finding in _isolation(home):
        yield finding


async def _git() -> Finding:
    git = shutil.which("git")
    if git is None:
        return fail("git", "not installed", "Install git: repositories are cloned with it.")
    return ok("git", f"{await first_line(git, '--version')} at {git}")


async def _bubblewrap() -> Finding:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return warn(
            "bwrap",
            "not installed: sandboxes are plain processes",
            "Install bubblewrap to keep agents apart from your files.",
        )
    return ok("bwrap", f"{await first_line(bwrap, '--version')} at {bwrap}")


async def _isolation(home: Home) -> AsyncGenerator[Finding]:
    from quarterdeck.sandboxes.errors import SandboxError
    from quarterdeck.sandboxes.process import ProcessDriver
    from quarterdeck.sandboxes.scope import enter_scope

    try:
        with existing_home(home) as place:
            if running_pid(home) is None:
                await enter_scope(place)  # as a service would
            isolation = await ProcessDriver(place, service=running_pid(home)).isolation()
    except SandboxError as e:
        yield fail("isolation", str(e), e.details)
        return
    if isolation.mode == "none":
        yield warn("isolation", f"none: {isolation.note or 'no reason was found'}")
    else:
        yield ok("isolation", isolation.mode)
    yield ok("sandbox user", isolation.user)
    for finding in bounds(isolation, "sizes", "sandbox gap"):
        yield finding
    for limit in isolation.limits:
        yield ok("limits", limit)


async def first_line(*command: str) -> str:
    """Return the first line of a program's output; empty when it cannot be run."""
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


LEAST_COLUMNS, LEAST_ROWS = 80, 24
SLOW_ESCAPE = 50
"""Milliseconds from which waiting for the next byte is noticeable."""


async def check_terminal() -> AsyncGenerator[Finding]:
    """Check TERM, colors, encoding, size, tmux and SSH."""
    for finding in _terminal():
        yield finding
    for finding in _cockpit_settings():
        yield finding
    if os.environ.get("TMUX"):
        async for finding in _tmux():
            yield finding
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        yield ok("ssh", "remote terminal: copies with OSC 52; reduced motion")
    yield await _notices()


def _terminal() -> Generator[Finding]:
    if not sys.stdout.isatty():
        yield warn("terminal", "stdout is not a terminal", "Only the cockpit needs one.")
    yield _term()
    yield _colors()
    yield _encoding()
    yield _size()


def _cockpit_settings() -> Generator[Finding]:
    """Check the cockpit's tables of the configuration file."""
    from quarterdeck.cli.cockpit import read_cockpit_file

    path = config_path()
    options = read_cockpit_file(path)
    faults = options.faults
    for fault in faults:
        yield warn("cockpit", fault, f"Correct {path}; until then the default holds.")
    if options.own_themes is not None:
        from quarterdeck.tui.theme_files import hard_to_read

        for name, theme in options.own_themes.themes.items():
            for sentence in hard_to_read(theme):
                yield warn("theme", f"{name}: {sentence}", "Change one of the two colors.")
    if not faults and path.exists():
        yield ok("cockpit", f"keys and settings of {path}")


def _term() -> Finding:
    term = os.environ.get("TERM", "")
    if term in {"", "dumb", "unknown"}:
        return warn("TERM", term or "not set", "Set TERM, for instance to xterm-256color.")
    return ok("TERM", term)


def _colors() -> Finding:
    if "NO_COLOR" in os.environ:
        return ok("colors", "off: NO_COLOR is set")
    colors = os.environ.get("COLORTERM", "")
    if colors in {"truecolor", "24bit"}:
        return ok("COLORTERM", colors)
    step = "Set COLORTERM=truecolor when the terminal shows 16 million colors."
    return warn("COLORTERM", colors or "not set: 256 colors at most", step)


def _encoding() -> Finding:
    encoding = locale.getpreferredencoding(False)
    if encoding.upper().replace("-", "") == "UTF8":
        return ok("locale", encoding)
    return warn("locale", f"{encoding}, not UTF-8", "Set LANG, for instance to C.UTF-8.")


def _size() -> Finding:
    size = shutil.get_terminal_size()
    text = f"{size.columns}x{size.lines}"
    if size.columns < LEAST_COLUMNS or size.lines < LEAST_ROWS:
        return warn("size", text, f"Make it {LEAST_COLUMNS}x{LEAST_ROWS} or larger.")
    return ok("size", text)


async def _tmux() -> AsyncGenerator[Finding]:
    version = await first_line("tmux", "-V")
    yield ok("tmux", version or "inside tmux")
    every = _can_pass_all(version)
    passes = await first_line("tmux", "show", "-gv", "allow-passthrough")
    if passes not in {"on", "all"}:
        step = f"In ~/.tmux.conf: set -g allow-passthrough {'all' if every else 'on'}"
        yield warn("tmux passthrough", "off: notices only ring the bell", step)
    elif passes == "on" and every:
        step = "For notices from windows that are not shown: set -g allow-passthrough all"
        yield ok("tmux passthrough", f"on, from windows that are shown. {step}")
    if await first_line("tmux", "show", "-sv", "set-clipboard") == "off":
        step = "In ~/.tmux.conf: set -s set-clipboard external"
        yield warn("tmux clipboard", "off: copied text does not reach your terminal", step)
    yield await _escape_time()
    term = os.environ.get("TERM", "")
    if not term.startswith(("tmux", "screen")):
        step = "In ~/.tmux.conf: set -g default-terminal tmux-256color"
        yield warn("tmux TERM", f"{term or 'not set'} inside tmux draws wrongly", step)
    features = await first_line("tmux", "display-message", "-p", "#{client_termfeatures}")
    if features and "RGB" not in features.split(","):
        step = "In ~/.tmux.conf: set -as terminal-features ',*:RGB'; or use the theme ansi."
        yield warn("tmux colors", "tmux sends 256 colors at most to its terminal", step)


def _can_pass_all(version: str) -> bool:
    """Return whether this tmux can pass through output of windows that are not shown.

    Versions before 3.4 reject "all" as a value.
    """
    numbers = re.findall(r"\d+", version)[:2]
    return len(numbers) < 2 or (int(numbers[0]), int(numbers[1])) >= (3, 4)


async def _escape_time() -> Finding:
    milliseconds = await first_line("tmux", "show", "-sv", "escape-time")
    if milliseconds.isdecimal() and int(milliseconds) > SLOW_ESCAPE:
        step = "In ~/.tmux.conf: set -s escape-time 10"
        return warn("tmux escape-time", f"{milliseconds} ms: every esc is delayed by this", step)
    return ok("tmux escape-time", f"{milliseconds or 'unknown'} ms")


async def _notices() -> Finding:
    """Report how notices are shown on this terminal, as far as its variables or tmux tell.

    The cockpit asks the terminal itself, and has the settings.
    """
    from quarterdeck.tui.host_terminal import TerminalIdentity
    from quarterdeck.tui.notices import Messenger

    route = await Messenger(lambda _: None, TerminalIdentity()).route()
    if route.protocol == "bell":
        return ok("notices", "by the bell, unless the terminal tells the cockpit that it does more")
    return ok("notices", f"by OSC {route.protocol}")


async def check_agents(target: Target) -> AsyncGenerator[Finding]:
    """Check each agent of this machine; the service knows which have a key."""
    try:
        own = own_agents()
    except ConfigError as e:
        yield fail("agents", e.message, e.next_step)
        return
    known = await _service_agents(target)
    for here in await asyncio.to_thread(local_agents, target.home, own):
        yield _agent_finding(known.get(here.id, here))


async def _service_agents(target: Target) -> Mapping[str, Agent]:
    """Return the agents of the embedded service by id; empty if it does not answer."""
    from quarterdeck.client.errors import ClientError

    if not target.embedded or target.current_key() is None or not await answers(target.home):
        return {}
    try:
        async with target.client() as client:
            return {agent.id: agent for agent in await client.agents.list()}
    except ClientError:
        return {}  # the check of the service reports the error


def _agent_finding(agent: Agent) -> Finding:
    version = f", version {agent.version}" if agent.version else ""
    if agent.available:
        return ok(f"agent {agent.id}", f"ready{version}")
    if agent.installed:
        return warn(f"agent {agent.id}", f"installed{version}", agent.reason)
    return warn(f"agent {agent.id}", agent.reason or "not available")


OTHERS = 0o077


def check_hosts() -> Generator[Finding]:
    """Check each source host, and each file with a secret that others can read."""
    try:
        tables, settings = read_tables(), hosts_settings()
    except ConfigError as e:
        yield fail("source hosts", e.message, e.next_step)
        return
    for host in HOSTS:
        host_settings = settings.of(host)
        texts = [
            "webhooks are accepted" if host_settings.webhook_secret else "no webhook secret",
            "checks are written" if host_settings.writable else "checks are kept locally only",
        ]
        set_up = host_settings.webhook_secret or host_settings.token or host_settings.api_url
        yield ok(host, "; ".join(texts) if set_up else "not set up")
        for path in secret_files(tables[host]):
            yield from _secret_privacy(host, path)
    if _holds_a_secret():
        yield from _secret_privacy("config", config_path())


def _holds_a_secret() -> bool:
    """Return whether the configuration file itself contains a secret."""
    if not config_path().exists():
        return False
    from quarterdeck.cli.schema import read_config

    config = read_config(config_path())
    tables = (config.host_a.model_dump(), config.host_b.model_dump())
    return any(table[name] for table in tables for name in SECRETS)


def _secret_privacy(name: str, path: Path) -> Generator[Finding]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & OTHERS:
        text = f"{path} holds a secret and is open to others (mode {mode:o})"
        yield warn(name, text, f"Run: chmod 600 {path}")


MOST_FAILED = 5
"""Replicas that are named."""
FREE_BYTES = 1 << 30
"""Warn below this free space: a clone and its builds soon fill it."""
FREE_FILES, FREE_FILES_PART = 262_144, 25
"""Warn below this number of files that can still be made, or this part of the disk's files."""

OTHERS_MAY_PASS = 0o066
"""Mode bits that must be off for a home of root: its sandboxes' user needs to pass through it."""


async def check_installation(target: Target) -> AsyncGenerator[Finding]:
    """Check the home, the service, its socket and its key; or a remote service."""
    if not target.embedded:
        yield await _remote_service(target)
        return
    for finding in check_home(target.home):
        yield finding
    yield await _service(target.home)
    if (others := await _services(target)) is not None:
        yield others
    async for finding in failed_replicas(target):
        yield finding
    yield _socket(target.home)
    yield _key(target.home)
    for finding in check_hosts():
        yield finding


def check_home(home: Home) -> Generator[Finding]:
    """Check that the home can be used and is private."""
    root = home.root
    existing = next(path for path in (root, *root.parents) if path.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        yield fail("home", f"{existing} is not writable", "Set QUARTERDECK_HOME elsewhere.")
        return
    if existing != root:
        yield ok("home", f"{root} (created at the first start)")
    else:
        yield _home_privacy(root)
    disk = os.statvfs(existing)
    free = disk.f_bavail * disk.f_frsize
    text = f"{free / (1 << 30):.1f} GiB free"
    few = disk.f_favail < min(FREE_FILES, disk.f_files // FREE_FILES_PART)
    if few:
        text += f", for {disk.f_favail:,} more files"
    if few or free < FREE_BYTES:
        yield warn("disk", text, "Remove files." if few else "Free some space.")
    else:
        yield ok("disk", text)


def _home_privacy(root: Path) -> Finding:
    status = root.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.geteuid():
        return fail("home", f"{root} belongs to another user", "Set QUARTERDECK_HOME elsewhere.")
    if mode & (OTHERS_MAY_PASS if status.st_uid == 0 else OTHERS):
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
    """Check the services that share the database; None when the service does not answer."""
    from quarterdeck.client.errors import ClientError

    if target.current_key() is None or not await answers(target.home):
        return None
    try:
        async with target.client() as client:
            known = await client.services.list()
    except ClientError:
        return None  # the check of the service reports the error
    own = next(f"home {service.home_id}" for service in known if service.own)
    away = [service for service in known if not service.alive]
    if not away:
        return ok("services", f"{services_text(known)}; {own} answers")
    named = ", ".join(
        f"home {service.home_id} ({service.url}, {last_seen_text(service)})" for service in away
    )
    step = (
        f"Start again, since their replicas cannot be reached: {named}. "
        "Remove replicas of a home that is lost with qd replica forget."
    )
    return warn("services", f"{services_text(known)}; {own} answers", step)


async def failed_replicas(target: Target) -> AsyncGenerator[Finding]:
    """Say why replicas have failed; nothing while the service does not answer."""
    from quarterdeck.client.errors import ClientError
    from quarterdeck.wire.replicas import WorkspaceStatus

    if target.current_key() is None or not await answers(target.home):
        return
    try:
        async with target.client() as client:
            known = [one async for one in client.replicas.all(status=WorkspaceStatus.ERROR)]
            failed = [await client.replicas.get(one.id) for one in known[:MOST_FAILED]]
    except ClientError:
        return  # the check of the service reports the error
    for replica in failed:
        reason = (replica.error or "It failed.").partition("\n")[0]
        yield warn("replica", f"{replica.name}: {reason}", f"qd replica wake {replica.name}")


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
        return ok("key", "none yet; created at the first start")
    if mode & OTHERS:
        return fail("key", f"readable by others (mode {mode:o})", f"Run: chmod 600 {home.key}")
    if not os.access(home.key, os.R_OK):
        return fail("key", f"{home.key} cannot be read", "Run qd as the user who owns the home.")
    return ok("key", f"{home.key} (mode {mode:o})")


async def _remote_service(target: Target) -> Finding:
    from quarterdeck.client.errors import ClientError

    try:
        async with target.client() as client:
            health = await client.health.get()
            await client.replicas.list(limit=1)
    except ClientError as e:
        return fail("service", f"{target.endpoint}: {e.message}", e.next_step)
    return ok("service", f"{target.endpoint} answers (version {health.version}), key accepted")


@click.command(name="doctor")
@common_options
def doctor(common: Common) -> None:
    """Check this machine and suggest fixes. Exit code 1 when something cannot work."""
    target = find_target(common.profile)
    findings = asyncio.run(_run_checks(target, say_each=not common.json))
    failed = [finding.name for finding in findings if finding.level is Level.FAIL]
    if common.json:
        print_json({"ok": not failed, "checks": [asdict(finding) for finding in findings]})
    if failed:
        raise FailedError(f"Fix: {', '.join(failed)}.")


async def _run_checks(target: Target, say_each: bool) -> list[Finding]:
    findings: list[Finding] = []
    subjects = (
        check_machine(target.home),
        check_containers(target),
        check_agents(target),
        check_installation(target),
        check_terminal(),
    )
    for subject in subjects:
        async for finding in subject:
            findings.append(finding)
            if say_each:
                _print_finding(finding)
    return findings


def _print_finding(finding: Finding) -> None:
    print_text(f"{finding.level:<4}  {finding.name:<16}  {safe_line(finding.message)}")
    if finding.next_step:
        print_text(f"{'':24}{safe_line(finding.next_step)}")
