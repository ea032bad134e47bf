"""Parts of the built-in agent without a process."""

import pytest

from quarterdeck.agents.builtin.runner import parse
from quarterdeck.agents.builtin.turn import (
    HISTORY_LIMIT,
    SessionStore,
    UnknownSessionError,
)
from quarterdeck.agents.output import KEPT, OutputTail


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("no block", []),
        ("```\nls\n```", ["ls\n"]),
        ("```sh\na\n```\n~~~bash\nb\n~~~", ["a\n", "b\n"]),
        ("```Shell title=x\na\n```", ["a\n"]),
        ("````sh\n```\nnot the end\n````", ["```\nnot the end\n"]),
        ("```sh\nnever closed\n  kept", ["never closed\n  kept\n"]),
        ("```sh\n\n```", []),
        ("```python\nx\n```\n```\ny\n```", ["y\n"]),
        ("```console\n$ ls -l\ntotal 0\n$ pwd\n```", ["ls -l\npwd\n"]),
        ("```console\nls\n```", ["ls\n"]),
        ("an `inline` ```code``` span", []),
        ("    ```sh\n    indented code\n    ```", []),
        ("```sh\r\nls\r\n```\r\n", ["ls\n"]),
    ],
)
def test_blocks_are_found_by_the_rules_of_markdown(text, scripts) -> None:
    assert [block.script for block in parse(text).blocks] == scripts


def test_other_languages_are_named() -> None:
    assert parse("```python\nx\n```\n```rust\ny\n```").skipped == ["python", "rust"]


def test_the_title_is_the_first_telling_line() -> None:
    assert parse("```\n\n# why\nmake test\n```").blocks[0].title == "make test"
    assert parse("```\n# only\n```").blocks[0].title == "# only"


def test_output_keeps_its_end_and_splits_no_character() -> None:
    output = OutputTail()
    for _ in range(10):
        output.add("ä".encode() * 20_000)
    output.add(b"!")
    text = output.text()
    assert output.truncated
    head, _, body = text.partition("\n")
    assert head == f"[{400_001 - KEPT:,} bytes of earlier output left out]"
    assert set(body) == {"ä", "!"}


def test_a_session_file_survives_and_bounds_its_history(tmp_path) -> None:
    store = SessionStore(tmp_path)
    session = store.create("/w")
    session.history.extend({"n": n} for n in range(HISTORY_LIMIT + 5))
    store.save(session)
    again = store.load(session.id)
    assert again.history[0] == {"n": 5}
    assert len(again.history) == HISTORY_LIMIT


@pytest.mark.parametrize("wrong", ["../../etc/passwd", "", "3f0e6a70-0000-4000-8000-000000000000"])
def test_an_unknown_session_is_refused(tmp_path, wrong) -> None:
    with pytest.raises(UnknownSessionError):
        SessionStore(tmp_path).load(wrong)


def test_a_broken_session_file_is_refused(tmp_path) -> None:
    store = SessionStore(tmp_path)
    session = store.create("/w")
    (tmp_path / f"{session.id}.json").write_text('{"id":')
    with pytest.raises(UnknownSessionError):
        store.load(session.id)
