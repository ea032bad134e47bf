"""Frames and messages keep their content, and nonsense is refused."""

import os
import random

import pytest

from quarterdeck.tui.terminal.channel import (
    BODY_LIMIT,
    HEADER,
    BadFrameError,
    FrameEncoder,
    Splitter,
    pack,
)
from quarterdeck.tui.terminal.core import (
    Attribute,
    CellRun,
    CellStyle,
    CursorPosition,
    CursorShape,
    Scrollback,
    State,
    TerminalMode,
)
from quarterdeck.tui.terminal.decoder import FrameDecoder

STATE = State(
    80,
    24,
    CursorPosition(3, 4, True, CursorShape.BAR),
    TerminalMode.BRACKETED_PASTE | TerminalMode.MOUSE_SGR,
    Scrollback(100, 70, 24),
    "títle",
    2,
)
RED = CellStyle(fg=1, attributes=int(Attribute.BOLD | Attribute.SELECTED), underline=3)
RGB = CellStyle(fg=(1, 2, 3), bg=(0, 0, 0), underline_color=(255, 255, 255))


def test_frame_round_trip() -> None:
    rows = [
        (0, (CellRun("plain", 5, CellStyle()), CellRun("漢", 2, RED))),
        (7, (CellRun("x", 1, RGB),)),
        (9, ()),
    ]
    encoder, decoder = FrameEncoder(), FrameDecoder()
    for _ in range(2):
        frame = decoder.decode(encoder.encode(STATE, rows))
        assert frame.state == STATE
        assert frame.rows == rows


def test_style_table_starts_over_on_both_ends() -> None:
    encoder, decoder = FrameEncoder(), FrameDecoder()
    for start in range(0, 45_000, 5_000):
        row = tuple(
            [
                CellRun("x", 1, CellStyle(fg=(n & 255, n >> 8, 0)))
                for n in range(start, start + 5_000)
            ]
        )
        assert decoder.decode(encoder.encode(STATE, [(0, row)])).rows == [(0, row)]


def test_nonsense_frames_are_refused() -> None:
    good = FrameEncoder().encode(STATE, [(0, (CellRun("plain", 5, RED),))])
    for cut in range(len(good)):
        with pytest.raises(BadFrameError):
            FrameDecoder().decode(good[:cut])
    for _ in range(200):
        body = bytearray(good)
        body[random.randrange(len(body))] ^= 1 << random.randrange(8)
        try:
            FrameDecoder().decode(bytes(body))
        except BadFrameError:
            continue


def test_splitter_takes_any_pieces() -> None:
    bodies = [os.urandom(n) for n in (0, 1, 5000)]
    stream = b"".join([pack(n, 7, body) for n, body in enumerate(bodies)])
    splitter = Splitter()
    found = [p for at in range(0, len(stream), 3) for p in splitter.feed(stream[at : at + 3])]
    assert [(p.kind, p.terminal, p.body) for p in found] == [
        (n, 7, b) for n, b in enumerate(bodies)
    ]


def test_splitter_refuses_an_impossible_length() -> None:
    with pytest.raises(BadFrameError):
        list(Splitter().feed(HEADER.pack(BODY_LIMIT + 1, 1, 1)))
