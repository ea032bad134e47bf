"""`qd replica git`, `diff`, `commit`, `update`, `push`, `rewind` and `pr`: git in replicas."""

import shlex
import sys
from collections.abc import AsyncIterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast
from uuid import UUID

import click

from quarterdeck.cli.clients import with_client
from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.lookup import find_replica, find_replica_record, with_replica
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import print_json, print_message, print_text, safe_line
from quarterdeck.store.status import threads_words
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.git import Against, Committed, GitState, Pushed, Updated
from quarterdeck.wire.states import WorkspaceStatus

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.git import MergeMethod, PullRequestDetail


SHOWN_BYTES = 16 << 20
"""Most bytes of a patch that are shown on a terminal."""

repository_option = click.option(
    "--repository",
    metavar="NAME",
    help="Repository; required if the replica has several.",
)


async def find_replica_repository(
    client: "Client", replica: str, repository: str | None
) -> tuple[UUID, str]:
    """Return the replica's id and the name of one of its repositories.

    Raises:
        UsageError: it has none, or several and none was named.
    """
    if repository is not None:
        return await find_replica(client, replica), repository
    record = await find_replica_record(client, replica)
    names = [repository.name for repository in record.repositories]
    if len(names) == 1:
        return record.id, names[0]
    if not names:
        raise UsageError("The replica has no repository.")
    raise UsageError(f"The replica has several repositories: {', '.join(names)}. Use --repository.")


@click.command(name="git")
@replica_argument
@common_options
def git(common: Common, replica: str) -> None:
    """Show the state of a replica's repositories without waking it."""

    async def work(client: "Client", id: UUID) -> tuple[list[GitState], WorkspaceStatus | str]:
        # Read first: once it is not being set up, its repositories are there.
        status = (await client.replicas.get(id)).status
        return await client.git.states(id), status

    states, status = with_replica(common, replica, work)
    if common.json:
        print_json({"repositories": states})
        return
    for state in states:
        _print_state(state)
    if not states:
        print_message(_without_repository(status))


def _without_repository(status: WorkspaceStatus | str) -> str:
    if status == WorkspaceStatus.PREPARING:
        return "The replica is being set up. Try again when it is active."
    return "The replica has no repository."


def _print_state(state: GitState) -> None:
    branch = state.branch or "(no branch)"
    print_text(
        f"{state.repository}  {safe_line(branch)}, from {state.base_branch}{_distance(state)}"
    )
    if state.operation:
        print_text(f"  {state.operation} in progress")
    for path in state.conflicts:
        print_text(f"  conflict    {safe_line(path)}")
    if state.uncommitted and state.uncommitted.files:
        left = state.uncommitted
        files = "1 file" if left.files == 1 else f"{left.files} files"
        print_text(f"  uncommitted {files}, +{left.added} -{left.removed}")
    for commit in state.commits:
        print_text(f"  {commit.sha[:10]}  {safe_line(commit.title)}")


def _distance(state: GitState) -> str:
    if state.ahead is None or state.behind is None:
        return ""
    return f": {state.ahead} ahead, {state.behind} behind"


@click.command(name="diff")
@click.option(
    "--against",
    type=click.Choice([choice.value for choice in Against]),
    default=Against.BASE.value,
    show_default=True,
    help="All changes since the base branch, commits only, or uncommitted changes only.",
)
@click.option("--path", metavar="PATH", help="Only this file or directory.")
@click.option("--stat", is_flag=True, help="Number of changed lines of each file instead.")
@repository_option
@replica_argument
@common_options
def diff(
    common: Common,
    replica: str,
    repository: str | None,
    stat: bool,
    path: str | None,
    against: str,
) -> None:
    """Print what the agent changed, as a patch for `git apply`.

    On a terminal, control sequences are removed; otherwise the patch is byte-exact.
    """
    if common.json and not stat:
        raise UsageError("A patch is not JSON. Use --stat, or qd replica git for the state.")

    async def read(client: "Client") -> None:
        replica_id, name = await find_replica_repository(client, replica, repository)
        opened = client.git.diff(replica_id, name, against=Against(against), path=path)
        async with opened as parts:
            if stat:
                _print_stat(await _counted(parts, "--numstat" if common.json else "--stat"), common)
                return
            if sys.stdout.isatty():
                text = bytearray()
                async for part in parts:
                    text += part
                    if len(text) > SHOWN_BYTES:
                        break
                print_text(text[:SHOWN_BYTES].decode(errors="replace"), end="")
                if len(text) > SHOWN_BYTES:
                    print_message("The rest of the patch is left out. Write it to a file.")
                return
            async for part in parts:
                sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()

    with_client(common, read)


