"""Vim's keys for a text and a cursor. Knows no widget and no screen.

    editor.load(text, cursor)      what the widget shows now
    if editor.press("d"):          whether the key is one of vim's
        show(editor.text, editor.cursor, editor.selection)

In insert mode the widget edits the text itself. The editor takes Escape only, and learns then from the
difference what was typed, so that it can be repeated and undone as one change.

A command is a generator that asks for its keys one by one, such as an operator that waits for a motion.
"""

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from quarterdeck.tui.vim.motions import SAME, Motions, TextRange, whole_lines
from quarterdeck.tui.vim.text import first_text, last_column, line_end, line_start, lines_away

MOST_UNDONE = 200
"""Changes that can be undone."""
LARGEST = 100_000
"""Characters that a count may insert: a larger one is a slip of the finger."""


class Mode(StrEnum):
    """What keys mean now."""

    INSERT = "insert"
    NORMAL = "normal"
    VISUAL = "visual"
    LINES = "visual line"


Keys = Generator[None, str]
"""A command that waits for its next key."""


@dataclass(frozen=True)
class Register:
    """What was deleted or copied last; of whole lines without the last line break."""

    text: str = ""
    lines: bool = False


@dataclass(frozen=True)
class Snapshot:
    """A text that undo leads back to."""

    text: str
    cursor: int


@dataclass(frozen=True)
class Change:
    """The last change, as `.` repeats it: its keys without the count, and what was typed after them."""

    keys: tuple[str, ...]
    count: int
    typed: str = ""


# the editor

_SHORT: Final = {
    "x": "dl",
    "delete": "dl",
    "X": "dh",
    "s": "cl",
    "S": "cc",
    "D": "d$",
    "C": "c$",
    "Y": "yy",
}
"""Commands that are an operator with its motion."""
_VISUAL_LINES: Final = {"X": "d", "D": "d", "Y": "y", "C": "c", "S": "c", "R": "c"}
"""Commands that take whole lines of a selection."""
_SPECIAL: Final = frozenset({*SAME, "delete", "ctrl+r", "enter"})
"""Keys without a character of their own that are commands, or parts of one."""
_KEEP_COLUMN: Final = frozenset({"j", "k", "down", "up", "$", "end"})


