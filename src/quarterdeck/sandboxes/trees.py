"""The files of a connected repository's default branch, read from its mirror."""

import asyncio

from quarterdeck.sandboxes.git import GitError
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import RepositorySource, SandboxError

FRESHEN_SECONDS = 5.0
"""A mirror that cannot be brought up to date within this is read as it is."""


async def default_tree(mirrors: Mirrors, source: RepositorySource) -> list[str]:
    """Paths of all files; see `SandboxDriver.tree`.

    Raises:
        SandboxError: there is no mirror, or it cannot be read.
    """
    try:
        async with asyncio.timeout(FRESHEN_SECONDS):
            await mirrors.refresh(source, _nobody)
    except TimeoutError:
        _nobody(f"{source.name}: its source is slow; going on with what was fetched before")
    commit = await mirrors.start_commit(source, _nobody)
    if commit is None:
        return []
    listing = ("ls-tree", "-r", "--name-only", "-z", commit)
    try:
        said = await mirrors.git.run(*listing, directory=mirrors.path(source.id))
    except GitError as e:
        raise SandboxError(f"The mirror of {source.name} cannot be read.", str(e)) from e
    return [path for path in said.split("\0") if path]


def _nobody(line: str) -> None:
    """Progress that nobody is told."""
