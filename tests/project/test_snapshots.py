"""Pictures of screens as text: what they hold, and what a change of a screen looks like."""

from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tests.support.snapshots import TESTS, Picture, as_text, check, orphans, picture_of

ROOT = Path(__file__).parents[1]


def drawn(*segments: tuple[str, str]) -> Picture:
    """A screen of one line: texts with their styles."""
    return picture_of([Strip([Segment(text, Style.parse(style)) for text, style in segments])])


def test_every_picture_belongs_to_a_test(request: pytest.FixtureRequest) -> None:
    left = [str(path) for path in orphans(ROOT, request.config.stash[TESTS])]
    assert not left, "remove these:\n" + "\n".join(left)


def test_a_picture_is_text_styles_and_legend() -> None:
    dark = drawn(("╭─ ", "bold red"), ("漢e\u0301", "#ff8000 on blue"), ("  ", ""))
    light = drawn(("╭─ ", "red"), ("漢e\u0301", "black on color(24)"), ("  ", ""))
    assert as_text({"dark": dark, "light": light}) == (
        "size 8x1\nthemes dark light\n\n"
        "text\n  1|╭─ 漢e\u0301\n\n"
        "styles\n  1|a3 b3 c2\n\n"
        "legend\n"
        "a  dark  red on default bold\n   light red on default\n"
        "b  dark  #ff8000 on blue\n   light black on color(24)\n"
        "c  dark  - on default\n   light - on default\n"
    )


@pytest.mark.parametrize(
    ("style", "words"),
    [
        ("dim italic underline strike overline", "dim italic underline strike overline"),
        ("reverse blink conceal underline2", "underline2 reverse blink conceal"),
        ("link https://host.example/a", "link=https://host.example/a"),
    ],
)
def test_attributes_and_links_are_in_the_legend(style: str, words: str) -> None:
    assert as_text({"dark": drawn(("x", style))}).endswith(f"default on default {words}\n")


def test_a_character_that_cannot_be_seen_is_named() -> None:
    assert "a⟨U+202E⟩⟨U+00A0⟩b" in as_text({"dark": drawn(("a\u202e\u00a0b", ""))})


def test_a_blank_shows_its_background_alone() -> None:
    plain = as_text({"dark": drawn(("a b", "red"))})
    assert as_text({"dark": drawn(("a", "red"), (" ", "bold green"), ("b", "red"))}) == plain
    assert as_text({"dark": drawn(("a", "red"), (" ", "on blue"), ("b", "red"))}) != plain
    assert as_text({"dark": drawn(("a", "red"), (" ", "underline"), ("b", "red"))}) != plain


def test_themes_may_not_differ_in_their_text() -> None:
    with pytest.raises(AssertionError, match=r"light shows another text:(.|\n)*-one\n *\+two"):
        as_text({"dark": drawn(("one", "")), "light": drawn(("two", ""))})


def test_a_change_is_told_as_a_difference_of_lines(tmp_path: Path) -> None:
    before = drawn(("name ", "bold"), ("asks", "yellow"))
    assert check(tmp_path, "test_it", {"": {"dark": before}}, update=True) == []
    (path,) = tmp_path.iterdir()
    assert path.name == "test_it.txt"
    assert check(tmp_path, "test_it", {"": {"dark": before}}) == []
    after = drawn(("▲ ", "red"), ("name ", "bold"), ("asks", "yellow"))
    (problem,) = check(tmp_path, "test_it", {"": {"dark": after}})
    changed = [
        line for line in problem.splitlines() if line[:1] in "+-" and line[:3] not in "+++---"
    ]
    assert changed == [
        *("-size 9x1", "+size 11x1", "-  1|name asks", "+  1|▲ name asks"),
        *("-  1|a5 b4", "+  1|c2 a5 b4", "+c  dark red on default"),
    ]
    assert check(tmp_path, "test_it", {"": {"dark": after}}, update=True) == []
    assert check(tmp_path, "test_it", {"": {"dark": after}}) == []


def test_a_picture_that_is_not_stored_or_not_taken_fails(tmp_path: Path) -> None:
    one = {"dark": drawn(("one", ""))}
    (problem,) = check(tmp_path, "test_it[80x24]", {"list": one})
    assert "is not stored" in problem and "  1|one" in problem
    assert list(tmp_path.iterdir()) == []
    assert check(tmp_path, "test_it[80x24]", {"list": one, "help": one}, update=True) == []
    assert check(tmp_path, "test_other", {"": one}, update=True) == []
    (problem,) = check(tmp_path, "test_it[80x24]", {"list": one})
    assert "test_it[80x24][help].txt is stored, and not taken" in problem
    assert check(tmp_path, "test_it[80x24]", {"list": one}, update=True) == []
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"test_it[80x24][list].txt", "test_other.txt"}


def test_pictures_of_no_test_are_found(tmp_path: Path) -> None:
    module = tmp_path / "test_screens.py"
    module.touch()
    stored = tmp_path / "__snapshots__" / "test_screens"
    for name in ("test_one.txt", "test_two[80x24].txt", "test_two[80x24][list].txt", "old.svg"):
        stored.mkdir(parents=True, exist_ok=True)
        (stored / name).touch()
    removed = tmp_path / "__snapshots__" / "test_removed" / "test_one.txt"
    removed.parent.mkdir()
    removed.touch()
    assert orphans(tmp_path, {}) == [removed, stored / "old.svg"]
    found = orphans(tmp_path, {module: {"test_two[80x24]"}})
    assert found == [removed, stored / "old.svg", stored / "test_one.txt"]
