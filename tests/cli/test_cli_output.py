"""What is printed is safe to show, and says the same."""

import json

import pytest

from quarterdeck.cli.output import json_text, print_table, safe_line, safe_text
from quarterdeck.wire.account import Health
from tests.security.payloads import harm_in_text, payloads

HOSTILE = "a\x1b]0;t\x07\x1b[2Jb\x9b31mc\u202ed\x08\x7f"


def test_text_loses_what_a_terminal_obeys():
    assert safe_text("plain\n\ttext") == "plain\n\ttext"
    shown = safe_text(HOSTILE)
    assert not set(shown) & set("\x1b\x07\x9b\u202e\x08\x7f")
    assert safe_line("one\ntwo\tthree") == "one two three"


@pytest.mark.parametrize("value", [{"k": HOSTILE}, Health(status=HOSTILE, version="1")])
def test_json_escapes_it_and_means_the_same(value):
    text = json_text(value)
    assert not set(text) & set("\x1b\x07\x9b\u202e\x08\x7f")
    assert HOSTILE in json.loads(text).values()


def test_json_of_models_inside_keeps_the_case_of_the_contract():
    assert json.loads(json_text({"h": [Health(status="ok", version="1")]})) == {
        "h": [{"status": "ok", "version": "1"}]
    }


def test_a_table_keeps_its_columns_whatever_is_in_it(capsys):
    print_table(["NAME", "ID"], [["a\nb\x1b[2J", "1"], ["longer-name", "2"]])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["NAME         ID", "a b          1", "longer-name  2"]


def test_json_stacks_no_marks_and_says_the_same() -> None:
    for text in payloads():
        printed = json_text({"text": text})
        assert harm_in_text(printed) is None, ascii(text)
        assert json.loads(printed) == {"text": text}