async def _counted(parts: AsyncIterable[bytes], form: str) -> bytes:
    """Return git's counts of a patch.

    Raises:
        FailedError: git is not installed, or the patch is too long or not one.
    """
    from quarterdeck.local.git import CheckoutError, read_patch, run_git

    try:
        patch = await read_patch(parts)
        # In a repository git would ignore files of other directories.
        counting = ("apply", form, "-z", "-")
        return await run_git(*counting, directory=Path("/"), data=patch) if patch else b""
    except CheckoutError as error:
        raise FailedError(str(error), error.details) from error


def _print_stat(counted: bytes, common: Common) -> None:
    if not common.json:
        print_text(counted.decode(errors="replace"), end="")
        return
    lines = [line.split("\t", 2) for line in counted.decode(errors="replace").split("\0") if line]
    files = [
        # For a binary file git counts no lines.
        {"path": path, **{key: None if n == "-" else int(n) for key, n in counts.items()}}
        for added, removed, path in lines
        for counts in ({"added": added, "removed": removed},)
    ]
    print_json({"files": files})


@click.command(name="commit")
@click.option("-m", "--message", metavar="TEXT", help="Default: the title of the chat.")
@repository_option
@replica_argument
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@common_options
def commit(
    common: Common,
    replica: str,
    paths: tuple[str, ...],
    repository: str | None,
    message: str | None,
) -> None:
    """Commit changes in the replica: everything that is not ignored, or only PATHs.

    PATH is relative to the repository. The repository's hooks run in the sandbox.
    """
    if message is not None and not message.strip():
        raise UsageError("The message is empty.")

    async def make(client: "Client") -> Committed:
        replica_id, name = await find_replica_repository(client, replica, repository)
        return await client.git.commit(replica_id, name, message, paths)

    done = with_client(common, make)
    if common.json:
        print_json(done)
    else:
        print_text(f"{done.commit.sha[:10]}  {safe_line(done.commit.title)}")


@click.command(name="update")
@click.option("--rebase", "strategy", flag_value="rebase", help="Rebase onto it.")
@click.option("--merge", "strategy", flag_value="merge", default=True, help="Merge it (default).")
@click.option(
    "--autostash", is_flag=True, help="Stash uncommitted changes and restore them afterwards."
)
@repository_option
@replica_argument
@common_options
def update(
    common: Common,
    replica: str,
    repository: str | None,
    autostash: bool,
    strategy: Literal["merge", "rebase"],
) -> None:
    """Merge the current base branch of the source into the replica's branch, or rebase onto it.

    On a conflict nothing changes and the files are listed. Stashed changes that conflict with the update
    get conflict markers, and stay in the stash, too.
    """

    async def bring(client: "Client") -> Updated:
        from quarterdeck.client.errors import ConflictError

        replica_id, name = await find_replica_repository(client, replica, repository)
        try:
            return await client.git.update(replica_id, name, strategy, autostash=autostash)
        except ConflictError as error:
            if error.code == ErrorCode.UNCOMMITTED_CHANGES:
                error.next_step = "Commit the changes, or add --autostash."
            if not error.conflicts:
                raise
            raise FailedError(
                str(error), next_step=f"Conflicts: {', '.join(error.conflicts)}."
            ) from error

    done = with_client(common, bring)
    if common.json:
        print_json(done)
    if done.conflicts:
        raise FailedError(
            f"Updated to {done.head[:10]}, but the uncommitted changes conflict with it in"
            f" {', '.join(done.conflicts)}.",
            next_step="Resolve the conflicts. The changes are also in the stash: git stash drop removes them.",
        )
    if not common.json:
        print_message(f"Updated to {done.head[:10]}." if done.changed else "Already up to date.")


