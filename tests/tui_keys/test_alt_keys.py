"""Escape and the next key in one read reach the program as they were."""

import time

import pytest
from textual import events
from textual.widgets import TextArea

from quarterdeck.tui.terminal.input import encode_key
from quarterdeck.tui.textual_ext.driver import AltKeyParser


def keys(*reads: str) -> list[events.Message]:
    parser = AltKeyParser()
    found = [event for data in reads for event in parser.feed(data)]
    # Textual decides after a while that an Escape was just that.
    limit = time.monotonic() + 2
    while not found and time.monotonic() < limit:
        found = list(parser.tick())
    return found


def typed(*reads: str) -> str:
    return "".join(
        encode_key(event.key, event.character) or ""
        for event in keys(*reads)
        if isinstance(event, events.Key)
    )


@pytest.mark.parametrize(
    "text",
    [
        "\x1b:wq\r",
        "\x1b\x1b:wq\r",
        "itwo\x1b\x1bofour",
        "\x1b\x1b\x1ba\x1b\x1b:w",
        "ihello\x1b:wq\r",
        "\x1ba",
        "\x1bA",
        "\x1b.",
        "\x1b ",
        "\x1b\r",
        "\x1b\x7f",
        "\x1b2",
        "\x1bö",
        "\x1bЯ",
    ],
)
def test_what_was_read_is_what_is_typed(text: str) -> None:
    assert typed(text) == text


def test_a_long_burst_after_escape_loses_nothing() -> None:
    text = "\x1b:" + "x" * 100 + "\r"
    assert typed(text) == text


def test_keys_of_the_terminal_are_left_alone() -> None:
    found = keys("\x1b[A\x1bOP\x1b[1;3C")
    assert [event.key for event in found if isinstance(event, events.Key)][:2] == ["up", "f1"]


def test_escape_then_a_key_in_two_reads() -> None:
    assert typed("\x1b", ":") == "\x1b:"


def test_a_second_escape_comes_before_what_follows_it() -> None:
    assert typed("\x1b", "\x1b:w", "q") == "\x1b\x1b:wq"


def test_a_paste_in_several_reads_is_one_text() -> None:
    found = keys("a\x1b[200~one:", "two.", "three\x1b[201~\x1b:")
    pasted = [event.text for event in found if isinstance(event, events.Paste)]
    assert pasted == ["one:two.three"]
    assert [event.key for event in found if isinstance(event, events.Key)] == ["a", "alt+colon"]


@pytest.mark.parametrize("key", ["a", "A", ".", "2", "ö", "\r"])
def test_a_field_does_not_write_it(key: str) -> None:
    (event,) = keys(f"\x1b{key}")
    assert isinstance(event, events.Key)
    assert not event.is_printable
    assert not TextArea().check_consume_key(event.key, event.character)


def test_alt_enter_is_a_key_of_its_own() -> None:
    (event,) = keys("\x1b\r")
    assert isinstance(event, events.Key)
    assert event.key == "alt+enter"
