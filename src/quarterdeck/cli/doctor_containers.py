"""`qd doctor` for replicas in containers."""

import asyncio
from collections.abc import AsyncGenerator
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

from quarterdeck import __version__
from quarterdeck.cli.background import answers
from quarterdeck.cli.containers import kubernetes, opened_docker, sandboxes_table
from quarterdeck.cli.errors import ConfigError, FailedError
from quarterdeck.cli.findings import Finding, bounds, existing_home, fail, ok, warn
from quarterdeck.cli.target import Target
from quarterdeck.cli.way_home import check_home_url, check_way_home

if TYPE_CHECKING:
    from quarterdeck.cli.schema import SandboxesTable
    from quarterdeck.client import Client


async def check_containers(target: Target) -> AsyncGenerator[Finding]:
    """Check what replicas in containers need, by a trial replica; nothing where none are chosen."""
    try:
        table = sandboxes_table()
        if table is None or not target.embedded:
            return
        check = _check_kubernetes if table.driver == "kubernetes" else _check_docker
        async for finding in check(target, table):
            yield finding
    except (ConfigError, FailedError) as e:
        yield fail("sandboxes", e.message, e.next_step)


async def _check_docker(target: Target, table: "SandboxesTable") -> AsyncGenerator[Finding]:
    from quarterdeck.sandboxes.errors import ProcessError, SandboxError
    from quarterdeck.sandboxes.image import check_version

    check_home_url(table)
    with existing_home(target.home) as place:
        try:
            async with opened_docker(place, table) as containers:
                yield ok("docker", await containers.summary())
                isolation = await containers.isolation()
                for finding in bounds(isolation, "container sizes", "container gap"):
                    yield finding
                check_way_home(containers, table)
                _, version = await containers.image()
                check_version(containers.image_name, version)
                if version != __version__:
                    step = "Make it again with: qd image build."
                    yield warn("image", f"its engine is {version}, this is {__version__}", step)
                else:
                    yield ok("image", f"engine {version}")
                await containers.in_image(("git", "--version"))
                for gap in (await containers.isolation()).gaps:
                    if gap not in isolation.gaps:  # found by the container
                        yield warn("container gap", gap.message, gap.next_step)
        except SandboxError as e:
            yield fail("docker", str(e), e.details)
            return
        except ProcessError as e:
            yield fail("image", f"no command can be run in it: {e}", "Run: qd image build.")
            return
    yield await _trial(target)


async def _check_kubernetes(target: Target, table: "SandboxesTable") -> AsyncGenerator[Finding]:
    from quarterdeck.sandboxes.errors import ProcessError, SandboxError
    from quarterdeck.sandboxes.image import check_version

    check_home_url(table)
    with existing_home(target.home) as place:
        containers = kubernetes(place, table)
        try:
            await containers.open()
            namespace = table.kubernetes.namespace
            yield ok("kubernetes", f"{containers.version}, namespace {namespace}")
            ask = "import quarterdeck; print(quarterdeck.__version__)"
            output = await containers.in_image(("/opt/quarterdeck/bin/python", "-I", "-c", ask))
            check_version(table.image or "", version := output.decode().strip())
            yield ok("image", f"engine {version}")
        except SandboxError as e:
            yield fail("kubernetes", str(e), e.details)
            return
        except ProcessError as e:
            yield fail("image", f"no command can be run in it: {e}", "Run: qd image build.")
            return
        finally:
            await containers.close()
    yield await _trial(target)


TRIAL_SECONDS = 120.0
_TRIAL_STEP = 0.2


class _TrialError(Exception):
    """The trial replica failed; the text says why."""


async def _trial(target: Target) -> Finding:
    """Create a replica, run a command in it, and delete it."""
    from quarterdeck.client.errors import ClientError

    if target.current_key() is None or not await answers(target.home):
        return warn("trial replica", "not made: the service does not run", "Start it: qd serve.")
    start = perf_counter()
    try:
        async with target.client() as client, asyncio.timeout(TRIAL_SECONDS):
            await _try_replica(client)
    except _TrialError as e:
        return fail("trial replica", str(e))
    except ClientError as e:
        return fail("trial replica", e.message, e.next_step)
    except TimeoutError:
        return fail("trial replica", "it did not become active in time", f"See {target.home.log}.")
    return ok("trial replica", f"created, used and deleted in {perf_counter() - start:.1f} s")


async def _try_replica(client: "Client") -> None:
    from quarterdeck.wire.replicas import CreateReplica, WorkspaceStatus

    environment = await client.environments.get("global")
    made = await client.replicas.create(
        CreateReplica(name=f"doctor-{uuid4().hex[:8]}", environment_id=environment.id)
    )
    try:
        while (found := await client.replicas.get(made.id)).status != WorkspaceStatus.ACTIVE:
            if found.status == WorkspaceStatus.ERROR:
                raise _TrialError(found.error or "It failed.")
            await asyncio.sleep(_TRIAL_STEP)
        await client.exec.run(made.id, "true")
    finally:
        await client.replicas.delete(made.id)
