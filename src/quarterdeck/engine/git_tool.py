"""`python -I -m quarterdeck.engine.git_tool`: runs one git operation in a workspace's sandbox.

Reads a `GitCall` from standard input and prints the result: a model as JSON, or a pack. When the
operation is refused it exits with status 1, and the last line of standard error is a `GitFailure`.
"""

import asyncio
import os
import sys
from pathlib import Path

from quarterdeck.loading import loading

with loading():
    from pydantic import BaseModel

    from quarterdeck.engine.git import GitError, read_repository
    from quarterdeck.engine.git_operations import (
        CheckoutOperations,
        MergeConflictError,
        NothingToCommitError,
        UncommittedChangesError,
        list_checkpoints,
    )
    from quarterdeck.wire.git import GitCall, GitFailure
    from quarterdeck.wire.git_state import ReposChanged

REFUSED = 1


async def carry_out(call: GitCall) -> BaseModel | None:
    """Carry out an operation; None when its result was printed.

    Raises:
        GitError: it was refused.
    """
    environment = dict(os.environ)
    if call.operation == "look":
        return ReposChanged(
            repos=[
                await read_repository(repository, environment, hooks_completed=call.hooks_completed)
                for repository in call.repositories
            ]
        )
    if call.operation == "checkpoints":
        return await list_checkpoints(call.repositories, environment)
    (repository,) = call.repositories
    checkout = CheckoutOperations(Path(repository.path), environment)
    match call.operation:
        case "commit":
            return await checkout.commit(call.message or "", call.paths)
        case "update":
            branch = repository.base_branch or repository.default_branch
            return await checkout.update(
                branch, call.base or "", rebase=call.rebase, stash=call.autostash
            )
        case "pack":
            if call.commits:
                await checkout.pack(call.commits, repository.base_commit)
            else:
                await checkout.pack_branch(call.branch, repository.base_commit)
            return None
        case "rewind":
            await checkout.rewind(call.checkpoint or "", call.undo or "")
            return None


def main() -> int:
    """Read the call, carry it out, print; return the exit status."""
    call = GitCall.model_validate_json(sys.stdin.buffer.read())
    try:
        result = asyncio.run(carry_out(call))
    except (GitError, OSError) as error:
        sys.stderr.write(_failure(error).model_dump_json(by_alias=True) + "\n")
        return REFUSED
    if result is not None:
        sys.stdout.write(result.model_dump_json(by_alias=True))
    return 0


def _failure(error: GitError | OSError) -> GitFailure:
    match error:
        case OSError():
            reason = f"The repository cannot be written: {error.strerror or error}."
            return GitFailure(kind="failed", message=reason)
        case NothingToCommitError():
            return GitFailure(kind="nothing", message=str(error))
        case UncommittedChangesError():
            return GitFailure(kind="uncommitted", message=str(error))
        case MergeConflictError(conflicts=conflicts):
            return GitFailure(kind="conflict", message=str(error), conflicts=conflicts)
        case _:
            return GitFailure(kind="failed", message=str(error))


if __name__ == "__main__":
    sys.exit(main())
