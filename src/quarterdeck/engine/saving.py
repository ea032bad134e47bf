"""`python -I -m quarterdeck.engine.saving`: prints a replica's work, to be saved at its service.

Reads a `SaveCall` from standard input. Prints a `WorkSave` as one line, then a pack with the objects
that are not known there yet. It changes nothing but `SAVED_REF` of each repository.
"""

import asyncio
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from quarterdeck.loading import loading

with loading():
    from quarterdeck.agents.catalog import saved_patterns
    from quarterdeck.engine.git import GitError, run_git
    from quarterdeck.engine.git_operations import (
        HOOK_SECONDS,
        NEW_BYTES,
        CheckoutOperations,
        git_path,
        new_files,
    )
    from quarterdeck.wire.files import CANVAS_DIRECTORY
    from quarterdeck.wire.git_state import EngineRepository
    from quarterdeck.wire.saves import (
        FILES_REF,
        PLAIN,
        SAVED,
        STASHES,
        SaveCall,
        WorkSave,
        saved_refs,
    )

FILES_BYTES = 64 << 20
"""Most bytes that are saved besides the repositories."""
MOST_REFS = 5_000
"""Of a repository."""
_STATE_FILES = ("agents/**/*", "canvas.jsonl")
_DATABASE = ".db"


async def save(call: SaveCall, environment: Mapping[str, str]) -> None:
    """Print the work.

    Raises:
        GitError, OSError: nothing, or only a part, was printed.
    """
    work = WorkSave(refs={}, heads={})
    borrowed: list[Path] = []
    for repository in call.repositories:
        try:
            borrowed.append(await _add_repository(work, repository, environment))
        except GitError as error:
            sys.stderr.write(f"{repository.name} could not be read: {error}\n")
            work.failed.append(str(repository.id))
    with TemporaryDirectory(prefix="qd-save-") as directory:
        place = Path(directory, "save.git")
        await run_git(
            place.parent, environment, "init", "--quiet", "--bare", "--template=", "save.git"
        )
        await asyncio.to_thread(_prepare, place, borrowed)
        staged = Path(directory, "files")
        work.left_out += await asyncio.to_thread(_stage, staged, Path.home(), Path(call.state_dir))
        work.refs[FILES_REF] = await _tree_of(staged, {**environment, "GIT_DIR": str(place)})
        sys.stdout.write(work.model_dump_json(by_alias=True) + "\n")
        sys.stdout.flush()
        await _print_pack(place, environment, {*work.refs.values()}, call.known)


async def _add_repository(
    work: WorkSave, repository: EngineRepository, environment: Mapping[str, str]
) -> Path:
    """Make a commit of the work tree, and note what there is; return the path of the objects."""
    path = Path(repository.path)
    objects = await git_path(path, environment, "objects")
    total, left_out = 0, list[str]()
    for size, name in sorted(await new_files(path, environment)):
        total += size
        if total > NEW_BYTES:
            left_out.append(name)
    await CheckoutOperations(path, environment).checkpoint(SAVED, "Saved", left_out)
    refs = await _refs(path, environment, "refs/heads", "refs/qd")
    refs |= await _stashes(path, environment)
    if repository.base_commit is None:
        refs |= await _refs(path, environment, "refs/tags")
    else:  # those of the source are there again after a clone
        own = (f"--no-merged={repository.base_commit}", "refs/tags")
        refs |= await _refs(path, environment, *own)
    if len(refs) > MOST_REFS:
        raise GitError(f"It has more than {MOST_REFS} branches and tags of its own.")
    head = await _head(path, environment)
    place = saved_refs(repository.id)
    work.refs |= {name.replace("refs", place, 1): object for name, object in refs.items()}
    work.left_out += [f"{repository.name}/{name}" for name in left_out]
    work.heads[str(repository.id)] = head
    return objects


