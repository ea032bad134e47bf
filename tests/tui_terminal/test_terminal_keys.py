"""What each key types, as xterm does."""

import pytest

from quarterdeck.tui.terminal.core import TerminalMode
from quarterdeck.tui.terminal.input import encode_key


@pytest.mark.parametrize(
    ("key", "character", "typed"),
    [
        ("a", "a", "a"),
        ("A", "A", "A"),
        ("é", "é", "é"),
        ("漢", "漢", "漢"),
        ("space", " ", " "),
        ("full_stop", ".", "."),
        ("enter", "\r", "\r"),
        ("tab", "\t", "\t"),
        ("shift+tab", None, "\x1b[Z"),
        ("escape", "\x1b", "\x1b"),
        ("backspace", "\x7f", "\x7f"),
        ("ctrl+backspace", None, "\x08"),
        ("alt+backspace", None, "\x1b\x7f"),
        ("alt+enter", None, "\x1b\r"),
        ("up", None, "\x1b[A"),
        ("down", None, "\x1b[B"),
        ("right", None, "\x1b[C"),
        ("left", None, "\x1b[D"),
        ("home", None, "\x1b[H"),
        ("end", None, "\x1b[F"),
        ("insert", None, "\x1b[2~"),
        ("delete", None, "\x1b[3~"),
        ("pageup", None, "\x1b[5~"),
        ("pagedown", None, "\x1b[6~"),
        ("shift+up", None, "\x1b[1;2A"),
        ("ctrl+right", None, "\x1b[1;5C"),
        ("ctrl+shift+left", None, "\x1b[1;6D"),
        ("alt+down", None, "\x1b[1;3B"),
        ("ctrl+home", None, "\x1b[1;5H"),
        ("ctrl+delete", None, "\x1b[3;5~"),
        ("f1", None, "\x1bOP"),
        ("f4", None, "\x1bOS"),
        ("f5", None, "\x1b[15~"),
        ("f10", None, "\x1b[21~"),
        ("f12", None, "\x1b[24~"),
        ("f13", None, "\x1b[1;2P"),
        ("f17", None, "\x1b[15;2~"),
        ("ctrl+f2", None, "\x1b[1;5Q"),
        ("ctrl+a", "\x01", "\x01"),
        ("ctrl+c", None, "\x03"),
        ("ctrl+q", None, "\x11"),
        ("ctrl+z", None, "\x1a"),
        ("ctrl+j", "\n", "\n"),
        ("ctrl+@", "\x00", "\x00"),
        ("ctrl+space", None, "\x00"),
        ("ctrl+backslash", "\x1c", "\x1c"),
        ("ctrl+right_square_bracket", "\x1d", "\x1d"),
        ("ctrl+circumflex_accent", "\x1e", "\x1e"),
        ("ctrl+underscore", "\x1f", "\x1f"),
        ("alt+x", "x", "\x1bx"),
        ("alt+shift+x", None, "\x1bX"),
        ("alt+full_stop", None, "\x1b."),
        ("alt+ctrl+a", None, "\x1b\x01"),
        ("decimal", None, "."),
        ("ctrl++", None, "+"),
    ],
)
def test_key(key: str, character: str | None, typed: str) -> None:
    assert encode_key(key, character) == typed


@pytest.mark.parametrize(
    "key", ["left_shift", "super+a", "media_play", "caps_lock", "ctrl+kp_begin"]
)
def test_key_that_types_nothing(key: str) -> None:
    assert encode_key(key, None) is None


@pytest.mark.parametrize(
    ("key", "typed"),
    [("up", "\x1bOA"), ("home", "\x1bOH"), ("end", "\x1bOF"), ("ctrl+up", "\x1b[1;5A")],
)
def test_application_cursor_keys(key: str, typed: str) -> None:
    assert encode_key(key, None, TerminalMode.CURSOR_KEYS) == typed


def test_new_line_mode_ends_lines_twice() -> None:
    assert encode_key("enter", "\r", TerminalMode.NEW_LINE) == "\r\n"
    assert encode_key("alt+enter", None, TerminalMode.NEW_LINE) == "\x1b\r\n"


def test_backarrow_mode_swaps() -> None:
    assert encode_key("backspace", "\x7f", TerminalMode.BACKARROW) == "\x08"
    assert encode_key("ctrl+backspace", None, TerminalMode.BACKARROW) == "\x7f"


@pytest.mark.parametrize(
    ("key", "character", "typed"),
    [
        ("ctrl+a", "\x01", "\x1b[27;5;97~"),
        ("ctrl+shift+a", None, "\x1b[27;6;65~"),
        ("ctrl+i", None, "\x1b[27;5;105~"),
        ("ctrl+shift+ß", None, "\x1b[27;6;223~"),
        ("ctrl+comma", None, "\x1b[27;5;44~"),
        ("ctrl+space", None, "\x1b[27;5;32~"),
        ("alt+ctrl+a", None, "\x1b[27;7;97~"),
        ("shift+enter", None, "\x1b[27;2;13~"),
        ("ctrl+enter", None, "\x1b[27;5;13~"),
        ("ctrl+tab", None, "\x1b[27;5;9~"),
        ("shift+escape", None, "\x1b[27;2;27~"),
        ("ctrl+shift+backspace", None, "\x1b[27;6;127~"),
        ("a", "a", "a"),
        ("A", "A", "A"),
        ("tab", "\t", "\t"),
        ("shift+tab", None, "\x1b[Z"),
        ("enter", "\r", "\r"),
        ("escape", "\x1b", "\x1b"),
        ("ctrl+backspace", None, "\x08"),
        ("alt+x", "x", "\x1bx"),
        ("alt+enter", None, "\x1b\r"),
        ("ctrl+up", None, "\x1b[1;5A"),
        ("ctrl+f2", None, "\x1b[1;5Q"),
    ],
)
def test_keys_that_a_program_wants_told_apart(key: str, character: str | None, typed: str) -> None:
    assert encode_key(key, character, TerminalMode.OTHER_KEYS) == typed


