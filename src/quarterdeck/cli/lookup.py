"""Find resources named on the command line: by name, id, or a prefix of one."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import UUID

import click

from quarterdeck.cli.clients import Result, with_client
from quarterdeck.cli.errors import AmbiguousNameError, FailedError, UsageError
from quarterdeck.cli.options import Common, complete_automation, complete_environment

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.automation_runs import Execution
    from quarterdeck.wire.automations import Automation
    from quarterdeck.wire.chats import Chat
    from quarterdeck.wire.environments import Environment
    from quarterdeck.wire.replicas import Replica, ReplicaDetail


environment_argument = click.argument(
    "environment", metavar="ENVIRONMENT", shell_complete=complete_environment
)


class Named(Protocol):
    """A resource with a name and an id."""

    @property
    def id(self) -> UUID: ...
    @property
    def name(self) -> str: ...


Resource = TypeVar("Resource", bound=Named)


async def find_environment(client: "Client", wanted: str) -> "Environment":
    """Return the environment of a name or id, or the global one.

    Raises:
        FailedError: there is none.
        AmbiguousNameError: a shared and a personal one have the name.
    """
    from quarterdeck.wire.environments import GLOBAL

    if wanted == GLOBAL:
        return await client.environments.get(GLOBAL)
    environments = await client.environments.list(scope="all")
    return _only_named(wanted, environments, "environment", "qd env ls")


def with_environment(
    common: Common, wanted: str, work: "Callable[[Client, UUID], Awaitable[Result]]"
) -> Result:
    """Run the work with a client and the id of an environment."""

    async def run(client: "Client") -> Result:
        return await work(client, (await find_environment(client, wanted)).id)

    return with_client(common, run)


def _only_named(wanted: str, known: Sequence[Resource], kind: str, see: str) -> Resource:
    """Return the only resource with this name or id.

    Raises:
        FailedError: there is none.
        AmbiguousNameError: there are several.
    """
    by_id = [resource for resource in known if str(resource.id) == wanted.lower()]
    matches = by_id or [resource for resource in known if resource.name == wanted]
    if not matches:
        raise FailedError(f"There is no {kind} {wanted!r}.", f"See them with: {see}.")
    if len(matches) > 1:
        ids = ", ".join(str(resource.id) for resource in matches)
        raise AmbiguousNameError(f"{wanted!r} names several: {ids}.", "Give the id.")
    return matches[0]


async def find_repository(client: "Client", wanted: str) -> UUID:
    """Return the id of a connected repository, by its name or id."""
    return _only_named(wanted, await client.repositories.list(), "repository", "qd repo ls").id


async def find_repository_set(client: "Client", wanted: str) -> UUID:
    """Return the id of a set of repositories, by its name or id."""
    known = await client.repository_sets.list()
    return _only_named(wanted, known, "repository set", "qd repo sets ls").id


_SHOWN = 5
"""Number of candidates of an ambiguous prefix in a message."""
_PAGE = 100

automation_argument = click.argument(
    "automation", metavar="AUTOMATION", shell_complete=complete_automation
)
automations_argument = click.argument(
    "automations",
    metavar="AUTOMATION...",
    nargs=-1,
    required=True,
    shell_complete=complete_automation,
)


async def find_automation(client: "Client", wanted: str) -> "Automation":
    """Return the automation with this name, this id, or the only one with this prefix.

    Raises:
        FailedError: there is none.
        AmbiguousNameError: a name or a prefix of several.
    """
    id = _uuid(wanted)
    if id is not None:
        return await client.automations.get(id)
    known = [automation async for automation in client.automations.all()]
    named = [automation for automation in known if automation.name == wanted]
    matches = named or [automation for automation in known if _has_prefix(automation, wanted)]
    step = "Give the whole name, or the id."
    return _only_match(
        wanted,
        matches,
        "automation",
        lambda automation: f"{automation.name} ({str(automation.id)[:8]})",
        step,
    )


def _uuid(wanted: str) -> UUID | None:
    try:
        return UUID(wanted)
    except ValueError:
        return None


def _has_prefix(resource: Named, wanted: str) -> bool:
    by_name = bool(wanted) and resource.name.startswith(wanted)
    return by_name or begins_id(wanted, resource.id)


def begins_id(wanted: str, id: UUID | str) -> bool:
    """Return whether a text is a prefix of an id. An empty text, such as an unset variable of a script, is not."""
    return bool(wanted) and str(id).startswith(wanted.lower())


def _only_match(
    wanted: str, matches: Sequence[Resource], kind: str, label: Callable[[Resource], str], step: str
) -> Resource:
    """Return the only resource whose name or id has the typed prefix.

    Args:
        label: returns the name of a candidate of an ambiguous prefix.
        step: next step for an ambiguous prefix.

    Raises:
        FailedError: there is none.
        AmbiguousNameError: there are several.
    """
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise FailedError(f"There is no {kind} {wanted!r}.", f"See them with: qd {kind} ls.")
    names = ", ".join(map(label, matches[:_SHOWN]))
    more = f" and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else ""
    raise AmbiguousNameError(f"{wanted!r} fits {names}{more}.", step)


async def find_run(client: "Client", automation: "Automation", wanted: str) -> UUID:
    """Return the id of the automation's run with this id or prefix of one, among the newest.

    Raises:
        FailedError: there is none.
        AmbiguousNameError: a prefix of several.
    """
    id = _uuid(wanted)
    if id is not None:
        return id
    newest = await _newest_runs(client, automation)
    matches = [run.id for run in newest if begins_id(wanted, run.id)]
    if len(matches) > 1:
        raise AmbiguousNameError(f"{wanted!r} fits {len(matches)} runs.", "Give the whole id.")
    if not matches:
        raise FailedError(f"There is no run {wanted!r}.", "See them with: qd automation runs.")
    return matches[0]


async def find_failed_run(client: "Client", automation: "Automation") -> UUID:
    """Return the id of the newest run that failed.

    Raises:
        FailedError: none did.
    """
    from quarterdeck.wire.automation_runs import ExecutionStatus

    for run in await _newest_runs(client, automation):
        if run.status == ExecutionStatus.FAILED:
            return run.id
    raise FailedError(f"No run of {automation.name} has failed.")


async def _newest_runs(client: "Client", automation: "Automation") -> "list[Execution]":
    return (await client.automations.executions(automation.id, limit=_PAGE)).executions


async def find_replica(client: "Client", wanted: str) -> UUID:
    """Return the id of the replica with this name, this id, or the only one with this prefix.

    Raises:
        FailedError: there is none.
        AmbiguousNameError: a prefix of several.
    """
    id = _uuid(wanted)
    return id if id is not None else (await _find_listed(client, wanted)).id


async def find_replica_record(client: "Client", wanted: str) -> "Replica":
    """Return the replica, as a list shows it, that `find_replica` finds."""
    id = _uuid(wanted)
    return await (_find_listed(client, wanted) if id is None else client.replicas.get(id))


async def _find_listed(client: "Client", wanted: str) -> "Replica":
    known = [replica async for replica in client.replicas.all()]
    for replica in known:
        if replica.name == wanted:
            return replica
    matches = [replica for replica in known if _has_prefix(replica, wanted)]
    return _only_match(
        wanted, matches, "replica", lambda candidate: candidate.name, "Give the whole name."
    )


def with_replica(
    common: Common, wanted: str, work: "Callable[[Client, UUID], Awaitable[Result]]"
) -> Result:
    """Run the work with a client and the id of a replica."""

    async def run(client: "Client") -> Result:
        return await work(client, await find_replica(client, wanted))

    return with_client(common, run)


async def find_replicas(client: "Client", wanted: Sequence[str]) -> dict[UUID, str]:
    """Return the ids of several replicas, each with the name as typed.

    Raises:
        FailedError: one of them does not exist.
        AmbiguousNameError: one is a prefix of several.
    """
    return {await find_replica(client, name): name for name in wanted}


def find_chat(replica: "ReplicaDetail", wanted: str | None) -> "Chat":
    """Return the chat with this id, prefix of an id, or title; the first chat by default.

    Raises:
        FailedError: there is none.
        UsageError: a prefix of several.
    """
    if wanted is None:
        if not replica.chats:
            raise FailedError(f"{replica.name} has no chat.", "Send it a message first.")
        return min(replica.chats, key=lambda chat: chat.created_at)
    exact = [chat for chat in replica.chats if wanted in {str(chat.id), chat.title}]
    prefixed = [chat for chat in replica.chats if begins_id(wanted, chat.id)]
    matches = exact or prefixed
    if not matches:
        raise FailedError(
            f"{replica.name} has no chat {wanted!r}.", "See them with: qd replica show."
        )
    if len(matches) > 1:
        raise UsageError(f"{wanted!r} fits {len(matches)} chats.", "Give the whole id.")
    return matches[0]
