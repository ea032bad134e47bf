"""Reads the unified differences that git prints.

Nothing here raises: what no rule knows is passed over, and a difference that ends in the middle is
read as far as it goes. Hunks are read by the counts of their heads, never by how a line looks: a line
that was removed may begin with `--- a/`.
"""

import re

from quarterdeck.store.changes_model import ChangeKind, FileChange, Hunk

HEAD = "diff --git "
_HUNK = re.compile(r"@@ -(\d{1,18})(?:,(\d{1,18}))? \+(\d{1,18})(?:,(\d{1,18}))? @@ ?(.*)")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}


def parse_changes(text: str) -> list[FileChange]:
    """The changed files of a difference, in its order."""
    # Not splitlines(): a carriage return or a form feed is a part of its line.
    lines = text.removesuffix("\n").split("\n")
    files: list[FileChange] = []
    at = 0
    while at < len(lines):
        if not lines[at].startswith(HEAD):
            at += 1
            continue
        begun = at
        change, at = _read_file(lines, at)
        change.text = "\n".join(lines[begun:at]) + "\n"
        files.append(change)
    return files


def _read_file(lines: list[str], at: int) -> tuple[FileChange, int]:
    change = FileChange(*_paths(lines[at].removeprefix(HEAD)))
    at += 1
    while at < len(lines) and not lines[at].startswith(HEAD):
        found = _HUNK.match(lines[at])
        if found is None:
            _take_remark(change, lines[at])
            at += 1
        else:
            at = _read_hunk(change, found, lines, at + 1)
    return change, at


def _read_hunk(change: FileChange, head: re.Match[str], lines: list[str], at: int) -> int:
    old_left, new_left = int(head[2] or 1), int(head[4] or 1)
    begun = at
    while at < len(lines) and (old_left > 0 or new_left > 0):
        match lines[at][:1]:
            case "+":
                new_left -= 1
                change.added += 1
            case "-":
                old_left -= 1
                change.removed += 1
            case " " | "":
                old_left -= 1
                new_left -= 1
            case "\\":
                pass
            case _:
                break
        at += 1
    if at < len(lines) and lines[at].startswith("\\"):
        at += 1
    cut = old_left > 0 or new_left > 0
    change.hunks.append(Hunk(int(head[1]), int(head[3]), head[5], lines[begun:at], cut))
    return at


def _take_remark(change: FileChange, line: str) -> None:
    """A line between the head of a file and its first hunk."""
    for start, take in _REMARKS:
        if line.startswith(start):
            take(change, line.removeprefix(start))
            return


def _old_mode(change: FileChange, rest: str) -> None:
    change.old_mode = rest


def _new_mode(change: FileChange, rest: str) -> None:
    change.new_mode = rest


def _added(change: FileChange, rest: str) -> None:
    change.kind, change.new_mode = ChangeKind.ADDED, rest


def _deleted(change: FileChange, rest: str) -> None:
    change.kind, change.old_mode = ChangeKind.DELETED, rest


def _renamed_from(change: FileChange, rest: str) -> None:
    change.kind, change.old_path = ChangeKind.RENAMED, unquoted(rest)


def _copied_from(change: FileChange, rest: str) -> None:
    change.kind, change.old_path = ChangeKind.COPIED, unquoted(rest)


def _moved_to(change: FileChange, rest: str) -> None:
    change.new_path = unquoted(rest)


def _binary(change: FileChange, rest: str) -> None:
    change.binary = True


_REMARKS = (
    ("old mode ", _old_mode),
    ("new mode ", _new_mode),
    ("new file mode ", _added),
    ("deleted file mode ", _deleted),
    ("rename from ", _renamed_from),
    ("rename to ", _moved_to),
    ("copy from ", _copied_from),
    ("copy to ", _moved_to),
    ("Binary files ", _binary),
    ("GIT binary patch", _binary),
)


def _paths(head: str) -> tuple[str, str]:
    """The two paths of a head. Only those of renamed files differ, and they are told again below.

    Whatever prefixes the repository's settings give them are of one length, so the middle is known.
    """
    middle = len(head) // 2
    old, new = unquoted(head[:middle]), unquoted(head[middle + 1 :])
    if old == new:
        return old, new
    return old.partition("/")[2] or old, new.partition("/")[2] or new


def unquoted(path: str) -> str:
    """A path as git writes it: unusual ones stand in quotes, their bytes escaped."""
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    return _ESCAPE.sub(_byte, path[1:-1].encode()).decode(errors="replace")


def _byte(found: re.Match[bytes]) -> bytes:
    escaped = found[1]
    if len(escaped) == 3:
        return bytes([int(escaped, 8) & 0xFF])
    return _LETTERS.get(escaped, escaped)
