"""`qd replica create`, `fork`, `sleep`, `archive`, `wake`, `forget` and `rm`."""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args
from uuid import UUID

import click

from quarterdeck.cli.clients import for_each, remove_all, run_with, with_client
from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.lookup import find_environment, find_replicas, with_replica
from quarterdeck.cli.options import (
    Common,
    common_options,
    environment_option,
    replica_argument,
    replicas_argument,
    text_or_stdin,
)
from quarterdeck.cli.output import print_json, print_message, print_success, print_text, safe_line
from quarterdeck.cli.replica.events import TurnFilter, event_printer, follow_turn, wait_until_active
from quarterdeck.cli.replica.git import print_unsaved_work
from quarterdeck.cli.repositories import find_repository_url
from quarterdeck.cli.target import find_target
from quarterdeck.local.repository import (
    CheckoutError,
    CheckoutStart,
    LocalRepository,
    NoRepositoryError,
    TooLargeError,
)
from quarterdeck.wire.replicas import (
    AUTO_STOP_LEAST,
    AUTO_STOP_MINUTES,
    AUTO_STOP_MOST,
    NAME_RULE,
    UNCOMMITTED_LIMIT,
    LifecyclePolicy,
    ReplicaDetail,
    is_replica_name,
)

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.store.creation import CreationRequest
    from quarterdeck.wire.environments import Environment
    from quarterdeck.wire.repositories import Repository


_wait_option = click.option(
    "--wait", is_flag=True, help="Wait until it is active and the first turn is over."
)


