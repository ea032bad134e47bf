"""What a person may ask for in the table of keys, and what is said of the rest."""

import pytest

from quarterdeck.tui.actions import ACTIONS, KeyContext, brief_keys, shown_keys
from quarterdeck.tui.actions.model import CHAT, InvalidKeyNameError, key_name, shown_name, use_keys
from quarterdeck.tui.options import clashes, places_of, read_keymap


def test_the_table_itself_has_no_clash() -> None:
    assert clashes({}) == []


def test_an_id_means_one_thing_with_the_same_keys_everywhere() -> None:
    for actions in ACTIONS.values():
        for action in actions:
            assert {one.keys for _, one in places_of(action.id)} == {action.keys}, action.id


def test_every_place_is_in_the_table() -> None:
    assert set(ACTIONS) == set(KeyContext)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("?", "question_mark"),
        ("D", "D"),
        ("shift+d", "D"),
        ("Ctrl+D", "ctrl+d"),
        ("shift+ctrl+x", "ctrl+shift+x"),
        ("PgUp", "pageup"),
        ("esc", "escape"),
        ("+", "plus"),
        ("ctrl++", "ctrl+plus"),
        ("[", "left_square_bracket"),
        (",", "comma"),
        (" ", "space"),
        ("F12", "f12"),
        ("ö", "ö"),
    ],
)
def test_keys_are_read_as_people_write_them(written: str, name: str) -> None:
    assert key_name(written) == name
    assert key_name(shown_name(name)) == name


@pytest.mark.parametrize("written", ["", "hyper+x", "app", "ctrl+i", "ctrl+m", "f25", "\x07"])
def test_what_no_terminal_sends_is_no_key(written: str) -> None:
    with pytest.raises(InvalidKeyNameError):
        key_name(written)


def test_a_key_a_list_and_none_at_all() -> None:
    found = read_keymap({"replica.delete": "D", "replica.open": ["enter", "z"], "app.quit": []})
    assert found.faults == ()
    assert found.instead == {
        "replica.delete": ("D",),
        "replica.open": ("enter", "z"),
        "app.quit": (),
    }


def test_ids_without_quotes_are_nested_tables() -> None:
    assert read_keymap({"replica": {"delete": "D"}}).instead == {"replica.delete": ("D",)}


def test_keys_may_be_exchanged() -> None:
    found = read_keymap({"replica.delete": "s", "replica.sleep": "d"})
    assert found.faults == ()
    assert len(found.instead) == 2


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"replica.delte": "D"}, "There is no action replica.delte. Did you mean replica.delete?"),
        ({"replica.delete": "s"}, "s is replica.delete and replica.sleep at once"),
        ({"terminal.list": "c"}, "c is terminal.list and terminal.new at once"),
        ({"composer.files": "x"}, "composer.files cannot be another key."),
        ({"composer.send": "x"}, "composer.send cannot be x: where it works, x is typed."),
        ({"app.reconnect": "R"}, "app.reconnect cannot be R"),
        ({"replica.new": "hyper+x"}, "replica.new cannot be 'hyper+x': 'hyper' is not ctrl"),
        ({"replica.new": "ctrl+m"}, "terminals send the same for it as for enter"),
        ({"replica.new": 3}, "The keys of replica.new are neither a text nor a list of texts."),
    ],
)
def test_what_cannot_be_is_said_and_the_default_holds(table: dict[str, object], said: str) -> None:
    found = read_keymap(table)
    assert found.instead == {}
    assert len(found.faults) == 1
    assert said in found.faults[0]


def test_all_faults_are_said_and_what_is_right_holds() -> None:
    found = read_keymap({"nothing": "x", "replica.delete": "s", "app.quit": "Q"})
    assert len(found.faults) == 2
    assert found.instead == {"app.quit": ("Q",)}


def test_a_key_that_is_given_back_may_clash_in_its_turn() -> None:
    # Delete cannot have s, so it keeps d, and then sleep cannot have that.
    found = read_keymap({"replica.delete": "w", "replica.sleep": "d"})
    assert clashes(found.instead) == []
    assert found.instead == {}
    assert len(found.faults) == 2


def test_what_is_shown_are_the_keys_as_they_are() -> None:
    use_keys({"replica.delete": ("D",), "replica.new": ()})
    shown = brief_keys(KeyContext.LIST)
    assert ("D", "delete") in shown
    assert "new" not in [brief for _, brief in shown]
    assert shown_keys(CHAT) == ("1", "alt+1")
