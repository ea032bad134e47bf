"""Colors of a whole file, made beside the screen's own work.

Unlike a block of code in a talk, a file is there at once: it is lexed from its beginning, so that
a text over many lines keeps its color.
"""

from typing import TYPE_CHECKING

from quarterdeck.tui.transcript_view.code import role_of
from quarterdeck.tui.transcript_view.lines import Line, Role, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pygments.lexer import Lexer

LARGEST = 400_000
"""Characters of a file that is colored: more would take seconds."""
LONGEST_LINE = 2_000
"""Characters of a line in a file that is colored: made by a program, and slow to look through."""


def can_color(lines: "Sequence[str]") -> bool:
    """Whether a file is one that is colored."""
    size = sum(len(line) + 1 for line in lines)
    return size <= LARGEST and all(len(line) <= LONGEST_LINE for line in lines)


def color(name: str, lines: "Sequence[str]") -> list[Line] | None:
    """The lines as colored spans; None for a kind of file that is not known. Blocking."""
    lexer = _lexer_for(name, lines[0] if lines else "")
    if lexer is None:
        return None
    rows: list[list[Span]] = [[]]
    for _, token, text in lexer.get_tokens_unprocessed("\n".join(lines)):
        role = role_of(str(token))
        for number, piece in enumerate(text.split("\n")):
            if number:
                rows.append([])
            if piece:
                _put(rows[-1], piece, role)
    return [tuple(row) for row in rows] if len(rows) == len(lines) else None


def _put(row: list[Span], text: str, role: Role) -> None:
    """Neighbours of one look are one span."""
    if row and row[-1].role == role:
        row[-1] = row[-1]._replace(text=row[-1].text + text)
    else:
        row.append(Span(text, role))


def _lexer_for(name: str, first_line: str) -> "Lexer | None":
    from pygments import lexers

    # The package's own types leave these open.
    find: Callable[[str], type[Lexer] | None] = lexers.find_lexer_class_for_filename  # pyright: ignore[reportUnknownMemberType, reportAssignmentType, reportUnknownVariableType]
    found = find(name)
    if found is None and first_line.startswith("#!"):
        found = find(_script_name(first_line))
    return found() if found is not None else None


def _script_name(first_line: str) -> str:
    """A name that tells the language of a script, by its `#!` line."""
    program = first_line.rpartition("/")[2].removeprefix("env ").split()
    word = program[0].rstrip("0123456789.") if program else ""
    endings = {"python": "py", "node": "js", "ruby": "rb", "perl": "pl"}
    return f"script.{endings.get(word, 'sh' if word.endswith('sh') else 'txt')}"
