"""Markdown that grows at its end."""

from markdown_it.token import Token

from quarterdeck.tui.transcript_view.lines import Line
from quarterdeck.tui.transcript_view.markdown import draw, parse


class Prose:
    """Rows of one text at one width.

    Everything before the last top-level block can no longer change when text is appended, so its
    rows are kept, and only the open last block is parsed again.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._frozen = ""
        self._rows: list[Line] = []

    def rows(self, text: str) -> list[Line]:
        """The rows of the whole text."""
        if not text.startswith(self._frozen):
            self._frozen, self._rows = "", []
        tail = text[len(self._frozen) :]
        tokens = parse(tail)
        last = max((i for i, token in enumerate(tokens) if _begins(token)), default=0)
        if last:
            start = (tokens[last].map or [0])[0]
            self._rows = self._joined(draw(tokens[:last], self.width))
            self._frozen += "".join(row + "\n" for row in tail.split("\n")[:start])
        return self._joined(draw(tokens[last:], self.width))

    def _joined(self, rows: list[Line]) -> list[Line]:
        if self._rows and rows:
            return [*self._rows, (), *rows]
        return self._rows or rows


def _begins(token: Token) -> bool:
    return token.level == 0 and token.nesting >= 0