@click.command(name="create")
@click.option(
    "--repo", metavar="PATH|URL", help="Repository; default: that of the current directory."
)
@environment_option("An environment instead of a repository.")
@click.option(
    "--base",
    metavar="BRANCH|TAG|SHA",
    help="Start from this; default: the branch that you have checked out.",
)
@click.option("--pr", metavar="NUMBER", type=click.IntRange(1), help="Start from a pull request.")
@click.option(
    "--with-uncommitted",
    is_flag=True,
    help="Include your uncommitted changes and new files; your checkout stays as it is.",
)
@click.option(
    "--agent",
    metavar="AGENT",
    help="The coding agent; default: the first that is ready, else builtin.",
)
@click.option("--model", metavar="MODEL", help="Its model; default: the agent's.")
@click.option("--name", help="Default: from the message or the repository.")
@click.option("-m", "--message", help="First message; - reads it from stdin.")
@click.option("--plan", is_flag=True, help="Plan mode: propose a plan instead of changes.")
@click.option(
    "--policy",
    type=click.Choice(get_args(LifecyclePolicy)),
    help="What happens to the replica when it is done.",
)
@click.option(
    "--auto-stop",
    metavar="MINUTES",
    type=click.IntRange(AUTO_STOP_LEAST, AUTO_STOP_MOST),
    help=f"Sleep after this idle time; default: {AUTO_STOP_MINUTES}.",
)
@click.option("--webhook", metavar="URL", help="Webhook URL for status events.")
@_wait_option
@common_options
def create(
    common: Common,
    repo: str | None,
    environment: str | None,
    base: str | None,
    pr: int | None,
    with_uncommitted: bool,
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
    """Create a replica: a sandbox in which an agent works on a repository.

    It starts from the branch that you have checked out, if you are in a checkout of the repository
    and its source has the branch; else from the default branch.

    Prints its name. With --wait the exit code is 1 when it fails to start or the first turn is cut
    short or fails, as a turn of the built-in agent does when a block fails. With --json the first
    line is the record, each event follows as a line.
    """
    from quarterdeck.store.creation import CreationRequest

    if repo and environment:
        raise UsageError("Give one of --repo and --env.")
    if pr and (base or with_uncommitted):
        raise UsageError("--pr cannot be combined with --base or --with-uncommitted.")
    _check_name(name)
    target = find_target(common.profile)
    wish = CreationRequest(
        repository_url=None if environment else find_repository_url(repo, target),
        agent=agent,
        model=model,
        name=name,
        message=text_or_stdin(message) or "",
        plan_mode=plan,
        lifecycle_policy=policy,
        auto_stop_minutes=auto_stop,
        webhook_url=webhook,
        base=base,
        pull_request=pr,
    )
    here = Path(repo) if repo and Path(repo).is_dir() else Path.cwd()

    async def work(client: "Client") -> None:
        created = await _create(client, wish, environment, here, with_uncommitted)
        if common.json:
            print_json({"replica": created})
        else:
            print_text(safe_line(created.name))
        if not environment and wish.repository_url is None and not created.repositories:
            print_message("It has no repository: there is none here. Give one with --repo.")
        if wait:
            await _wait(client, common, created, bool(wish.message.strip()))

    run_with(target, work)


def _check_name(name: str | None) -> None:
    if name is None:
        return
    if any(map(str.isspace, name)):
        raise UsageError(f"{name!r} is not a valid name: it contains white space.")
    if not is_replica_name(name):
        raise UsageError(f"{name!r} is not a valid name.", f"A name has {NAME_RULE}.")


async def _create(
    client: "Client",
    wish: "CreationRequest",
    environment: str | None,
    here: Path,
    with_uncommitted: bool,
) -> ReplicaDetail:
    from dataclasses import replace

    from quarterdeck.client.errors import InvalidRequestError
    from quarterdeck.store.creation import create

    sources: dict[str, UUID | None] = {}
    if environment is not None:
        known = await find_environment(client, environment)
        wish = replace(wish, environment_id=known.id)
        sources.update(
            {repository.url: repository.id for repository in await _repositories_of(client, known)}
        )
    elif wish.repository_url is not None:
        sources[wish.repository_url] = None
    wish = await _start_from_checkout(wish, sources, here, with_uncommitted)
    taken = [replica.name async for replica in client.replicas.all()]
    try:
        return await create(client, wish, taken)
    except InvalidRequestError as error:
        field, _, reason = (error.details or "").partition(":")
        if field.startswith("config."):  # not a field of the command line
            raise FailedError(str(error), reason.strip() or None) from error
        raise


async def _repositories_of(client: "Client", environment: "Environment") -> "list[Repository]":
    """Return the repositories of an environment's replicas, in order."""
    known = {repository.id: repository for repository in await client.repositories.list()}
    ids = [environment.repository_id] if environment.repository_id else []
    if environment.repository_set_id is not None:
        ids = (await client.repository_sets.get(environment.repository_set_id)).repositories
    return [known[id] for id in ids if id in known]


async def _start_from_checkout(
    wish: "CreationRequest",
    sources: "Mapping[str, UUID | None]",
    here: Path,
    with_uncommitted: bool,
) -> "CreationRequest":
    """Return the wish with the state of the person's checkout.

    Args:
        sources: addresses of the replica's repositories, and their ids where they are needed.
    """
    from dataclasses import replace

    if wish.pull_request is not None or (wish.base is not None and not with_uncommitted):
        return wish
    try:
        checkout = await LocalRepository.find(here)
        starts = [
            (id, start) for url, id in sources.items() if (start := await checkout.start(url))
        ]
        if starts and with_uncommitted:
            wish = await _with_uncommitted(wish, checkout, starts[0][1])
    except NoRepositoryError:
        starts = []
    except CheckoutError as error:
        raise FailedError(str(error), error.details) from error
    if not starts:
        if with_uncommitted:
            raise UsageError(
                "--with-uncommitted: this is not a checkout of the replica's repository.",
                "Open the replica whose branch the repository has.",
            )
        return wish
    repository_id, start = starts[0]
    if wish.base is None and start.unpushed:
        print_message(
            f"{safe_line(start.base)}: {_commits(start.unpushed)} not pushed, and left out."
        )
    return replace(wish, base=wish.base or start.base, repository_id=repository_id)


async def _with_uncommitted(
    wish: "CreationRequest", checkout: LocalRepository, start: CheckoutStart
) -> "CreationRequest":
    from dataclasses import replace

    if start.unpushed:
        raise FailedError(
            f"{safe_line(start.base)}: {_commits(start.unpushed)} not pushed.",
            "Push first: uncommitted changes need the commits they are based on.",
        )
    try:
        snapshot = await checkout.snapshot(UNCOMMITTED_LIMIT)
    except TooLargeError as error:
        raise FailedError(str(error), f"Commit or ignore the largest: {error.details}.") from error
    if snapshot is None:
        print_message("There are no uncommitted changes.")
        return wish
    return replace(wish, uncommitted=snapshot.bundle)


def _commits(number: int) -> str:
    return "1 commit is" if number == 1 else f"{number} commits are"


async def _wait(
    client: "Client",
    common: Common,
    replica: ReplicaDetail,
    has_message: bool,
    forked: bool = False,
) -> None:
    detail = await wait_until_active(client, replica.id)
    print_message(f"{replica.name} is active.")
    if not has_message:
        return
    chat = min(detail.chats, key=lambda chat: chat.created_at)
    following = TurnFilter(replica.id, chat.id, None, replica.log_index or 0, forked)
    with event_printer(common, chat.id) as show:
        await follow_turn(client, following, show)


@click.command(name="fork")
@click.option("--name", help="Default: the name of the original with -fork appended.")
@click.option("-m", "--message", help="First message; - reads it from stdin.")
@_wait_option
@replica_argument
@common_options
def fork(common: Common, replica: str, name: str | None, message: str | None, wait: bool) -> None:
    """Create a replica with the same files, branches and uncommitted changes.

    The newest chat continues there if its agent supports that. Other conversations are written to
    transcript-of-NAME.md next to the repositories. Prints the name. --wait is as with create.
    """
    text = text_or_stdin(message)

    _check_name(name)

    async def work(client: "Client", id: UUID) -> None:
        forked = await client.replicas.fork(id, name, text)
        if common.json:
            print_json({"replica": forked})
        else:
            print_text(safe_line(forked.name))
        if wait:
            await _wait(client, common, forked, bool((text or "").strip()), forked=True)

    with_replica(common, replica, work)


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
        known = await find_replicas(client, replicas)

        async def act(id: UUID, name: str) -> None:
            if before is not None:
                await before(client, id, name)
            await stop(client, id)
            print_message(f"{name} is {stopped}.")

        await for_each(known, act)
        return list(known)

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
        known = await find_replicas(client, replicas)
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
            await for_each(known, wake)
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
        known = await find_replicas(client, replicas)
        if not yes:
            for id, name in known.items():
                await print_unsaved_work(client, id, name)
        return known

    remove_all(
        common,
        find,
        lambda client, id: client.replicas.delete(id),
        with_what="files",
        ask=not yes,
    )
