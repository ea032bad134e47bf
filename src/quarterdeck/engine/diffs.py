"""The whole difference between a checkout and the commit it started from, as text."""

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from quarterdeck.engine.git import EMPTY_TREE, GitError, run_git
from quarterdeck.wire.engine import EngineRepository, RepositoryDiff, RepositoryDiffs

DIFF_BYTES = 1 << 20
"""A longer difference is cut after its last whole line."""


async def read_diffs(
    repositories: Sequence[EngineRepository], environment: Mapping[str, str]
) -> RepositoryDiffs:
    """The difference of each repository; one that git cannot read is left out."""
    found: list[RepositoryDiff] = []
    for one in repositories:
        try:
            text = await read_diff(Path(one.path), one.base_commit, environment)
        except GitError:
            continue  # its state has no numbers either, which is what people see
        found.append(RepositoryDiff(name=one.name, diff=text))
    return RepositoryDiffs(diffs=found)


async def read_diff(path: Path, base: str | None, environment: Mapping[str, str]) -> str:
    """Commits, uncommitted changes and new files that are not ignored. Nothing is written.

    Raises:
        GitError: no repository there, an unknown base, or git took too long.
    """
    asked = ("rev-parse", "--path-format=absolute", "--git-path")
    index, objects = [
        Path(os.fsdecode(await run_git(path, environment, *asked, name)).rstrip("\n"))
        for name in ("index", "objects")
    ]
    with TemporaryDirectory(prefix="qd-diff-") as directory:
        # New files are only compared once an index names them: one of our own does.
        own = Path(directory, "index")
        if index.exists():
            await asyncio.to_thread(shutil.copyfile, index, own)
        aside = {
            **environment,
            "GIT_INDEX_FILE": str(own),
            "GIT_OBJECT_DIRECTORY": directory,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        await run_git(path, aside, "add", "--intent-to-add", "--", ".")
        told = await run_git(
            path, aside, "diff", "--no-color", "--no-ext-diff", "--no-textconv",
            "-M", base or EMPTY_TREE, "--",
            most=DIFF_BYTES,
        )  # fmt: skip
    if len(told) >= DIFF_BYTES:
        told = told[: told.rfind(b"\n") + 1]
    return told.decode(errors="replace")
