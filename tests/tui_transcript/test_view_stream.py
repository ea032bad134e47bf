"""A thousand tokens a second into a long transcript, in a pseudo-terminal."""

import re
from collections.abc import Callable
from typing import Any


def test_streaming_keeps_pace_and_idleness_is_silent(open_session: Callable[..., Any]) -> None:
    session = open_session("stream_app.py")
    session.wait_text("answer 9999")
    session.wait_quiet()
    assert len(session.output) <= 12_000
    session.send("s")
    session.wait_text("done")
    session.wait_quiet()
    shown = "\n".join(session.screen.display)
    told = re.search(r"in ([\d.]+) s, rss (\d+) MB", shown)
    assert told and float(told[1]) < 8 and int(told[2]) <= 90, shown
    assert "word" in shown
    before = len(session.output)
    session.read(1)
    assert len(session.output) == before
