"""`rm`: finds all, asks once, removes one after the other."""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common
from quarterdeck.cli.output import put_json, safe_line, say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client


def remove_all(
    common: Common,
    find: "Callable[[Client], Awaitable[dict[UUID, str]]]",
    remove: "Callable[[Client, UUID], Awaitable[object]]",
    *,
    with_what: str,
    ask: bool,
) -> None:
    """Removes what `find` names, all of it or, when one is not found, none.

    Args:
        with_what: what goes with them, for the question.
        ask: whether a person is asked first.

    Raises:
        UsageFault: nobody can be asked.
        click.Abort: the person says no.
    """
    found = with_client(common, find)
    if ask:
        _ask(list(found.values()), with_what)

    async def run(client: "Client") -> None:
        for id, name in found.items():
            await remove(client, id)
            say(f"{name} is gone.")

    with_client(common, run)
    if common.json:
        put_json({"success": True, "deleted": [str(id) for id in found]})


def _ask(names: list[str], with_what: str) -> None:
    if not sys.stdin.isatty():
        raise UsageFault("Deleting asks first, and stdin is no terminal.", "Add --yes.")
    what = safe_line(", ".join(names))
    click.confirm(f"Delete {what} with all {with_what}?", abort=True, err=True)
