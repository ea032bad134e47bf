"""`qd replica sleep`, `archive`, `wake`, `forget` and `rm`."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.clients import for_each, remove_all, with_client
from quarterdeck.cli.errors import UsageError
from quarterdeck.cli.lookup import find_replicas, with_replica
from quarterdeck.cli.options import Common, common_options, replica_argument, replicas_argument
from quarterdeck.cli.output import print_json, print_message, print_success, safe_line
from quarterdeck.cli.replica.events import wait_until_active
from quarterdeck.cli.replica.git import print_unsaved_work

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="sleep")
@replicas_argument
@common_options
def sleep(common: Common, replicas: tuple[str, ...]) -> None:
    """Stop the engine, its agents and terminals; keep the files. A message wakes a replica."""
    _stop(common, replicas, lambda client, id: client.replicas.sleep(id), "asleep")


@click.command(name="archive")
@replicas_argument
@common_options
def archive(common: Common, replicas: tuple[str, ...]) -> None:
    """Stop the engine and compress the files; the history stays. A message restores everything.

    Work that was never pushed is listed; it stays in the archive.
    """
    _stop(
        common,
        replicas,
        lambda client, id: client.replicas.archive(id),
        "archived",
        print_unsaved_work,
    )


def _stop(
    common: Common,
    replicas: Sequence[str],
    stop: "Callable[[Client, UUID], Awaitable[object]]",
    stopped: str,
    before: "Callable[[Client, UUID, str], Awaitable[None]] | None" = None,
) -> None:
    async def work(client: "Client") -> list[UUID]:
        found = await find_replicas(client, replicas)

        async def act(id: UUID, name: str) -> None:
            if before is not None:
                await before(client, id, name)
            await stop(client, id)
            print_message(f"{name} is {stopped}.")

        await for_each(found, act)
        return list(found)

    done = with_client(common, work)
    if common.json:
        print_json({"success": True, "replicas": [str(id) for id in done]})


@click.command(name="wake")
@click.option("--wait", is_flag=True, help="Wait until active, or failed (exit code 1).")
@replicas_argument
@common_options
def wake(common: Common, replicas: tuple[str, ...], wait: bool) -> None:
    """Wake sleeping replicas and retry failed ones.

    With --json each replica is a line.
    """

    def tell(id: UUID, status: str, sentence: str) -> None:
        if common.json:
            print_json({"id": str(id), "status": status})
        print_message(sentence)

    async def work(client: "Client") -> None:
        found = await find_replicas(client, replicas)
        waking: dict[UUID, str] = {}

        async def wake(id: UUID, name: str) -> None:
            answer = await client.replicas.wake(id)
            waking[id] = name
            if not wait:
                tell(id, answer.status, f"Waking {name}.")

        async def until_awake(id: UUID, name: str) -> None:
            detail = await wait_until_active(client, id)
            tell(id, detail.status, f"{name} is active.")

        try:
            await for_each(found, wake)
        finally:
            if wait:
                await for_each(waking, until_awake)

    with_client(common, work)


@click.command(name="forget")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@replica_argument
@common_options
def forget(common: Common, replica: str, yes: bool) -> None:
    """Remove the record of a replica whose service will not come back, and free its name.

    Use rm while that service answers. Should it come back, it deletes the files.
    """
    if not yes:
        _confirm(replica)
    with_replica(common, replica, lambda client, id: client.replicas.forget(id))
    print_success(f"Forgot {replica}.", common.json)


def _confirm(replica: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("Forgetting asks first, and stdin is not a terminal.", "Add --yes.")
    question = f"Forget {safe_line(replica)}, with its history?"
    click.confirm(question, abort=True, err=True)


@click.command(name="rm")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@replicas_argument
@common_options
def rm(common: Common, replicas: tuple[str, ...], yes: bool) -> None:
    """Delete replicas with their files. Work that was not pushed is lost."""

    async def find(client: "Client") -> dict[UUID, str]:
        found = await find_replicas(client, replicas)
        if not yes:
            for id, name in found.items():
                await print_unsaved_work(client, id, name)
        return found

    remove_all(
        common,
        find,
        lambda client, id: client.replicas.delete(id),
        with_what="files",
        ask=not yes,
    )
