"""One index, ready to be searched."""

from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from frizbee import Haystacks

from quarterdeck.service.files.packing import PackedRepository


class Entry(NamedTuple):
    """One file. `text` is what is searched: the path, below its repository's name among several.

    `letter` is its packed status, `place` where it stands when nothing is searched for.
    """

    repository: str
    path: str
    letter: str
    text: str
    place: int


class Prepared:
    """Files in the order of their length, so that of equal matches the shorter comes first."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries

    @cached_property
    def paths(self) -> Haystacks:
        """What is searched, for the matcher."""
        return Haystacks([one.text for one in self.entries])

    @cached_property
    def names(self) -> Haystacks:
        """The last part of each path, for the matcher."""
        return Haystacks([one.text.rpartition("/")[2] for one in self.entries])

    @cached_property
    def listing(self) -> Sequence[int]:
        """The positions of all files, by repository and path."""
        places = [one.place for one in self.entries]
        return sorted(range(len(places)), key=places.__getitem__)

    def below(self, prefix: str) -> "Prepared":
        """The files whose path in their repository begins with a prefix."""
        return Prepared([one for one in self.entries if one.path.startswith(prefix)])


def prepare(repositories: Sequence[PackedRepository]) -> Prepared:
    """Makes an index ready."""
    several = len(repositories) > 1
    entries: list[Entry] = []
    for name, paths, letters in sorted(repositories):
        above = f"{name}/" if several else ""
        entries += [
            Entry(name, path, letter, above + path, place)
            for place, (path, letter) in enumerate(
                sorted(zip(paths, letters, strict=True)), len(entries)
            )
        ]
    entries.sort(key=attrgetter("text"))
    entries.sort(key=_length)
    prepared = Prepared(entries)
    _ = prepared.paths, prepared.names, prepared.listing  # not left to whoever searches first
    return prepared


def _length(entry: Entry) -> int:
    return len(entry.text)
