"""Giving the branch of a workspace's repositories its final name."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from quarterdeck.engine.git import GitError, run_git
from quarterdeck.wire.engine import EngineRepository

logger = logging.getLogger(__name__)


async def rename_branches(
    repositories: Sequence[EngineRepository], branch: str, environment: Mapping[str, str]
) -> None:
    """Renames the branch that each is on; one that cannot be renamed keeps its name."""
    for repository in repositories:
        try:
            await run_git(Path(repository.path), environment, "branch", "-M", branch)
        except GitError as error:
            logger.warning("the branch of %s keeps its name: %s", repository.name, error)
