"""Found files as rows: what matched stands out, what the agent changed is marked."""

from itertools import pairwise

from quarterdeck.tui.reading.row_list import Row
from quarterdeck.tui.text import one_line
from quarterdeck.tui.transcript_view.lines import Line, Mark, Role, Span
from quarterdeck.wire.files import FileStatus, FoundFile

_SIGNS = {
    FileStatus.CHANGED: Span("M ", Role.ASKING),
    FileStatus.UNTRACKED: Span("+ ", Role.ADDED),
}
_NO_SIGN = Span("  ")


def key_of(file: FoundFile) -> str:
    """Names a file among those of a replica."""
    return f"{file.repo_name}\0{file.path}"


def row_of(file: FoundFile, words: str, *, several: bool) -> Row:
    """The row of a file; with `several` repositories it says in which it is."""
    path = one_line(file.display_path if several else file.path)
    sign = next((sign for status, sign in _SIGNS.items() if status == file.status), _NO_SIGN)
    return Row(key_of(file), (Span(" "), sign, *marked_path(path, words)))


def marked_path(path: str, words: str) -> Line:
    """A path: directories dim, the name plain, what was searched for bold."""
    name_at = path.rfind("/") + 1
    hits = matched(path, words)
    # Where the look may change: around what matched, and before the name.
    edges = sorted({0, name_at, len(path), *hits, *(at + 1 for at in hits)})
    return tuple(
        Span(path[start:end], Role.NAME, Mark.BOLD)
        if start in hits
        else Span(path[start:end], Role.TEXT if start >= name_at else Role.DIM)
        for start, end in pairwise(edges)
    )


def matched(path: str, words: str) -> set[int]:
    """Where the words are found in a path: each as a whole, last place first, else letter by letter."""
    lowered = path.lower()
    hits: set[int] = set()
    if len(lowered) != len(path):
        return hits
    for word in words.lower().split():
        at = lowered.rfind(word)
        hits.update(range(at, at + len(word)) if at >= 0 else _strewn(lowered, word))
    return hits


def _strewn(text: str, word: str) -> list[int]:
    places: list[int] = []
    at = -1
    for character in word:
        at = text.find(character, at + 1)
        if at < 0:
            return []
        places.append(at)
    return places
