"""Syntax highlighting: of code in a message, of a change, and of a whole file."""

from functools import lru_cache
from time import thread_time
from typing import TYPE_CHECKING, Any, cast

from quarterdeck.tui.kit.spans import Line, Span, TextRole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pygments.lexer import Lexer

_CHUNK = 200
"""Lines highlighted at once. While code streams in, only the last chunk is lexed again; the price
is that a construct reaching over a chunk's end loses its color there."""
_LONGEST_LINE = 2_000
"""Characters of a highlighted line: a longer one was generated, and is slow to lex."""
_LONGEST_CODE = 200_000
_LARGEST_FILE = 400_000
"""Characters of a highlighted file: more would take seconds."""
_CODE_SECONDS, _FILE_SECONDS = 0.25, 4.0
"""Processor time for code in a message, during which no key is answered, and for a file. Some lexers take time
with the square of the length, and anyone may have written what they read."""

_ROLES = {
    "Token.Keyword": TextRole.KEYWORD,
    "Token.Operator.Word": TextRole.KEYWORD,
    "Token.Literal.String": TextRole.STRING,
    "Token.Literal.Number": TextRole.NUMBER,
    "Token.Comment": TextRole.COMMENT,
    "Token.Name.Function": TextRole.NAME,
    "Token.Name.Class": TextRole.NAME,
    "Token.Name.Decorator": TextRole.NAME,
    "Token.Name.Tag": TextRole.NAME,
    "Token.Name.Builtin": TextRole.NAME,
    "Token.Generic.Inserted": TextRole.ADDED,
    "Token.Generic.Deleted": TextRole.REMOVED,
    "Token.Generic.Heading": TextRole.HEADING,
}


def code_lines(source: str, language: str) -> list[Line]:
    """Return a line of spans for each line of the source."""
    rows = source.split("\n")
    if len(source) > _LONGEST_CODE or any(len(row) > _LONGEST_LINE for row in rows):
        return [(Span(row, TextRole.CODE),) for row in rows]
    colored: list[Line] = []
    for start in range(0, len(rows), _CHUNK):
        chunk = _colored("\n".join(rows[start : start + _CHUNK]), language)
        if chunk is None:
            return [*colored, *((Span(row, TextRole.CODE),) for row in rows[start:])]
        colored += chunk
    return colored


@lru_cache(maxsize=256)
def _colored(source: str, language: str) -> list[Line] | None:
    lexer = _lexer(language)
    return None if lexer is None else _rows(lexer, source, _CODE_SECONDS)


def can_color(lines: "Sequence[str]") -> bool:
    """Return whether a file is highlighted."""
    size = sum(len(line) + 1 for line in lines)
    return size <= _LARGEST_FILE and all(len(line) <= _LONGEST_LINE for line in lines)


def file_lines(name: str, lines: "Sequence[str]") -> list[Line] | None:
    """Return the lines as colored spans; None for an unknown kind of file, or if it takes too long. Blocking.

    A file is complete: it is lexed from its start, so that a text over many lines keeps its
    color.
    """
    kind = _file_lexer(name)
    if kind is None and lines and lines[0].startswith("#!"):
        kind = _file_lexer(_script_name(lines[0]))
    if kind is None:
        return None
    rows = _rows(kind(), "\n".join(lines), _FILE_SECONDS)
    return rows if rows is not None and len(rows) == len(lines) else None


def _rows(lexer: "Lexer", source: str, seconds: float) -> list[Line] | None:
    """Return the lines as colored spans, None if it takes too long."""
    rows: list[list[Span]] = [[]]
    end = thread_time() + seconds
    for _, token, text in lexer.get_tokens_unprocessed(source):
        if thread_time() > end:
            return None
        role = role_of(str(token))
        for number, piece in enumerate(text.split("\n")):
            if number:
                rows.append([])
            row = rows[-1]
            if piece and row and row[-1].role == role:
                row[-1] = Span(row[-1].text + piece, role)
            elif piece:
                row.append(Span(piece, role))
    return [tuple(row) for row in rows]


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


def _file_lexer(name: str) -> "type[Lexer] | None":
    from pygments import lexers

    # The package's own types leave this open.
    find = cast("Callable[[str], Any]", lexers.find_lexer_class_for_filename)
    return cast("type[Lexer] | None", find(name))


def language_of(path: str) -> str:
    """Return pygments' name for the language of a file, or nothing."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return _language(f"x.{suffix}" if dot and stem else name)


@lru_cache(maxsize=256)
def _language(name: str) -> str:
    kind = _file_lexer(name)
    return str(kind.aliases[0]) if kind is not None and kind.aliases else ""


def _script_name(first_line: str) -> str:
    """Return a file name that identifies the language of a script, by its `#!` line."""
    program = first_line.rpartition("/")[2].removeprefix("env ").split()
    word = program[0].rstrip("0123456789.") if program else ""
    endings = {"python": "py", "node": "js", "ruby": "rb", "perl": "pl"}
    return f"script.{endings.get(word, 'sh' if word.endswith('sh') else 'txt')}"


@lru_cache(maxsize=512)
def role_of(token: str) -> TextRole:
    """Return the highlighter's name for a piece of program text."""
    while token:
        if role := _ROLES.get(token):
            return role
        token = token.rpartition(".")[0]
    return TextRole.CODE
