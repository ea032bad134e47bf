"""The file finder: pages of one index, the newest search, an index that is being made anew."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.store import files
from quarterdeck.store.files import FileFinder, content_words, open_file, size_words
from quarterdeck.wire.files import FileContent, FoundFiles
from tests.store.conftest import NOW, NOW_LATE


def page(*paths: str, cursor: str | None = None, at: str = NOW, **more: Any) -> FoundFiles:
    found = [
        {"repoName": "shop", "path": path, "displayPath": f"shop/{path}", "status": "unchanged"}
        | {"score": 0.0, "indexedAt": at, "stale": False}
        for path in paths
    ]
    state = {"stale": False, "refreshing": False, "truncated": False, **more}
    return FoundFiles.model_validate(
        {"files": found, "nextCursor": cursor, "indexedAt": at} | state
    )


class PlayedFiles:
    """Answers in the order given; an answer may be waited for."""

    def __init__(self, *answers: FoundFiles | asyncio.Future[FoundFiles]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str | None, bool]] = []
        self.client = self
        self.files = self

    async def search(
        self, replica_id: object, q: str, *, limit: int, cursor: str | None, refresh: bool
    ) -> FoundFiles:
        self.asked.append((q, cursor, refresh))
        answer = self.answers.pop(0)
        return await answer if isinstance(answer, asyncio.Future) else answer


def finder(*answers: Any) -> tuple[FileFinder, PlayedFiles]:
    played = PlayedFiles(*answers)
    return FileFinder(played, uuid4()), played  # type: ignore[arg-type]


def paths(found: FileFinder) -> list[str]:
    return [file.path for file in found.files]


async def test_pages_follow_until_there_are_none() -> None:
    found, played = finder(page("a", cursor="1"), page("b"))
    assert await found.search("x")
    assert found.has_more and await found.more()
    assert paths(found) == ["a", "b"] and not found.has_more
    assert not await found.more()
    assert played.asked == [("x", None, False), ("x", "1", False)]


async def test_another_index_between_pages_begins_anew_without_a_refresh() -> None:
    found, played = finder(page("a", cursor="1"), page("z", at=NOW_LATE), page("new", at=NOW_LATE))
    await found.search("", refresh=True)
    assert await found.more()
    assert paths(found) == ["new"]
    assert played.asked[-1] == ("", None, False)


async def test_an_older_answer_never_replaces_a_newer_one() -> None:
    late: asyncio.Future[FoundFiles] = asyncio.get_running_loop().create_future()
    found, _ = finder(late, page("new"))
    older = asyncio.create_task(found.search("o"))
    await asyncio.sleep(0)
    assert await found.search("on")
    late.set_result(page("old"))
    assert not await older
    assert (found.query, paths(found)) == ("on", ["new"])


async def test_it_asks_again_only_while_the_index_is_being_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "PAUSES", (0.0,))
    found, played = finder(
        page("a", stale=True, refreshing=True), page("a", stale=True, refreshing=True), page("b")
    )
    told: list[list[str]] = []
    await found.search("")
    await found.settle(lambda: told.append(paths(found)))
    assert told == [["a"], ["b"]] and not found.stale
    assert len(played.asked) == 3


def test_a_file_says_what_it_is() -> None:
    text = open_file("shop", "a/b.py", FileContent(content="hé", size_bytes=3, truncated=False))
    assert (text.name, text.data, content_words(text)) == ("b.py", "hé".encode(), "")
    cut = open_file("shop", "b", FileContent(content="x" * 2048, size_bytes=4096, truncated=True))
    assert content_words(cut) == "The first 2.0 KB of 4.0 KB."
    binary = open_file("shop", "b", FileContent(base64="AAE=", size_bytes=9000, truncated=True))
    assert binary.data == b"\0\1"
    assert content_words(binary) == "Not a text (8.8 KB). Only its beginning was sent."
    nonsense = open_file("shop", "b", FileContent(base64="?", size_bytes=1, truncated=False))
    assert (nonsense.text, nonsense.data) == (None, b"")


@pytest.mark.parametrize(
    ("size", "words"), [(1, "1 byte"), (1023, "1023 bytes"), (1 << 20, "1.0 MB"), (12_000, "12 KB")]
)
def test_sizes_as_people_say_them(size: int, words: str) -> None:
    assert size_words(size) == words