@click.command(name="push")
@click.option("--branch", metavar="NAME", help="Default: the checked-out branch of the replica.")
@click.option(
    "--force",
    is_flag=True,
    help="Overwrite the branch at the source if it has not changed since the last fetch.",
)
@repository_option
@replica_argument
@common_options
def push(
    common: Common, replica: str, repository: str | None, branch: str | None, force: bool
) -> None:
    """Push the replica's branch to the source of its repository with your credentials.

    The credentials stay on the service's machine. Uncommitted changes are not pushed.
    """

    async def send(client: "Client") -> Pushed:
        replica_id, name = await find_replica_repository(client, replica, repository)
        return await client.git.push(replica_id, name, branch, force=force)

    done = with_client(common, send)
    if common.json:
        print_json(done)
    elif done.changed:
        print_message(f"Pushed {safe_line(done.branch)}: {done.commit[:10]}.")
    else:
        print_message(f"{safe_line(done.branch)} is up to date at the source.")


@click.command(name="rewind")
@click.option(
    "--to",
    "checkpoint",
    metavar="ID",
    help="Checkpoint to restore; without it, checkpoints are listed.",
)
@click.option(
    "--chat",
    is_flag=True,
    help="Note it in the chats, and inform each agent with its next message.",
)
@replica_argument
@common_options
def rewind(common: Common, replica: str, checkpoint: str | None, chat: bool) -> None:
    """List checkpoints, or restore the files and branches of one.

    A checkpoint is made at the start of each turn. Ignored files and chat messages are left alone.
    Each rewind also makes a checkpoint, so it can be undone.
    """
    if checkpoint is None and chat:
        raise UsageError("--chat needs --to.")
    if checkpoint is None:
        _list_checkpoints(common, replica)
        return

    done = with_replica(
        common, replica, lambda client, id: client.git.rewind(id, checkpoint, chat=chat)
    )
    if common.json:
        print_json(done)
    else:
        again = f"{safe_line(replica)} --to {shlex.quote(safe_line(done.undo))}{' --chat' if chat else ''}"
        print_message(f"Rewound. To undo: qd replica rewind {again}.")


def _list_checkpoints(common: Common, replica: str) -> None:
    checkpoints = with_replica(common, replica, lambda client, id: client.git.checkpoints(id))
    if common.json:
        print_json({"checkpoints": checkpoints})
        return
    for checkpoint in checkpoints:
        print_text(
            f"{checkpoint.id}  {checkpoint.at.astimezone():%Y-%m-%d %H:%M:%S}  {safe_line(checkpoint.title)}"
        )
    if not checkpoints:
        print_message("No checkpoints yet: no turn has started.")


async def print_unsaved_work(client: "Client", id: UUID, name: str) -> None:
    """Print the work that exists only in a replica."""
    from quarterdeck.client.errors import ResponseError

    try:
        states = await client.git.states(id)
    except ResponseError as error:
        print_message(f"{safe_line(name)}: could not look for unpushed work: {error.message}")
        return
    for state in states:
        files = state.uncommitted.files if state.uncommitted else 0
        parts = [f"{_count(state.unpushed, 'commit')} never pushed"] if state.unpushed else []
        parts += [f"{_count(files, 'file')} not committed"] if files else []
        if parts:
            print_message(f"{safe_line(name)}: {', '.join(parts)} in {state.repository}.")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@click.command(name="pr")
