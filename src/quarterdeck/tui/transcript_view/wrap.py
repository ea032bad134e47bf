"""Folds styled text into rows of a width, in cells: wide characters count two."""

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len, chop_cells, set_cell_size

from quarterdeck.tui.transcript_view.lines import Line, Role, Span, untabbed

_WORDS = re.compile(r"[^\S\u00a0]+|[^\s]+|\s+")


def wrap(spans: Iterable[Span], width: int) -> list[Line]:
    """Rows of at most `width` cells, broken between words; words longer than a row are cut."""
    width = max(2, width)
    rows = _Rows(width)
    for span in spans:
        text = untabbed(span.text)
        if rows.used + len(text) <= width and text.isascii():
            rows.put(span, text, len(text))
            continue
        for word in _WORDS.findall(text):
            rows.word(span, word)
    return rows.finish()


def wrap_hard(spans: Iterable[Span], width: int) -> list[Line]:
    """Rows cut at exactly the width: code and output, where blanks count."""
    width = max(2, width)
    rows = _Rows(width)
    for span in spans:
        text = untabbed(span.text)
        if rows.used + len(text) <= width and text.isascii():
            rows.put(span, text, len(text))
        else:
            rows.cut(span, text)
    return rows.finish()


def indent(rows: Iterable[Line], first: Line, rest: Line) -> Iterator[Line]:
    """Puts a marker before the first row and its like before the others."""
    for number, row in enumerate(rows):
        yield (rest if number else first) + row


def fit(spans: Line, width: int) -> Line:
    """One row: cut with an ellipsis when it is too long."""
    if sum(cell_len(span.text) for span in spans) <= width:
        return spans
    kept: list[Span] = []
    left = max(0, width - 1)
    for span in spans:
        size = cell_len(span.text)
        if size > left:
            kept.append(span._replace(text=set_cell_size(span.text, left)))
            break
        kept.append(span)
        left -= size
    return (*kept, Span("\u2026", Role.DIM))


class _Rows:
    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: list[Line] = []
        self._row: list[Span] = []
        self.used = 0

    def put(self, span: Span, text: str, cells: int) -> None:
        if not text:
            return
        if self._row and self._row[-1][1:] == span[1:]:
            self._row[-1] = span._replace(text=self._row[-1].text + text)
        else:
            self._row.append(span._replace(text=text))
        self.used += cells

    def word(self, span: Span, word: str) -> None:
        cells = cell_len(word)
        if self.used + cells <= self._width:
            self.put(span, word, cells)
        elif word.isspace():
            self._break()
        elif cells > self._width or (cells > len(word) and cells > self._width - self.used):
            # Scripts without blanks break anywhere, so the row is filled first.
            self.cut(span, word)
        else:
            self._break()
            self.put(span, word, cells)

    def cut(self, span: Span, text: str) -> None:
        left = self._width - self.used
        # A row holds few characters, so only as many are looked at.
        first = (chop_cells(text[: left * 4 + 8], left) or [""])[0] if left > 1 else ""
        if cell_len(first) > left:
            first = ""
        self.put(span, first, cell_len(first))
        for piece in chop_cells(text[len(first) :], self._width):
            self._break()
            self.put(span, piece, cell_len(piece))

    def _break(self) -> None:
        if self._row and self._row[-1].text.endswith(" "):
            last = self._row[-1]
            self._row[-1] = last._replace(text=last.text.rstrip(" "))
        self._rows.append(tuple(span for span in self._row if span.text))
        self._row = []
        self.used = 0

    def finish(self) -> list[Line]:
        if self._row or not self._rows:
            self._rows.append(tuple(self._row))
        return self._rows
