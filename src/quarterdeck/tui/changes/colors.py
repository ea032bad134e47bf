"""The colors of program text in a difference, found for the lines that are looked at."""

from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from quarterdeck.store.changes_model import Side
from quarterdeck.tui.changes.model import Section
from quarterdeck.tui.changes.visible import visible
from quarterdeck.tui.transcript_view.code import code_lines
from quarterdeck.tui.transcript_view.lines import Line, Role, line

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 200
"""Lines whose colors are found at once; a construct that reaches over an end loses its color."""
_KEPT = 40


class Colors:
    """Colored lines of files. A line that went has its colors from the old file, others the new."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int, Side], dict[int, Line]] = OrderedDict()

    def clear(self) -> None:
        """Other files."""
        self._kept.clear()

    def line(self, section: Section, index: int) -> Line:
        """The spans of a line."""
        numbered = section.lines[index]
        key = (id(section.change), index // CHUNK, numbered.side)
        chunk = self._kept.get(key)
        if chunk is None:
            chunk = self._kept[key] = _chunk(section, index // CHUNK * CHUNK, numbered.side)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return chunk[index]


def _chunk(section: Section, begin: int, side: Side) -> dict[int, Line]:
    own = "-" if side == Side.OLD else "+"
    lines = section.lines
    indices = [
        at for at in range(begin, min(begin + CHUNK, len(lines))) if lines[at].sign in (" ", own)
    ]
    texts = [visible(lines[at].text) for at in indices]
    path = section.change.path if section.change is not None else ""
    colored = code_lines("\n".join(texts), language_of(path))
    if len(colored) != len(texts):
        colored = [()] * len(texts)
    return {
        at: _checked(spans, text) for at, spans, text in zip(indices, colored, texts, strict=True)
    }


def _checked(spans: Line, text: str) -> Line:
    """A review shows what is there, whatever a language's rules make of it."""
    return spans if "".join(span.text for span in spans) == text else line(text, Role.CODE)


def language_of(path: str) -> str:
    """What pygments calls the language of a file, or nothing."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return _language(f"x.{suffix}" if dot and stem else name)


@lru_cache(maxsize=256)
def _language(name: str) -> str:
    from pygments import lexers

    # The package's own types leave this open.
    find = cast("Callable[[str], Any]", lexers.find_lexer_class_for_filename)
    found = find(name)
    return str(found.aliases[0]) if found is not None and found.aliases else ""
