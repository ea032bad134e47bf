"""Hostile text: nothing that is shown may steer the terminal."""

import random
import re

import pytest

from quarterdeck.transcript.text import Flow, clean, clean_output, one_line

HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\ufeff\ud800-\udfff]"
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;Zm9v\x07copied", "copied"),
        ("\x1bP1$r\x1b\\x\x1b_a\x1b\\y", "xy"),
        ("\x1b(0lqk\x1b(B", "lqk"),
        ("\x1bc reset \x1b[?1049h", " reset "),
        ("\x1b]unterminated", "]unterminated"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("bell\x07 back\x08 null\x00", "bell back null"),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("z\u200b\u200be\u2060r\ufeffo", "zero"),
        ("tag\U000e0041\U000e0042", "tag"),
        ("\ud800 alone", "\ufffd alone"),
        ("e" + "\u0301" * 500 + "x", "e" + "\u0301" * 4 + "x"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("a\u200d\u200d\u200db", "a\u200db"),
        ("\u6f22\u5b57 \u0e01\u0e34\u0e48", "\u6f22\u5b57 \u0e01\u0e34\u0e48"),
    ],
)
def test_clean(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    "flood",
    [
        "\u0301\u200b\u200d",
        "\u0301\u200c",
        "\ufe0f\u200d\u0301",
        "\u0903",
        "\u1161",
        "\u11a8",
        "\ud7b0\u0301",
        "\U0001d173",
        "\U0001bca0",
    ],
)
def test_nothing_piles_up_in_one_cell(flood: str) -> None:
    assert len(clean("z" + flood * 3_000 + "x")) <= 6


@pytest.mark.parametrize(
    "text",
    [
        "\u0915\u094d\u0937\u0947\u0924\u094d\u0930\u0940\u092f",  # Hindi
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian
        "\u1112\u1161\u11ab\u1100\u116e\u11a8",  # Korean, letter by letter
        "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",  # Hebrew with its points
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",  # a family
    ],
)
def test_scripts_stay_as_they_are(text: str) -> None:
    assert clean(text) == text


def test_output_shows_what_a_terminal_would_after_carriage_returns() -> None:
    assert clean_output("10%\r50%\r100%\ndone\r\nx") == "100%\ndone\nx"


def test_one_line() -> None:
    assert one_line(" a\n\tb\x1b[2J  c ") == "a b c"


@pytest.mark.parametrize("seed", range(30))
def test_any_text_is_harmless_and_cleaning_twice_changes_nothing(seed: int) -> None:
    chosen = random.Random(seed)
    alphabet = "\x1b[]0;?m\x07\\\r\n\t ab\x9b\x9d\x9c\u202e\u200b\u200d\u0301\ud800\u6f22P_^"
    text = "".join(chosen.choices(alphabet, k=3_000))
    for cleaned in (clean(text), clean_output(text)):
        assert not HARMFUL.search(cleaned)
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize("seed", range(30))
def test_pieces_are_cleaned_like_the_whole(seed: int) -> None:
    chosen = random.Random(seed)
    text = "".join(chosen.choices("\x1b[31m]0;\x07\n\r ab\u0301\u200d\u6f22", k=600))
    flow = Flow()
    at = 0
    while at < len(text):
        size = chosen.randrange(1, 9)
        flow.add(text[at : at + size])
        at += size
        if chosen.random() < 0.3:
            assert flow.text == clean(text[:at])
    assert flow.text == clean(text)
