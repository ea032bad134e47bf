"""Colors of program text, by pygments; imported only when the first code is seen."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from quarterdeck.tui.transcript_view.lines import Line, Role, Span, line
from quarterdeck.tui.transcript_view.wrap import indent, wrap_hard

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_CHUNK = 200
"""Lines highlighted at once. While code streams in, only the last chunk is lexed again; the price
is that a construct reaching over a chunk's end loses its color there."""
_LONGEST_LINE = 2_000
_LONGEST_CODE = 200_000

_ROLES = {
    "Token.Keyword": Role.KEYWORD,
    "Token.Operator.Word": Role.KEYWORD,
    "Token.Literal.String": Role.STRING,
    "Token.Literal.Number": Role.NUMBER,
    "Token.Comment": Role.COMMENT,
    "Token.Name.Function": Role.NAME,
    "Token.Name.Class": Role.NAME,
    "Token.Name.Decorator": Role.NAME,
    "Token.Name.Tag": Role.NAME,
    "Token.Name.Builtin": Role.NAME,
    "Token.Generic.Inserted": Role.ADDED,
    "Token.Generic.Deleted": Role.REMOVED,
    "Token.Generic.Heading": Role.HEADING,
}


def code_rows(source: str, info: str, width: int) -> list[Line]:
    """The rows of a fenced block, set in. `info`: the words after the opening fence."""
    language = info.split(maxsplit=1)[0] if info.strip() else ""
    rows = [row for code in code_lines(source, language) for row in wrap_hard(code, width - 2)]
    return list(indent(rows, line("  "), line("  ")))


def code_lines(source: str, language: str) -> list[Line]:
    """A line of spans for each line of the source."""
    rows = source.split("\n")
    if len(source) > _LONGEST_CODE or any(len(row) > _LONGEST_LINE for row in rows):
        return [(Span(row, Role.CODE),) for row in rows]
    colored: list[Line] = []
    for start in range(0, len(rows), _CHUNK):
        colored += _colored("\n".join(rows[start : start + _CHUNK]), language)
    return colored


@lru_cache(maxsize=256)
def _colored(source: str, language: str) -> tuple[Line, ...]:
    lexer = _lexer(language)
    if lexer is None:
        return tuple((Span(row, Role.CODE),) for row in source.split("\n"))
    rows: list[list[Span]] = [[]]
    for _, token, text in lexer.get_tokens_unprocessed(source):
        role = role_of(str(token))
        for number, piece in enumerate(text.split("\n")):
            if number:
                rows.append([])
            if piece:
                rows[-1].append(Span(piece, role))
    return tuple(tuple(row) for row in rows)


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    if not language:
        return None
    from pygments import lexers
    from pygments.util import ClassNotFound

    # The package's own types leave this open.
    find = cast("Callable[[str], Lexer]", lexers.get_lexer_by_name)  # pyright: ignore[reportUnknownMemberType]
    try:
        return find(language)
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def role_of(token: str) -> Role:
    """What a piece of program text is, by the highlighter's name for it."""
    while token:
        if role := _ROLES.get(token):
            return role
        token = token.rpartition(".")[0]
    return Role.CODE