async def _refs(path: Path, environment: Mapping[str, str], *chosen: str) -> dict[str, str]:
    listed = ("for-each-ref", "--format=%(objectname) %(refname)", *chosen)
    lines = (await run_git(path, environment, *listed)).decode(errors="replace").splitlines()
    pairs = [line.split(" ", 1) for line in lines if "\ufffd" not in line]
    return {name: object for object, name in pairs}


async def _stashes(path: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return a ref for each stash: git itself keeps all but the newest in a log."""
    if not await _refs(path, environment, "refs/stash"):
        return {}
    listed = await run_git(path, environment, "log", "--walk-reflogs", "--format=%H", "refs/stash")
    stashes = enumerate(listed.decode().split())
    return {f"{STASHES}/{number:04}": commit for number, commit in stashes}


async def _head(path: Path, environment: Mapping[str, str]) -> str:
    try:
        name = await run_git(path, environment, "symbolic-ref", "--quiet", "HEAD")
    except GitError:
        name = await run_git(path, environment, "rev-parse", "HEAD")
    return os.fsdecode(name).strip()


async def _tree_of(directory: Path, environment: Mapping[str, str]) -> str:
    """Store the files of a directory as git objects; return the tree."""
    variables = {**environment, "GIT_WORK_TREE": str(directory)}
    await run_git(directory, variables, "add", "--all", "--force", ".", seconds=HOOK_SECONDS)
    return (await run_git(directory, variables, "write-tree")).decode().strip()


async def _print_pack(
    place: Path, environment: Mapping[str, str], wanted: set[str], known: list[str]
) -> None:
    asked = ("cat-file", "--batch-check=%(objectname)")
    data = "".join(f"{one}\n" for one in known).encode()
    there = (await run_git(place, environment, *asked, data=data)).decode() if known else ""
    excluded = [f"^{line}" for line in there.splitlines() if not line.endswith(" missing")]
    revisions = "".join(f"{one}\n" for one in (*sorted(wanted), *excluded)).encode()
    packed = ("pack-objects", "--stdout", "--revs", "--thin", "--delta-base-offset", "--quiet")
    await run_git(place, environment, *packed, data=revisions, printed=True, seconds=None)


def _prepare(place: Path, borrowed: list[Path]) -> None:
    """Let a new repository borrow objects, and keep files as they are."""
    alternates = "".join(f"{path}\n" for path in borrowed)
    (place / "objects/info/alternates").write_text(alternates)
    (place / "info").mkdir(exist_ok=True)
    (place / "info/attributes").write_text(PLAIN)


def _stage(staged: Path, home: Path, state: Path) -> list[str]:
    """Copy the files that are saved, the newest first; return those for which there is no room."""
    places = [
        *((home, pattern) for pattern in (f"{CANVAS_DIRECTORY}/**/*", *saved_patterns())),
        *((state, pattern) for pattern in _STATE_FILES),
    ]
    staged.mkdir()
    found = {path for top, pattern in places for path in _plain_files(top, pattern)}
    left_out: list[str] = []
    total = 0
    for modified, path in sorted(((_modified(path), path) for path in found), reverse=True):
        name = path.relative_to(state.parent)
        size = path.stat().st_size if modified else 0
        if total + size > FILES_BYTES:
            left_out.append(str(name))
            continue
        total += size
        (staged / name).parent.mkdir(parents=True, exist_ok=True)
        _copy(path, staged / name)
    return left_out


def _plain_files(top: Path, pattern: str) -> Iterator[Path]:
    for path in top.glob(pattern):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            yield path


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0  # it was removed


def _copy(path: Path, copy: Path) -> None:
    try:
        if path.suffix != _DATABASE:
            shutil.copy(path, copy)
            return
        # An agent may have it open: its newest pages are then in a separate file.
        with (
            closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    except FileNotFoundError:
        return  # it was removed
    except sqlite3.Error as error:
        sys.stderr.write(f"{path} could not be copied: {error}\n")


def main() -> None:
    """Read the call, and print the work."""
    call = SaveCall.model_validate_json(sys.stdin.buffer.read())
    asyncio.run(save(call, dict(os.environ)))


if __name__ == "__main__":
    os.umask(0o077)
    main()
