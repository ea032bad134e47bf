"""The output kept for a new emulator process."""

from quarterdeck.tui.terminal.core import (
    CHUNK,
    LIMIT,
    OutputChunk,
    OutputHistory,
    Resize,
    TerminalMode,
    restore,
)


def test_keeps_a_mebibyte_and_the_size_it_was_written_for() -> None:
    history = OutputHistory(80, 24)
    history.add(b"a" * CHUNK, answer=True)
    history.resize(100, 30)
    for _ in range(LIMIT // CHUNK):
        history.add(b"b" * CHUNK, answer=True)
    history.resize(120, 40)
    history.add(b"c", answer=True)
    entries, _ = history.since(0)
    kept = b"".join([e.data for e in entries if isinstance(e, OutputChunk)])
    assert LIMIT - CHUNK <= len(kept) <= LIMIT
    assert kept.startswith(b"b") and kept.endswith(b"c")
    assert (history.trimmed, history.start, history.size) == (
        True,
        Resize(100, 30),
        Resize(120, 40),
    )


def test_since_gives_what_came_later_even_when_the_oldest_went() -> None:
    history = OutputHistory(80, 24)
    history.add(b"first", answer=True)
    entries, place = history.since(0)
    assert len(entries) == 1
    assert history.since(place) == ([], place)
    history.add(b"x" * (LIMIT + CHUNK), answer=False)
    later, end = history.since(place)
    assert all(isinstance(e, OutputChunk) and e.data[:1] == b"x" for e in later)
    assert history.since(end) == ([], end)


def test_restore_sets_modes_of_dropped_output() -> None:
    assert (
        restore(TerminalMode.ALTERNATE_SCREEN | TerminalMode.MOUSE_SGR) == b"\x1b[?1049h\x1b[?1006h"
    )
    assert restore(TerminalMode.NEW_LINE | TerminalMode.OTHER_KEYS) == b"\x1b[20h\x1b[>4;2m"
    assert restore(TerminalMode.SOME_KEYS) == b"\x1b[>4;1m"