@pytest.mark.parametrize(
    ("key", "character", "typed"),
    [
        ("shift+enter", None, "\x1b[27;2;13~"),
        ("ctrl+enter", None, "\x1b[27;5;13~"),
        ("ctrl+tab", None, "\x1b[27;5;9~"),
        ("shift+tab", None, "\x1b[Z"),
        ("ctrl+backspace", None, "\x08"),
        ("shift+backspace", None, "\x7f"),
        ("ctrl+semicolon", None, "\x1b[27;5;59~"),
        ("ctrl+minus", None, "\x1b[27;5;45~"),
        ("ctrl+9", None, "\x1b[27;5;57~"),
        ("ctrl+3", None, "\x1b"),
        ("ctrl+a", "\x01", "\x01"),
        ("ctrl+shift+a", None, "\x01"),
        ("ctrl+space", "\0", "\0"),
        ("A", "A", "A"),
    ],
)
def test_keys_that_a_program_wants_told_apart_where_they_have_no_character(
    key: str, character: str | None, typed: str
) -> None:
    assert encode_key(key, character, TerminalMode.SOME_KEYS) == typed


DISTINCT = TerminalMode.KITTY_DISTINCT
ALL = DISTINCT | TerminalMode.KITTY_ALL
TEXT = ALL | TerminalMode.KITTY_TEXT


@pytest.mark.parametrize(
    ("key", "character", "distinct", "every", "text"),
    [
        ("a", "a", "a", "\x1b[97u", "\x1b[97;;97u"),
        ("A", "A", "A", "\x1b[97;2u", "\x1b[97;2;65u"),
        ("exclamation_mark", "!", "!", "\x1b[33u", "\x1b[33;;33u"),
        ("space", " ", " ", "\x1b[32u", "\x1b[32;;32u"),
        ("ctrl+a", "\x01", "\x1b[97;5u", "\x1b[97;5u", "\x1b[97;5u"),
        ("ctrl+i", None, "\x1b[105;5u", "\x1b[105;5u", "\x1b[105;5u"),
        ("ctrl+shift+a", None, "\x1b[97;6u", "\x1b[97;6u", "\x1b[97;6u"),
        ("ctrl+space", None, "\x1b[32;5u", "\x1b[32;5u", "\x1b[32;5u"),
        ("alt+x", "x", "\x1b[120;3u", "\x1b[120;3u", "\x1b[120;3u"),
        ("alt+X", None, "\x1b[120;4u", "\x1b[120;4u", "\x1b[120;4u"),
        ("escape", "\x1b", "\x1b[27u", "\x1b[27u", "\x1b[27u"),
        ("enter", "\r", "\r", "\x1b[13u", "\x1b[13u"),
        ("tab", "\t", "\t", "\x1b[9u", "\x1b[9u"),
        ("backspace", "\x7f", "\x7f", "\x1b[127u", "\x1b[127u"),
        ("shift+enter", None, "\x1b[13;2u", "\x1b[13;2u", "\x1b[13;2u"),
        ("shift+tab", None, "\x1b[9;2u", "\x1b[9;2u", "\x1b[9;2u"),
        ("ctrl+backspace", None, "\x1b[127;5u", "\x1b[127;5u", "\x1b[127;5u"),
        ("up", None, "\x1b[A", "\x1b[A", "\x1b[A"),
        ("ctrl+up", None, "\x1b[1;5A", "\x1b[1;5A", "\x1b[1;5A"),
        ("f1", None, "\x1b[P", "\x1b[P", "\x1b[P"),
        ("f3", None, "\x1b[13~", "\x1b[13~", "\x1b[13~"),
        ("shift+f5", None, "\x1b[15;2~", "\x1b[15;2~", "\x1b[15;2~"),
        ("delete", None, "\x1b[3~", "\x1b[3~", "\x1b[3~"),
        ("ö", "ö", "ö", "\x1b[246u", "\x1b[246;;246u"),
        ("ctrl+ö", None, "\x1b[246;5u", "\x1b[246;5u", "\x1b[246;5u"),
    ],
)
def test_keys_in_the_kitty_protocol(
    key: str, character: str | None, distinct: str, every: str, text: str
) -> None:
    assert encode_key(key, character, DISTINCT) == distinct
    assert encode_key(key, character, ALL) == every
    assert encode_key(key, character, TEXT) == text
    # The cursor keys' own mode and `modifyOtherKeys` do not matter then.
    both = DISTINCT | TerminalMode.OTHER_KEYS | TerminalMode.CURSOR_KEYS
    assert encode_key(key, character, both) == distinct
