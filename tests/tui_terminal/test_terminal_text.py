"""Text that reaches the screen is harmless and as wide as the emulator said."""

import pytest
from rich.cells import cell_len

from quarterdeck.tui.terminal.core import TerminalMode
from quarterdeck.tui.terminal.decoder import clean_title, fit
from quarterdeck.tui.terminal.input import paste_text
from tests.security.payloads import harm_in_text


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("plain", 5),
        ("漢字", 4),
        ("e\u0301", 1),
        ("👨\u200d", 2),
        ("👨\u200d👩\u200d👧", 2),
        ("❤\ufe0f", 2),
        ("👍🏽", 4),
        ("🇩🇪", 4),
        ("\x1b[31m", 5),
        ("e\x1b", 1),
        ("\x9b31m", 4),
        ("a\u202eb", 3),
        ("\u200b", 1),
        ("\ue0b0", 1),
        ("ᄀ", 1),
    ],
)
def test_fit_is_exact_and_harmless(text: str, cells: int) -> None:
    fitted = fit(text, cells)
    assert cell_len(fitted) == cells
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2028" for c in fitted)


def test_fit_keeps_what_is_right() -> None:
    assert fit("漢字", 4) == "漢字"
    assert fit("\ue0b0", 1) == "\ue0b0"
    assert fit("👨\u200d👩\u200d👧", 2) == "👨\u200d👩\u200d👧"
    assert fit("👩\u200d", 2) == "👩"


def test_a_character_in_more_cells_than_it_takes_is_still_seen() -> None:
    assert fit("🇩🇪", 4) == "🇩 🇪 "
    assert fit("👍🏽", 4).startswith("👍")


def test_title_loses_controls_and_length() -> None:
    assert clean_title("a\x1b]52;c;x\x07b\u202ec") == "a]52;c;xbc"
    assert len(clean_title("x" * 5000)) == 200
    assert (
        harm_in_text(clean_title("31" + "\u0301" * 25 + "37")) is None
    )  # more slow terminals down


def test_paste_cannot_leave_its_bracket() -> None:
    pasted = paste_text("a\nb\r\nc\x1b[201~; rm\x03", TerminalMode.BRACKETED_PASTE)
    assert pasted == "\x1b[200~a\rb\rc [201~; rm \x1b[201~"


def test_paste_without_bracket() -> None:
    assert paste_text("a\tb\n", TerminalMode.NONE) == "a\tb\r"


def test_marks_do_not_pile_up() -> None:
    assert fit("e" + "\u0301" * 100, 1) == "e" + "\u0301" * 4