def _repeated(text: str, times: int) -> str:
    return text * min(times, max(1, LARGEST // max(1, len(text))))


class VimEditor:
    """A text that is edited by vim's keys.

    `copy` is given what `y` copies; `clipboard` is what `"+p` inserts. `whole` widens a part so that it
    cuts nothing that is one thing for the widget.
    """

    def __init__(
        self,
        copy: Callable[[str], None] = lambda _: None,
        clipboard: Callable[[], str] = lambda: "",
        whole: Callable[[str, int, int], tuple[int, int]] = lambda _, start, end: (start, end),
    ) -> None:
        self.text = ""
        self.cursor = 0
        self.mode = Mode.INSERT
        self.pending = ""
        """The keys of a command that is not complete."""
        self._copy, self._clipboard, self._whole = copy, clipboard, whole
        self._anchor = 0
        """The other end of a selection, where the cursor was."""
        self._motions = Motions()
        self._register = Register()
        self._undone: list[Snapshot] = []
        self._done: list[Snapshot] = []
        self._change: Change | None = None
        self._repeating = False
        self._inserting: tuple[Snapshot, Change] | None = None
        """The text when insert mode began, and the change that led there."""
        self._before = Snapshot("", 0)
        """The text before that change."""
        self._command: Keys | None = None
        self.begin("")

    # the widget's side

    def load(self, text: str, cursor: int) -> None:
        """Take the text and the cursor as the widget has them."""
        before = self._snapshot()
        self.text = text
        self.cursor = max(0, min(cursor, len(text)))
        if self.mode is not Mode.INSERT:
            self._keep(before)  # a paste, for example

    def begin(self, text: str) -> None:
        """Begin with another text: nothing can be undone. An empty one is to be typed."""
        self._done.clear()
        self._undone.clear()
        self._cancel()
        self.text, self.cursor = text, 0
        if not text or self.mode is Mode.INSERT:
            self._begin_insert(self._snapshot(), Change(("i",), 1))
        else:
            self.mode = Mode.NORMAL

    def select(self, start: int, end: int) -> None:
        """Take a selection of the widget, made by the mouse; `end` has the cursor."""
        self.mode = Mode.NORMAL if start == end else Mode.VISUAL
        self._anchor, self.cursor = (start, end - 1) if start < end else (start - 1, end)
        if start == end:
            self.cursor = start
            self._settle()

    @property
    def selection(self) -> tuple[int, int] | None:
        """The selected part of the text, or None."""
        match self.mode:
            case Mode.VISUAL:
                first, last = sorted((self._anchor, self.cursor))
                return first, min(last + 1, len(self.text))
            case Mode.LINES:
                first, last = sorted((self._anchor, self.cursor))
                return line_start(self.text, first), line_end(self.text, last)
            case _:
                return None

    @property
    def backwards(self) -> bool:
        """Whether the cursor is at the start of the selection."""
        return self.cursor < self._anchor

    @property
    def escapes(self) -> bool:
        """Whether Escape has a meaning: a mode to leave, or a command to cancel."""
        return self.mode is not Mode.NORMAL or self._command is not None

    def press(self, key: str) -> bool:
        """Handle a key, by its character or Textual's name; return whether it is one of vim's."""
        if key == "escape":
            return self._escape()
        if self.mode is Mode.INSERT:
            return False
        if len(key) > 1 and key not in _SPECIAL:
            self._cancel()
            return False
        if key == "enter" and self._command is None:
            return False
        self._feed(key)
        return True

    def _feed(self, key: str) -> None:
        if self._command is None:
            self._command = self._normal() if self.mode is Mode.NORMAL else self._visual()
            next(self._command)
        self.pending += key if len(key) == 1 else ""
        try:
            self._command.send(key)
        except StopIteration:
            self._cancel()
            self._settle()
            if key not in _KEEP_COLUMN:
                self._motions.keep_column(self.text, self.cursor)

    def _cancel(self) -> None:
        if self._command is not None:
            self._command.close()
        self._command, self.pending = None, ""

    def _settle(self) -> None:
        """Keep the cursor on a character, as in all modes but insert mode."""
        if self.mode is not Mode.INSERT:
            self.cursor = min(self.cursor, last_column(self.text, self.cursor))

    def _escape(self) -> bool:
        if not self.escapes:
            return False
        waiting = self._command is not None
        self._cancel()
        if self.mode is Mode.INSERT:
            self._end_insert()
        elif not waiting or self.mode is not Mode.NORMAL:
            self.mode = Mode.NORMAL
        self._settle()
        self._motions.keep_column(self.text, self.cursor)
        return True

    # changes, and the way back

    def _snapshot(self) -> Snapshot:
        return Snapshot(self.text, self.cursor)

    def _keep(self, before: Snapshot) -> None:
        """Make a change one that can be undone."""
        if before.text != self.text:
            self._done = [*self._done[-MOST_UNDONE + 1 :], before]
            self._undone.clear()

    def _changed(self, before: Snapshot, change: Change) -> None:
        self._keep(before)
        if not self._repeating:
            self._change = change

    def _replace(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]

    def _begin_insert(self, before: Snapshot, change: Change) -> None:
        self.mode = Mode.INSERT
        self._before = before
        self._inserting = self._snapshot(), change

    def _end_insert(self) -> None:
        self.mode = Mode.NORMAL
        inserting, self._inserting = self._inserting, None
        if inserting is not None:
            begun, change = inserting
            typed = self._typed_since(begun)
            opens = "\n" if change.keys[0] in "oO" else ""
            again = change.count - 1 if change.keys[0] in "iaIAoO" else 0
            more = _repeated(opens + typed, again)
            self._replace(self.cursor, self.cursor, more)
            self.cursor += len(more)
            self._changed(self._before, replace(change, typed=typed))
        if self.cursor > line_start(self.text, self.cursor):
            self.cursor -= 1

    def _typed_since(self, begun: Snapshot) -> str:
        """Return what was typed where insert mode began; empty when something else was changed."""
        before, after = begun.text[: begun.cursor], begun.text[begun.cursor :]
        if len(self.text) < len(begun.text):
            return ""
        if not (self.text.startswith(before) and self.text.endswith(after)):
            return ""
        return self.text[len(before) : len(self.text) - len(after)]

    def _undo(self, count: int, back: list[Snapshot], forth: list[Snapshot]) -> None:
        for _ in range(count):
            if not back:
                return
            forth.append(self._snapshot())
            last = back.pop()
            self.text, self.cursor = last.text, last.cursor

    def _repeat(self, count: int | None) -> None:
        change = self._change
        if change is None:
            return
        self._command, self.pending = None, ""  # this command; those to repeat follow
        count = count or change.count
        self._repeating = True
        self._change = replace(change, count=count)
        keys = (*str(count), *change.keys) if count > 1 else change.keys
        try:
            for key in keys:
                self._feed(key)
            if self.mode is Mode.INSERT:
                self._replace(self.cursor, self.cursor, change.typed)
                self.cursor += len(change.typed)
                self._end_insert()
        finally:
            self._repeating = False

    # commands

    def _count(self, key: str) -> Generator[None, str, tuple[int | None, str]]:
        """Read a count; return it, None without one, and the key after it."""
        digits = ""
        while key.isdecimal() and key.isascii() and (digits or key != "0"):
            digits += key
            key = yield
        return (int(digits[:6]) if digits else None), key

    def _normal(self) -> Keys:
        count, key = yield from self._count((yield))
        register = self._register
        if key == '"':
            name = yield
            register = Register(self._clipboard()) if name in "+*" else register
            more, key = yield from self._count((yield))
            count = count if more is None else more
        times = count or 1
        match key:
            case "u":
                self._undo(times, self._done, self._undone)
            case "ctrl+r":
                self._undo(times, self._undone, self._done)
            case ".":
                self._repeat(count)
            case "v" | "V":
                self.mode = Mode.VISUAL if key == "v" else Mode.LINES
                self._anchor = self.cursor
            case "i" | "a" | "I" | "A" | "o" | "O":
                self._insert(key, times)
            case "p" | "P" | "J" | "~":
                self._edit(key, times, register)
            case "r":
                yield from self._replace_characters(times)
            case "d" | "c" | "y":
                yield from self._operate(key, count, (yield))
            case _ if key in _SHORT:
                yield from self._operate(_SHORT[key][0], count, _SHORT[key][1])
            case _:
                span, _ = yield from self._read(key, count, "")
                if span is not None:
                    self.cursor = span.target

    def _edit(self, key: str, times: int, register: Register) -> None:
        before = self._snapshot()
        match key:
            case "J":
                self._join(max(2, times))
            case "~":
                end = min(self.cursor + times, line_end(self.text, self.cursor))
                self._replace(self.cursor, end, self.text[self.cursor : end].swapcase())
                self.cursor = end
            case _:
                self._put(register, times, after=key == "p")
        if before != self._snapshot():
            self._changed(before, Change((key,), times))

    def _insert(self, key: str, times: int) -> None:
        before = self._snapshot()
        text, at = self.text, self.cursor
        match key:
            case "a":
                self.cursor = min(at + 1, line_end(text, at))
            case "I":
                start, end = line_start(text, at), line_end(text, at)
                line = text[start:end]
                self.cursor = start + len(line) - len(line.lstrip())
            case "A":
                self.cursor = line_end(text, at)
            case "o":
                self.cursor = line_end(text, at) + 1
                self._replace(self.cursor - 1, self.cursor - 1, "\n")
            case "O":
                self.cursor = line_start(text, at)
                self._replace(self.cursor, self.cursor, "\n")
            case _:
                pass
        self._begin_insert(before, Change((key,), times))

    def _replace_characters(self, times: int) -> Keys:
        key = yield
        by = "\n" if key == "enter" else key
        end = self.cursor + times
        if len(by) != 1 or end > line_end(self.text, self.cursor):
            return
        before = self._snapshot()
        self._replace(self.cursor, end, "\n" if by == "\n" else by * times)
        self.cursor += 1 if by == "\n" else times - 1
        self._changed(before, Change(("r", key), times))

    def _join(self, lines: int) -> None:
        for _ in range(lines - 1):
            end = line_end(self.text, self.cursor)
            if end == len(self.text):
                return
            following = end + 1
            while following < len(self.text) and self.text[following] in " \t":
                following += 1
            before = self.text[end - 1 : end]
            apart = before not in ("", " ", "\t", "\n") and self.text[following : following + 1]
            self._replace(end, following, " " if apart and apart not in ")\n" else "")
            self.cursor = end

    def _put(self, register: Register, times: int, *, after: bool) -> None:
        if not register.text and not register.lines:
            return
        if register.lines:
            whole = _repeated(f"{register.text}\n", times)[:-1]
            if after:
                at = line_end(self.text, self.cursor)
                self._replace(at, at, f"\n{whole}")
                self.cursor = first_text(self.text, at + 1)
            else:
                at = line_start(self.text, self.cursor)
                self._replace(at, at, f"{whole}\n")
                self.cursor = first_text(self.text, at)
        else:
            whole = _repeated(register.text, times)
            at = self.cursor + (after and self.cursor < line_end(self.text, self.cursor))
            self._replace(at, at, whole)
            self.cursor = at if "\n" in whole else at + len(whole) - 1

    # operators

    def _operate(self, operator: str, count: int | None, key: str) -> Keys:
        more, key = yield from self._count(key)
        if more is not None:
            count = more * (count or 1)
        if key == operator:
            below = lines_away(self.text, self.cursor, (count or 1) - 1)
            if below is None:
                return
            span = TextRange(self.cursor, below, self.cursor, lines=True)
            keys: tuple[str, ...] = (key,)
        else:
            found, keys = yield from self._read(key, count, operator)
            if found is None:
                return
            span = whole_lines(self.text, found) if operator == "d" else found
        change = Change((operator, *keys), count or 1)
        self._apply(operator, span, change)

    def _apply(self, operator: str, span: TextRange, change: Change) -> None:
        """Carry out an operator on a part of the text."""
        before = self._snapshot()
        start, end = sorted((span.start, span.end))
        if span.lines:
            start, end = line_start(self.text, start), line_end(self.text, end)
        elif start == end and operator != "c":
            return
        else:
            start, end = self._whole(self.text, start, end)
        if start != end or span.lines:
            self._register = Register(self.text[start:end], span.lines)
        if operator == "y":
            self._copy(self.text[start:end] + ("\n" if span.lines else ""))
            self.cursor = min(span.target, self.cursor) if span.lines else start
            return
        if operator == "d" and span.lines:
            self._delete_lines(start, end)
        else:
            self._replace(start, end, "")
            self.cursor = start
        if operator == "c":
            self._begin_insert(before, change)
        else:
            self._changed(before, change)

    def _delete_lines(self, start: int, end: int) -> None:
        if end < len(self.text):
            end += 1
        else:
            start = max(0, start - 1)
        self._replace(start, end, "")
        self.cursor = first_text(self.text, start)

    def _read(
        self, key: str, count: int | None, operator: str
    ) -> Generator[None, str, tuple[TextRange | None, tuple[str, ...]]]:
        objects = bool(operator) or self.mode is not Mode.NORMAL
        return self._motions.read(self.text, self.cursor, key, count, operator, objects=objects)

    # visual modes

    def _visual(self) -> Keys:
        count, key = yield from self._count((yield))
        first, last = self.selection or (0, 0)
        lines = self.mode is Mode.LINES
        if key in _VISUAL_LINES:
            self.mode = Mode.LINES
            first, last = self.selection or (0, 0)
            lines, key = True, _VISUAL_LINES[key]
        match _SHORT[key][0] if key in ("x", "s", "delete") else key:
            case "v" | "V":
                mode = Mode.VISUAL if key == "v" else Mode.LINES
                self.mode = Mode.NORMAL if mode is self.mode else mode
            case "o":
                self._anchor, self.cursor = self.cursor, self._anchor
            case "d" | "c" | "y" as operator:
                change = self._as_keys(operator)
                self.mode, self.cursor = Mode.NORMAL, first
                self._apply(operator, TextRange(first, last, first, lines), change)
            case "J":
                count = self._selected_lines
                self.mode, self.cursor, before = Mode.NORMAL, first, self._snapshot()
                self._join(max(2, count))
                self._changed(before, Change(("J",), max(2, count)))
            case "r" | "~":
                by = (yield) if key == "r" else ""
                if key == "~" or len(by) == 1:
                    self._rewrite(first, last, by, self._as_keys(key, *by))
            case "p" | "P":
                self._put_over(first, last, lines)
            case _:
                span, keys = yield from self._read(key, count, "")
                if span is None:
                    return
                self.cursor = span.target
                if keys[0] in ("i", "a"):
                    self._anchor, self.cursor = span.start, max(span.start, span.end - 1)

    @property
    def _selected_lines(self) -> int:
        return self.text.count("\n", *sorted((self._anchor, self.cursor))) + 1

    def _as_keys(self, *operator: str) -> Change:
        """Return the change of a selection, as one of as much text at another place."""
        first, last = self.selection or (0, 0)
        lines = self._selected_lines - 1
        if self.mode is Mode.LINES:
            return Change(("V", *"j" * lines, *operator), 1)
        column = last - 1 - line_start(self.text, last - 1)
        way = "j" * lines + "0" + "l" * column if lines else "l" * (last - first - 1)
        return Change(("v", *way, *operator), 1)

    def _rewrite(self, first: int, last: int, by: str, change: Change) -> None:
        self.mode, before = Mode.NORMAL, self._snapshot()
        part = self.text[first:last]
        self._replace(first, last, re.sub(".", lambda _: by, part) if by else part.swapcase())
        self.cursor = first
        self._changed(before, change)

    def _put_over(self, first: int, last: int, lines: bool) -> None:
        """Replace the selection by the register, which takes the selection in turn."""
        register, before = self._register, self._snapshot()
        part = self.text[first:last]
        self.mode = Mode.NORMAL
        text = register.text
        if register.lines and not lines:
            text = f"\n{text}\n"
        self._replace(first, last, text)
        self._register = Register(part, lines)
        at = first if lines else first + 1 if register.lines else first + max(0, len(text) - 1)
        self.cursor = first_text(self.text, at) if lines or register.lines else at
        self._keep(before)
