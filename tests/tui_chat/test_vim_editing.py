"""Vim's keys on a text, without a screen; beside what vim itself does."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from quarterdeck.tui.vim.editor import LARGEST, Mode, VimEditor
from tests.support.tools import require

TEXTS = (
    "foo bar, baz\nsecond line here\n\n  indented (a, b) text\nlast",
    "one",
    "a.b, c_d  e\n\n\nx y",
    "path/to/file.py: error\nnext 'quoted \"in\" side' {a {b} c}\n\n\nend",
    "aa aa aa\nbb bb\ncc",
)
MOTIONS = "h l j k w b e W B E 0 ^ $ gg G fa Fa ta Ta"
SEARCHES = "f,; f,;; fa;, Ta;"
OTHERS = """
2dw d2w 3cw d2j 2dk d2b y2w c2e dG cgg dd 2dd cc 2cc yyp yyP 2yyjp d}
x 3x X 2X s 2s S D 2D C Y rq 2rq 9rq J 3J ~ 3~ xp xP x3p dwwP ddp ddP dd2p
diw daw ciw yiwP diW daW ci' da' di" i a I A o O 2i 3A 2o 2O
vd vld vwd v2jd vjc vey Vd Vjd VGd Vc vrq vlr. vj~ vjJ viwd vawd vbd vbX vp
x. x2. dw. dd. 2dd. 3x. rq. J. ~. vld. Vd. diw. ywP. yypk. yyvp ywvp yyVp
"""
COMMANDS = [
    *(f"{before}{motion}" for before in ("", "2", "3", *"dcy") for motion in MOTIONS.split()),
    *SEARCHES.split(),
    *OTHERS.split(),
]
TYPED = "Q"
"""What is typed after commands that end in insert mode."""
Place = tuple[str, int, int]


def starts(text: str) -> list[tuple[int, int]]:
    """Some cells of each line."""
    lines = text.split("\n")
    return [(row, column) for row in range(len(lines)) for column in {0, len(lines[row]) // 2}]


def cases() -> list[tuple[str, int, int, str]]:
    """Some of all cells, and all commands that do not fail there: vim leaves out the keys after those."""
    return [
        (text, row, column, keys)
        for text in TEXTS
        for row, column in starts(text)
        for keys in COMMANDS
        if may_succeed(text.split("\n"), row, keys)
    ]


def may_succeed(lines: Sequence[str], row: int, keys: str) -> bool:
    if "." in keys:
        return row == 0 and len(lines) > 3
    if "J" in keys:
        return row < len(lines) - 1
    return bool(lines[row]) or "aw" not in keys.lower()


def editor_at(text: str, row: int = 0, column: int = 0) -> VimEditor:
    editor = VimEditor()
    editor.begin(text)
    editor.press("escape")
    place = sum(len(line) + 1 for line in text.split("\n")[:row]) + column
    editor.load(text, place)
    editor.press("0")
    for _ in range(column):
        editor.press("l")
    return editor


def type_keys(editor: VimEditor, keys: str) -> None:
    """Presses keys; in insert mode they are typed as a text area does it."""
    for key in keys:
        name = {"\x1b": "escape", "\x12": "ctrl+r"}.get(key, key)
        if not editor.press(name) and editor.mode is Mode.INSERT:
            cursor = editor.cursor
            editor.load(editor.text[:cursor] + key + editor.text[cursor:], cursor + 1)


def after(text: str, row: int, column: int, keys: str) -> tuple[Place, bool]:
    """Where the keys lead, and whether they end in insert mode."""
    editor = editor_at(text, row, column)
    type_keys(editor, keys)
    inserts = editor.mode is Mode.INSERT
    if inserts:
        type_keys(editor, TYPED)
    type_keys(editor, "\x1b\x1b")
    before = editor.text[: editor.cursor]
    return (editor.text, before.count("\n"), len(before) - (before.rfind("\n") + 1)), inserts


def of_vim(asked: list[tuple[str, int, int, str]], directory: Path) -> list[Place]:
    """The same of vim, in one process."""
    script = directory / "cases.vim"
    answers = directory / "answers.json"
    (directory / "cases.json").write_text(json.dumps(asked))
    script.write_text(
        f"""
        set nocompatible startofline noautoindent nojoinspaces virtualedit= whichwrap=
        let out = []
        for [text, row, column, keys] in json_decode(join(readfile('{directory}/cases.json')))
            enew! | set buftype=nofile
            call setline(1, split(text, "\\n", 1))
            call setreg('"', '', 'c')
            call setcharsearch({{'char': '', 'forward': 1, 'until': 0}})
            call cursor(row + 1, column + 1)
            silent! exe "normal! " . keys
            call add(out, [join(getline(1, '$'), "\\n"), line('.') - 1, col('.') - 1])
        endfor
        call writefile([json_encode(out)], '{answers}')
        qa!
        """
    )
    quiet = ["-u", "NONE", "-i", "NONE", "-N", "-n", "-es"]
    subprocess.run([require("vim"), *quiet, "-S", str(script)], timeout=50, check=False)
    return [(text, row, column) for text, row, column in json.loads(answers.read_text())]


def test_commands_do_what_they_do_in_vim(tmp_path: Path) -> None:
    asked = cases()
    found = [after(*case) for case in asked]
    typed = [
        (text, row, column, f"{keys}{TYPED}\x1b" if inserts else keys)
        for (text, row, column, keys), (_, inserts) in zip(asked, found, strict=True)
    ]
    theirs = of_vim(typed, tmp_path)
    wrong = [
        f"{case}: {ours}, vim: {vim}"
        for case, (ours, _), vim in zip(typed, found, theirs, strict=True)
        if ours != vim
    ]
    assert not wrong, f"{len(wrong)} of {len(asked)}\n" + "\n".join(wrong[:40])


def edited(text: str, keys: str) -> str:
    """A text after keys, with the cursor before its character."""
    editor = editor_at(text)
    type_keys(editor, keys)
    return f"{editor.text[: editor.cursor]}|{editor.text[editor.cursor :]}"


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ("f,di(", "call(|)"),
        ("fbci[1\x1b", "call(a, [|1], 'd')"),
        ("fbda[", "call(a, |, 'd')"),
        ("di'", "call(a, [b, c], '|')"),
        ("fbvi[y", "call(a, [|b, c], 'd')"),
        ("$da{", "call(a, [b, c], 'd'|)"),
    ],
)
def test_what_is_between_brackets_and_quotes(keys: str, shown: str) -> None:
    assert edited("call(a, [b, c], 'd')", keys) in (shown, shown.replace("'|'", "|''"))


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ("dwu", "|one two\nthree"),
        ("xxxuu", "|ne two\nthree"),
        ("xxxuu\x12", "|e two\nthree"),
        ("xxx2u2\x12", "| two\nthree"),
        ("ihello\nyou\x1bu", "|one two\nthree"),
        ("cwten\x1bjddku", "|ten two\nthree"),
        ("cwten\x1bjddkuu", "|one two\nthree"),
        ("3iab\x1bu", "|one two\nthree"),
        ("Atail\x1bj.", "one twotail\nthreetai|l"),
        ("Atail\x1bj.u", "one twotail\nthre|e"),
        ("cwten\x1bw.", "ten te|n\nthree"),
        ("xu\x12x\x12", "|e two\nthree"),
    ],
)
def test_undo_takes_back_a_whole_change(keys: str, shown: str) -> None:
    assert edited("one two\nthree", keys).replace("|", "") == shown.replace("|", "")


def test_undo_does_not_lead_beyond_another_text() -> None:
    editor = editor_at("one two")
    type_keys(editor, "dw")
    editor.begin("three")
    type_keys(editor, "uuu")
    assert editor.text == "three"


def test_a_new_text_is_typed_and_undone_as_one_change() -> None:
    editor = VimEditor()
    assert editor.mode is Mode.INSERT
    type_keys(editor, "what now\x1bbD")
    assert (editor.text, editor.mode) == ("what ", Mode.NORMAL)
    type_keys(editor, "u")
    assert editor.text == "what now"
    type_keys(editor, "u")
    assert editor.text == ""


def test_what_the_widget_changes_is_undone_like_a_command() -> None:
    editor = editor_at("one")
    editor.load("one, pasted", 11)
    type_keys(editor, "x")
    type_keys(editor, "uu")
    assert editor.text == "one"


def test_escape_has_a_meaning_outside_normal_mode_only() -> None:
    editor = editor_at("one two")
    assert not editor.press("escape")
    for keys, mode in (("v", Mode.VISUAL), ("V", Mode.LINES), ("A", Mode.INSERT)):
        type_keys(editor, keys)
        assert editor.mode is mode
        assert editor.press("escape")
        assert editor.mode is Mode.NORMAL
    type_keys(editor, '2"+d')
    assert editor.pending == '2"+d'
    assert editor.press("escape")
    assert (editor.pending, editor.text) == ("", "one two")


def test_copied_text_leaves_the_editor_and_deleted_text_does_not() -> None:
    copied: list[str] = []
    editor = VimEditor(copy=copied.append, clipboard=lambda: "from elsewhere")
    editor.begin("one two\nthree")
    type_keys(editor, "\x1bggdw")
    type_keys(editor, "yyjyiwvly")
    assert copied == ["two\n", "three", "th"]
    type_keys(editor, '"+P')
    assert editor.text == "two\nfrom elsewherethree"
    type_keys(editor, "u$p")
    assert editor.text == "two\nthreeth"


def test_a_selection_of_the_mouse_is_one_of_vim() -> None:
    editor = editor_at("one two three")
    editor.select(4, 8)
    assert (editor.mode, editor.selection) == (Mode.VISUAL, (4, 8))
    type_keys(editor, "d")
    assert editor.text == "one three"
    editor.select(4, 0)
    type_keys(editor, "d")
    assert editor.text == "three"
    editor.select(2, 2)
    assert (editor.mode, editor.cursor) == (Mode.NORMAL, 2)


def test_keys_of_others_are_left_to_them() -> None:
    editor = editor_at("one two")
    for key in ("ctrl+x", "alt+t", "f1", "tab", "enter"):
        assert not editor.press(key)
    type_keys(editor, "d")
    assert not editor.press("ctrl+x")
    type_keys(editor, "w")
    assert editor.text == "one two"
    type_keys(editor, "0r")
    assert editor.press("enter")
    assert editor.text == "\nne two"


def test_counts_end_somewhere() -> None:
    editor = editor_at("0123456789")
    for keys in ("99999999w", "99999999b", "999999{", "999999j", "999999f9", "yy999999p"):
        type_keys(editor, keys)
    assert len(editor.text) < 2 * LARGEST
    type_keys(editor, "999999ix\x1b")
    assert len(editor.text) < 3 * LARGEST
