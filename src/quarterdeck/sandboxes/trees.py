"""The files of a connected repository's default branch, read from its mirror."""

import asyncio
import os

from quarterdeck.sandboxes.git import GitError
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import RepositorySource, SandboxError
from quarterdeck.wire.names import shown

REFRESH_SECONDS = 5.0
"""A source that takes longer to answer is left for another time."""


async def default_tree(mirrors: Mirrors, source: RepositorySource) -> list[str]:
    """See `SandboxDriver.tree`.

    Raises:
        SandboxError: there is no mirror, or it cannot be read.
    """
    mirror = mirrors.path(source.id)
    if not await asyncio.to_thread(mirror.is_dir):
        raise SandboxError(f"{source.name} is no longer connected.")
    try:
        async with asyncio.timeout(REFRESH_SECONDS):
            await mirrors.refresh(source, _nobody)
    except TimeoutError:
        pass  # what was fetched before has to do
    commit = await mirrors.start_commit(source, _nobody)
    if commit is None:
        return []
    try:
        said = await mirrors.git.run("ls-tree", "-r", "-z", "--full-tree", commit, directory=mirror)
    except GitError as e:
        raise SandboxError(f"The files of {source.name} cannot be listed.", str(e)) from e
    return await asyncio.to_thread(_files, said)


def _files(said: str) -> list[str]:
    records = (record.partition("\t") for record in said.split("\0"))
    return [shown(os.fsencode(name)) for head, _, name in records if head[7:11] == "blob"]


def _nobody(line: str) -> None:
    """Nobody waits for progress here."""
