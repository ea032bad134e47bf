"""`qd replica fetch`, `apply`, `merge` and `path`: bring work from a replica into a checkout."""

import asyncio
import sys
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from quarterdeck.cli.clients import with_client
from quarterdeck.cli.errors import FailedError, NoServiceError, UsageError
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import print_json, print_message, print_text, safe_line
from quarterdeck.cli.replica.git import find_replica_repository, repository_option
from quarterdeck.cli.target import PROFILE_VARIABLE
from quarterdeck.local.checkout import (
    OWN_PREFIX,
    ConflictingLinesError,
    DivergedError,
    LocalCheckout,
    MergeStrategy,
    OverlapError,
)
from quarterdeck.local.git import CheckoutError, NoRepositoryError, read_patch
from quarterdeck.wire.git import Against, GitState

if TYPE_CHECKING:
    from quarterdeck.client import Client

Result = TypeVar("Result")


@click.command(name="fetch")
@click.option("--force", is_flag=True, help="Overwrite the local branch even if it has diverged.")
@repository_option
@replica_argument
@common_options
def fetch(common: Common, replica: str, repository: str | None, force: bool) -> None:
    """Fetch the replica's branch into the current repository.

    The branch keeps its name, qd/NAME. Your checkout is not changed.
    """
    checkout = _local(_checkout(common))
    replica_id, state = with_client(
        common, lambda client: _find_for(checkout, client, replica, repository)
    )
    branch, commit = _local(_fetch(checkout, replica_id, state, force=force))
    left = state.uncommitted.files if state.uncommitted else 0
    if common.json:
        print_json({"branch": branch, "commit": commit, "uncommitted": left})
        return
    print_message(f"Fetched {safe_line(branch)}.")
    _name_uncommitted(left, replica)


@click.command(name="apply")
@click.option(
    "--against",
    type=click.Choice([choice.value for choice in Against]),
    default=Against.BASE.value,
    show_default=True,
    help="All changes, commits only, or uncommitted changes only.",
)
@repository_option
@replica_argument
@common_options
def apply(common: Common, replica: str, repository: str | None, against: str) -> None:
    """Apply the replica's changes to the files of your checkout.

    The changes are neither staged nor committed. Either all of them are applied or none; files that
    you have changed yourself are listed.
    """
    checkout = _local(_checkout(common))

    async def read(client: "Client") -> tuple[str, bytes]:
        replica_id, state = await _find_for(checkout, client, replica, repository)
        name = state.repository
        async with client.git.diff(replica_id, name, against=Against(against)) as parts:
            return f"qd::{replica_id}/{name}", await read_patch(parts)

    with _refusals():
        address, patch = with_client(common, read)
    changed = _local(checkout.apply(patch, address)) if patch else []
    if common.json:
        print_json({"files": changed})
        return
    for name in changed:
        print_text(safe_line(name))
    if changed:
        print_message(f"Applied: {len(changed)} {'file' if len(changed) == 1 else 'files'}.")
    else:
        print_message(
            "Nothing to apply: your checkout already has all changes."
            if patch
            else "The replica has no changes."
        )


@click.command(name="merge")
@click.option("--squash", "strategy", flag_value="squash", help="As a single commit.")
@click.option(
    "--rebase", "strategy", flag_value="rebase", help="Rebase its commits onto your branch."
)
@click.option("-m", "--message", metavar="TEXT", help="Message of the merge commit.")
@repository_option
@replica_argument
@common_options
def merge(
    common: Common,
    replica: str,
    repository: str | None,
    message: str | None,
    strategy: MergeStrategy | None,
) -> None:
    """Fetch the replica's branch and merge it into the branch that you have checked out.

    On a conflict nothing changes and the files are listed. No hooks run.
    """
    from quarterdeck.client.errors import ClientError

    checkout = _local(_checkout(common))
    replica_id, state = with_client(
        common, lambda client: _find_for(checkout, client, replica, repository)
    )
    branch, _ = _local(_fetch(checkout, replica_id, state, force=False))
    text = message or f"Merge {branch}"
    address = f"qd::{replica_id}/{state.repository}"
    commit = _local(checkout.merge(branch, strategy or "merge", text, address))
    left = state.uncommitted.files if state.uncommitted else 0
    if common.json:
        print_json({"branch": branch, "commit": commit, "uncommitted": left})
    else:
        print_message(
            f"Already up to date with {safe_line(branch)}."
            if commit is None
            else f"Merged {safe_line(branch)}: {commit[:10]}."
        )
        _name_uncommitted(left, replica)
    with suppress(ClientError, NoServiceError):  # it is merged anyway
        with_client(common, lambda client: client.git.states(replica_id))  # it reports the merge


