"""A thousand tokens a second into a long transcript, in a pseudo-terminal."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.visible import text_rows

TOKENS = 2_000


def stream_bytes(output: bytes) -> int:
    """Bytes from the first token on."""
    return len(output) - output.find(b"word0")


def test_a_terminal_that_shows_frames_whole_scrolls_by_itself(
    open_session: Callable[..., Any],
) -> None:
    session = open_session("stream_app.py")
    session.wait_text("answer 9999")
    session.send("\x1b[?2026;2$y")
    session.wait_quiet()
    session.send("s")
    session.wait_text("done")
    session.wait_quiet()
    assert "word" in "\n".join(text_rows(session.screen))
    assert stream_bytes(session.output) / TOKENS < 60


@pytest.mark.long
def test_streaming_keeps_pace_and_idleness_is_silent(open_session: Callable[..., Any]) -> None:
    session = open_session("stream_app.py")
    session.wait_text("answer 9999")
    session.wait_quiet()
    assert len(session.output) <= 12_000
    session.send("s")
    session.wait_text("done")
    session.wait_quiet()
    shown = "\n".join(text_rows(session.screen))
    told = re.search(r"in ([\d.]+) s, rss (\d+) MB", shown)
    assert told and float(told[1]) < 20 and int(told[2]) <= 90, shown
    assert "word" in shown
    before = len(session.output)
    session.read(1)
    assert len(session.output) == before
