"""`qd replica create`."""

import sys
from typing import TYPE_CHECKING, get_args
from uuid import UUID

import click

from quarterdeck.cli.errors import NotDone, UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, say
from quarterdeck.cli.replica.follow import Following, follow_turn, until_active
from quarterdeck.cli.replica.show_events import showing
from quarterdeck.cli.repo.here import repository_here
from quarterdeck.cli.running import run_with
from quarterdeck.cli.target import find_target
from quarterdeck.wire.replicas import (
    AUTO_STOP_LEAST,
    AUTO_STOP_MINUTES,
    AUTO_STOP_MOST,
    LifecyclePolicy,
    ReplicaDetail,
)

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.store.creation import Wish

STDIN = "-"
POLICIES = get_args(LifecyclePolicy)


@click.command(name="create")
@click.option("--repo", metavar="PATH|URL", help="Repository; default: the one you stand in.")
@click.option("--environment", metavar="NAME|ID", help="An environment instead of a repository.")
@click.option("--agent", metavar="AGENT", help="The coding agent; default: the service's choice.")
@click.option("--model", metavar="MODEL", help="Its model; default: the agent's own choice.")
@click.option("--name", help="Default: made from the message or the repository.")
@click.option("-m", "--message", help="The first message; - reads it from stdin.")
@click.option("--plan", is_flag=True, help="Ask for a plan instead of changes.")
@click.option("--policy", type=click.Choice(POLICIES), help="What happens when it is done.")
@click.option(
    "--auto-stop",
    metavar="MINUTES",
    type=click.IntRange(AUTO_STOP_LEAST, AUTO_STOP_MOST),
    help=f"Sleep when nothing goes on for so long; default: {AUTO_STOP_MINUTES}.",
)
@click.option("--webhook", metavar="URL", help="Where the service tells of its life.")
@click.option("--wait", is_flag=True, help="Wait until it is active and the first turn is over.")
@common_options
def command(
    common: Common,
    repo: str | None,
    environment: str | None,
    agent: str | None,
    model: str | None,
    name: str | None,
    message: str | None,
    plan: bool,
    policy: LifecyclePolicy | None,
    auto_stop: int | None,
    webhook: str | None,
    wait: bool,
) -> None:
    """Make a replica: a sandbox in which an agent works on a repository.

    Prints its name. With --wait the exit code is 1 when it fails to start or the first turn is cut
    short; what commands in the turn returned does not count. With --json the first line is the
    record, each event follows as a line.
    """
    from quarterdeck.store.creation import Wish

    if repo and environment:
        raise UsageFault("Give one of --repo and --environment.")
    if name is not None and (not name or any(map(str.isspace, name))):
        raise UsageFault(f"{name!r} is no name: white space is not allowed in it.")
    target = find_target(common.profile)
    wish = Wish(
        repository_url=None if environment else repository_here(repo, target),
        agent=agent,
        model=model,
        name=name,
        message=(sys.stdin.read() if message == STDIN else message) or "",
        plan_mode=plan,
        lifecycle_policy=policy,
        auto_stop_minutes=auto_stop,
        webhook_url=webhook,
    )

    async def work(client: "Client") -> None:
        made = await _create(client, wish, environment)
        _tell(common, made)
        if wait:
            await _wait(client, common, made, bool(wish.message.strip()))

    run_with(target, work)


def _tell(common: Common, made: ReplicaDetail) -> None:
    if common.json:
        put_json({"replica": made})
    else:
        put(made.name)


async def _create(client: "Client", wish: "Wish", environment: str | None) -> ReplicaDetail:
    from dataclasses import replace

    from quarterdeck.store.creation import create

    if environment is not None:
        wish = replace(wish, environment_id=await _environment_id(client, environment))
    taken = [replica.name async for replica in client.replicas.all()]
    return await create(client, wish, taken)


async def _environment_id(client: "Client", wanted: str) -> UUID:
    from quarterdeck.wire.environments import GLOBAL

    if wanted == GLOBAL:
        return (await client.environments.get(GLOBAL)).id
    for known in await client.environments.list(scope="all"):
        if wanted in {known.name, str(known.id)}:
            return known.id
    raise NotDone(f"There is no environment {wanted!r}.")


async def _wait(client: "Client", common: Common, made: ReplicaDetail, has_message: bool) -> None:
    detail = await until_active(client, made.id)
    say(f"{made.name} is active.")
    if not has_message:
        return
    chat = min(detail.chats, key=lambda chat: chat.created_at)
    following = Following(made.id, chat.id, None, made.log_index or 0)
    with showing(common, chat.id) as show:
        await follow_turn(client, following, show)