@click.command(name="path")
@repository_option
@replica_argument
@common_options
def path(common: Common, replica: str, repository: str | None) -> None:
    """Print the directory of the replica's files on this machine, to open it in an editor.

    The agent works on the same files.
    """
    _, state = with_client(common, lambda client: _find(client, replica, repository))
    if state.path is None:
        raise FailedError("The replica's files are packed.", f"Use: qd replica wake {replica}.")
    if not Path(state.path).is_dir():
        raise FailedError("The files are on the service's machine.", f"Path there: {state.path}.")
    if common.json:
        print_json({"path": state.path})
    else:
        print_text(state.path)


async def _find(client: "Client", replica: str, repository: str | None) -> tuple[UUID, GitState]:
    """Return the replica's id and the state of one of its repositories."""
    replica_id, name = await find_replica_repository(client, replica, repository)
    for state in await client.git.states(replica_id):
        if state.repository == name:
            return replica_id, state
    raise FailedError(f"The replica has no repository {name}.")


async def _find_for(
    checkout: LocalCheckout, client: "Client", replica: str, repository: str | None
) -> tuple[UUID, GitState]:
    """Like `_find`, but warn when the checkout is of another repository."""
    replica_id, state = await _find(client, replica, repository)
    sources = (await client.replicas.get(replica_id)).repositories
    source = next((known.url for known in sources if known.name == state.repository), "")
    if not await checkout.is_clone(source, state.base_commit or state.head):
        print_message(
            f"Warning: {checkout.top} is another repository: neither a clone of"
            f" {safe_line(source)} nor sharing a commit with it."
        )
    return replica_id, state


async def _checkout(common: Common) -> LocalCheckout:
    variables = {PROFILE_VARIABLE: common.profile} if common.profile else {}
    return await LocalCheckout.find(Path.cwd(), variables)


async def _fetch(
    checkout: LocalCheckout, replica_id: UUID, state: GitState, *, force: bool
) -> tuple[str, str]:
    """Fetch the branch; return its local name and its newest commit."""
    if state.branch is None:
        raise FailedError(
            "No branch is checked out in the replica.", "Ask the agent to check one out."
        )
    branch = OWN_PREFIX + state.branch.removeprefix(OWN_PREFIX)
    commit = await checkout.fetch(
        f"qd::{replica_id}/{state.repository}",
        state.branch,
        branch,
        force=force,
        progress=sys.stderr.isatty(),
    )
    return branch, commit


def _name_uncommitted(left: int, replica: str) -> None:
    if left:
        print_message(
            f"{left} uncommitted {'file stays' if left == 1 else 'files stay'} in the replica."
            f" Commit first with: qd replica commit {safe_line(replica)}."
        )


def _local(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work in the person's repository; report refusals as errors of the verb."""
    with _refusals():
        return asyncio.run(work)


@contextmanager
def _refusals() -> Generator[None]:
    try:
        yield
    except NoRepositoryError as error:
        raise UsageError(str(error), "Change to the directory of your repository.") from error
    except DivergedError as error:
        raise FailedError(str(error), "Overwrite it with: qd replica fetch --force.") from error
    except OverlapError as error:
        step = f"Files: {error.details}."
        if isinstance(error, ConflictingLinesError):
            step += " Have its agent merge the base branch: qd replica send."
        raise FailedError(str(error), step) from error
    except CheckoutError as error:
        raise FailedError(str(error), error.details) from error
