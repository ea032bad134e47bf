"""`qd doctor`: check agents, the installation, source hosts and this machine."""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import asdict
from pathlib import Path

import click

from quarterdeck.cli.agents import local_agents, own_agents
from quarterdeck.cli.background import answers, running_pid
from quarterdeck.cli.errors import ConfigError, FailedError
from quarterdeck.cli.machine import Finding, Level, check_machine, check_terminal, fail, ok, warn
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import last_seen_text, print_json, print_text, safe_line, services_text
from quarterdeck.cli.settings import HOSTS, SECRETS, hosts_settings, read_tables, secret_files
from quarterdeck.cli.target import Target, config_path, find_target
from quarterdeck.local.home import Home
from quarterdeck.local.sockets import ADDRESS_LIMIT
from quarterdeck.wire.agents import Agent


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


FREE_BYTES = 1 << 30
"""Warn below this free space: a clone and its builds soon fill it."""

OTHERS_MAY_PASS = 0o066
"""Mode bits that must be off for a home of root: its sandboxes' user needs to pass through it."""


async def check_installation(target: Target) -> AsyncGenerator[Finding]:
    """Check the home, the service, its socket and its key; or a service elsewhere."""
    if not target.embedded:
        yield await _remote_service(target)
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
    free = shutil.disk_usage(existing).free
    text = f"{free / (1 << 30):.1f} GiB free"
    yield ok("disk", text) if free >= FREE_BYTES else warn("disk", text, "Make room.")


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
    own = next(f"home {one.home_id}" for one in known if one.own)
    away = [one for one in known if not one.alive]
    if not away:
        return ok("services", f"{services_text(known)}; {own} answers")
    named = ", ".join(f"home {one.home_id} ({one.url}, {last_seen_text(one)})" for one in away)
    step = (
        f"Start again, since their replicas cannot be reached: {named}. "
        "Remove replicas of a home that is lost with qd replica forget."
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
