"""From what a person typed to the automation or run that is meant."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import AmbiguousName, NotDone

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.automations import Automation, Execution

SHOWN = 5
"""Candidates of an ambiguous prefix that are named."""
PAGE = 100

automation_argument = click.argument("automation", metavar="AUTOMATION")
automations_argument = click.argument(
    "automations", metavar="AUTOMATION...", nargs=-1, required=True
)


async def find_automation(client: "Client", wanted: str) -> "Automation":
    """The automation with this name, this id, or the only one with this prefix.

    Raises:
        NotDone: there is none.
        AmbiguousName: a name or a prefix of several.
    """
    id = _uuid(wanted)
    if id is not None:
        return await client.automations.get(id)
    known = [one async for one in client.automations.all()]
    named = [one for one in known if one.name == wanted]
    return _only(wanted, named or [one for one in known if _begins(one, wanted)])


def _uuid(wanted: str) -> UUID | None:
    try:
        return UUID(wanted)
    except ValueError:
        return None


def _begins(one: "Automation", wanted: str) -> bool:
    return one.name.startswith(wanted) or str(one.id).startswith(wanted.lower())


def _only(wanted: str, found: "list[Automation]") -> "Automation":
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotDone(f"There is no automation {wanted!r}.", "See them with: qd automation ls.")
    names = ", ".join(f"{one.name} ({str(one.id)[:8]})" for one in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    raise AmbiguousName(f"{wanted!r} fits {names}{more}.", "Give the whole name, or the id.")


async def find_run(client: "Client", automation: "Automation", wanted: str) -> UUID:
    """The id of the automation's run with this id or prefix of one, among the newest.

    Raises:
        NotDone: there is none.
        AmbiguousName: a prefix of several.
    """
    id = _uuid(wanted)
    if id is not None:
        return id
    newest = await _newest(client, automation)
    found = [one.id for one in newest if str(one.id).startswith(wanted.lower())]
    if len(found) > 1:
        raise AmbiguousName(f"{wanted!r} fits {len(found)} runs.", "Give the whole id.")
    if not found:
        raise NotDone(f"There is no run {wanted!r}.", "See them with: qd automation runs.")
    return found[0]


async def newest_failed(client: "Client", automation: "Automation") -> UUID:
    """The id of the newest run that failed.

    Raises:
        NotDone: none did.
    """
    from quarterdeck.wire.automations import ExecutionStatus

    for one in await _newest(client, automation):
        if one.status == ExecutionStatus.FAILED:
            return one.id
    raise NotDone(f"No run of {automation.name} has failed.")


async def _newest(client: "Client", automation: "Automation") -> "list[Execution]":
    return (await client.automations.executions(automation.id, limit=PAGE)).executions
