"""The save of a replica, as the start of a fork of it."""

from collections.abc import Mapping
from pathlib import Path

from quarterdeck.sandboxes.git import GitRunner, SourceGitError
from quarterdeck.wire.files import CANVAS_DIRECTORY
from quarterdeck.wire.saves import FILES_REF, HEADER_REF, SaveFork, WorkSave, saved_refs


async def fork_save(git: GitRunner, copy: Path, work: WorkSave, fork: SaveFork) -> None:
    """Change the copy of a save to that of a fork; see `Saves.fork`.

    Raises:
        SourceGitError: git refused.
    """
    changes: dict[str, str] = {}
    for id, head in work.heads.items():
        place = saved_refs(id)
        commit = head
        if head.startswith("refs/"):
            commit = await _commit(git, copy, head.replace("refs", place, 1))
        if commit:  # else it has no commit yet
            changes[f"{place}/heads/{fork.branch}"] = commit
        work.heads[id] = f"refs/heads/{fork.branch}"
    listed = await git.run("ls-tree", "-rz", "--full-tree", FILES_REF, directory=copy)
    entries = [_moved(entry, fork.places) for entry in listed.split("\0") if entry]
    stored = ("hash-object", "-w", "--stdin")
    for path, text in fork.texts.items():
        blob = await git.run(*stored, directory=copy, data=text.encode())
        entries.append(f"100644 blob {blob}\t{path}")
    changes[FILES_REF] = await git.write_tree(copy, [entry for entry in entries if entry])
    work.forked, work.lost = True, []
    header = work.model_dump_json(by_alias=True).encode()
    changes[HEADER_REF] = await git.run(*stored, directory=copy, data=header)
    lines = "".join(f"update {ref}\0{object}\0\0" for ref, object in changes.items())
    await git.run("update-ref", "-z", "--stdin", directory=copy, data=lines.encode())


async def _commit(git: GitRunner, copy: Path, ref: str) -> str:
    try:
        return await git.run("rev-parse", "--quiet", "--verify", ref, directory=copy)
    except SourceGitError:
        return ""


def _moved(entry: str, places: Mapping[str, str]) -> str | None:
    """Return an entry of the tree under its new name; None for one that does not go along."""
    about, _, path = entry.partition("\t")
    for place, name in places.items():
        if path.startswith(place) and f"/{CANVAS_DIRECTORY}/" not in path:
            return f"{about}\t{name}{path.removeprefix(place)}"
    return None
