"""Run the work of a verb with a client that is closed afterwards."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import click

from quarterdeck.cli.errors import FailedError, NoServiceError, UsageError
from quarterdeck.cli.options import Common
from quarterdeck.cli.output import print_json, print_message, safe_line
from quarterdeck.cli.target import Target, find_target
from quarterdeck.wire.inside import (
    CA_VARIABLE,
    SECRET_VARIABLE,
    URL_VARIABLE,
    WORKSPACE_VARIABLE,
)

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.account import AccessToken, DeviceCode


Result = TypeVar("Result")


def with_client(common: Common, work: Callable[["Client"], Awaitable[Result]]) -> Result:
    """Open a client of the selected service, await the work, and close it.

    Raises:
        NoServiceError: the embedded service was never started here, or does not answer.
        ClientError: raised by the work.
    """
    return run_with(find_target(common.profile), work)


def run_with(target: Target, work: Callable[["Client"], Awaitable[Result]]) -> Result:
    """Run the work with a client of a target, as `with_client` does."""

    async def run() -> Result:
        async with opened_client(target) as client:
            return await work(client)

    return asyncio.run(run())


@asynccontextmanager
async def opened_client(target: Target) -> "AsyncGenerator[Client]":
    """Open a client of a target for the block.

    Raises:
        NoServiceError: the embedded service was never started here, or does not answer.
        ClientError: raised by the block.
    """
    if target.embedded and not (target.home.socket.exists() and target.current_key() is not None):
        raise _not_running(target)
    from quarterdeck.client.errors import NotConnectedError

    try:
        async with target.client() as client:
            yield client
    except NotConnectedError as e:
        if not target.embedded:
            raise
        raise _not_running(target) from e


def _not_running(target: Target) -> NoServiceError:
    return NoServiceError(
        f"No service runs for {target.home.root}.",
        "Start it with: qd serve (or qd, which opens the cockpit and starts it too).",
    )


async def fresh_token(client: "Client") -> "AccessToken":
    """Return a new user token; print how to approve it if that is required."""
    return await client.auth.login(_print_device_code)


def run_with_token(target: Target, work: Callable[["Client"], Awaitable[Result]]) -> Result:
    """Run the work as `run_with` does, with a new user token instead of the key."""

    async def run(client: "Client") -> Result:
        token = await fresh_token(client)
        async with target._replace(key=token.access_token).client() as own:
            return await work(own)

    return run_with(target, run)


def _print_device_code(device: "DeviceCode") -> None:
    print_message(f"The code of this device is {device.user_code}.")
    print_message("On the service's machine, as the user who runs it, approve with:")
    print_message(f"    qd auth approve {device.user_code}")
    print_message(f"Waiting, {device.expires_in // 60} minutes at most.")


_RETRY_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds between tries while no service answers, which may be restarting."""
_UNIX = "unix:"


def with_inside_client(work: Callable[["Client"], Awaitable[Result]]) -> Result:
    """Open a client of the service for this workspace, await the work, and close it.

    The work is repeated while nothing listens: then no request was carried out.

    Raises:
        UsageError: this is not a workspace.
        ClientError: raised by the last try.
    """

    async def run() -> Result:
        from quarterdeck.client.errors import NotConnectedError

        for pause in _RETRY_DELAYS:
            try:
                return await _run_inside(work)
            except NotConnectedError:
                await asyncio.sleep(pause)
        return await _run_inside(work)

    return asyncio.run(run())


async def _run_inside(work: Callable[["Client"], Awaitable[Result]]) -> Result:
    async with inside_client() as client:
        return await work(client)


def inside_client() -> "Client":
    """Return a client of the service for this workspace. The caller closes it.

    Raises:
        UsageError: this is not a workspace.
    """
    from quarterdeck.client import LOCAL_URL, Client, HttpConnection

    address, workspace, secret = _own_workspace()
    socket = Path(address.removeprefix(_UNIX)) if address.startswith(_UNIX) else None
    url = LOCAL_URL if socket else address
    pinned = os.environ.get(CA_VARIABLE)
    ca = Path(pinned) if pinned else None
    return Client(HttpConnection(url, secret, socket=socket, ca=ca, workspace=workspace))


def _own_workspace() -> tuple[str, UUID, str]:
    names = (URL_VARIABLE, WORKSPACE_VARIABLE, SECRET_VARIABLE)
    address, workspace, secret = (os.environ.get(name, "") for name in names)
    try:
        workspace_id = UUID(workspace)
    except ValueError:
        workspace_id = None
    if not address or not secret or workspace_id is None:
        raise UsageError(
            "This verb is for programs inside a replica.",
            f"There {', '.join(names)} are set; use the replica's shell or agent.",
        )
    return address, workspace_id, secret


def remove_all(
    common: Common,
    find: "Callable[[Client], Awaitable[dict[UUID, str]]]",
    remove: "Callable[[Client, UUID], Awaitable[object]]",
    *,
    with_what: str,
    ask: bool,
) -> None:
    """Remove what `find` returns, or nothing when one of them is not found.

    Args:
        with_what: what is removed with them, for the question.
        ask: whether to ask for confirmation.

    Raises:
        UsageError: stdin is not a terminal, so nobody can confirm.
        click.Abort: the person refused.
        FailedError: the removal of some was refused.
    """
    names = with_client(common, find)
    if ask:
        _confirm(list(names.values()), with_what)

    async def run(client: "Client") -> None:
        async def act(id: UUID, name: str) -> None:
            await remove(client, id)
            print_message(f"Deleted {name}.")

        await for_each(names, act)

    with_client(common, run)
    if common.json:
        print_json({"success": True, "deleted": [str(id) for id in names]})


async def for_each(
    names: Mapping[UUID, str], act: Callable[[UUID, str], Awaitable[object]]
) -> None:
    """Call `act` with the id and the name of each; a refusal does not stop the others.

    Raises:
        ResponseError, FailedError: raised by `act` for the only one.
        FailedError: some of several were refused; each was reported.
    """
    from quarterdeck.client.errors import ResponseError

    refused = 0
    for id, name in names.items():
        try:
            await act(id, name)
        except (ResponseError, FailedError) as e:
            if len(names) == 1:
                raise
            refused += 1
            print_message(f"{name}: {e.message}")
    if refused:
        raise FailedError(f"{refused} of {len(names)} failed.")


def _confirm(names: list[str], with_what: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("Confirmation needed: stdin is not a terminal.", "Pass --yes.")
    listed = safe_line(", ".join(names))
    click.confirm(f"Delete {listed} with all {with_what}?", abort=True, err=True)