@click.option("--title", metavar="TEXT", help="Default: the title of the chat.")
@click.option("--body", metavar="TEXT", help="Default: the titles of the commits.")
@click.option("--base", metavar="BRANCH", help="Default: the branch that the replica started from.")
@click.option("--draft", is_flag=True, help="Open it as a draft.")
@click.option(
    "--list", "listed", is_flag=True, help="List the replica's pull requests without opening one."
)
@click.option(
    "--merge",
    "method",
    type=click.Choice(["merge", "squash", "rebase"]),
    help="Merge the open pull request.",
)
@click.option("--web", is_flag=True, help="Open its page in the browser.")
@repository_option
@replica_argument
@common_options
def pr(
    common: Common,
    replica: str,
    repository: str | None,
    web: bool,
    method: str | None,
    listed: bool,
    draft: bool,
    base: str | None,
    body: str | None,
    title: str | None,
) -> None:
    """Push the branch and open a pull request for it, or show the one that is already open.

    Uncommitted changes are not included.
    """
    opening = title is not None or body is not None or base is not None or draft
    if (listed and method) or ((listed or method) and opening):
        raise UsageError(
            "--list, --merge and the options for a new pull request exclude each other."
        )
    if title is not None and not title.strip():
        raise UsageError("The title is empty.")

    async def show(client: "Client") -> "list[PullRequestDetail]":
        requests = await client.pull_requests.list(await find_replica(client, replica))
        return [request for request in requests if repository in (None, request.repository)]

    async def merge(client: "Client") -> "list[PullRequestDetail]":
        chosen = _only_open(
            [request for request in await show(client) if request.state != "closed"]
        )
        replica_id, name = await find_replica_repository(client, replica, chosen.repository)
        _print_left_out(replica, await _repository_state(client, replica, name), chosen)
        done = await client.pull_requests.merge(
            replica_id,
            chosen.number,
            cast("MergeMethod", method),
            repository=name,
            head_sha=chosen.head_sha if chosen.state == "open" else None,
        )
        return [done]

    async def create(client: "Client") -> "list[PullRequestDetail]":
        replica_id, name = await find_replica_repository(client, replica, repository)
        opened = await client.pull_requests.create(
            replica_id, name, title=title, body=body, base=base, draft=draft
        )
        _print_left_out(replica, await _repository_state(client, replica, name), opened)
        return [opened]

    answer = with_client(common, show if listed else merge if method else create)
    if common.json:
        print_json({"pull_requests": answer} if listed else answer[0])
    else:
        for request in answer:
            _print_pull_request(request)
        if not answer:
            print_message("No pull requests.")
    if web:
        for request in answer:
            _open_page(request.url)


def _only_open(requests: "list[PullRequestDetail]") -> "PullRequestDetail":
    """Return the one to merge: the open one, else the one that is already merged."""
    chosen = [request for request in requests if request.state == "open"] or requests[:1]
    if not chosen:
        raise FailedError("The replica has no open pull request.", "Open one with: qd replica pr.")
    if len(chosen) > 1:
        names = ", ".join(
            f"{safe_line(request.repository)} #{request.number}" for request in chosen
        )
        raise UsageError(f"Several pull requests are open: {names}. Use --repository.")
    return chosen[0]


async def _repository_state(client: "Client", replica: str, name: str) -> "GitState | None":
    states = await client.git.states(await find_replica(client, replica))
    return next((state for state in states if state.repository == name), None)


def _print_left_out(replica: str, state: "GitState | None", shown: "PullRequestDetail") -> None:
    """Print the work in the replica that is not part of a pull request."""
    if state is None:
        return
    left = state.uncommitted.files if state.uncommitted else 0
    if left:
        print_message(
            f"{left} uncommitted {'file is' if left == 1 else 'files are'} not included."
            f" Commit first with: qd replica commit {safe_line(replica)}."
        )
    if state.branch == shown.head and shown.head_sha not in (None, state.head):
        print_message("Unpushed commits are not included.")


def _print_pull_request(request: "PullRequestDetail") -> None:
    words = [request.state, *(["draft"] if request.draft else [])]
    if request.mergeable is False:
        words.append("conflicts")
    if request.review is not None:
        words.append(
            {"required": "review required"}.get(request.review, request.review.replace("_", " "))
        )
    words += filter(None, [threads_words(request.unresolved_threads)])
    if request.checks.state is not None:
        words.append(f"checks {request.checks.state}")
    name = f"{safe_line(request.repository)} #{request.number}"
    print_text(f"{name}  {safe_line(request.title)}")
    print_text(f"  {', '.join(words)}, {safe_line(request.head)} into {safe_line(request.base)}")
    print_text(f"  {safe_line(request.url)}")
    for check in request.checks.failed:
        print_text(f"  failed  {safe_line(check.name)}  {safe_line(check.url or '')}".rstrip())


def _open_page(url: str) -> None:
    """Open a page in the browser; its URL was already printed."""
    import webbrowser

    if not url.startswith(("https://", "http://")) or not webbrowser.open(url):
        print_message("Could not open a browser.")
