"""Fitting text into cells."""

from textwrap import wrap

from rich.cells import cell_len, set_cell_size

from quarterdeck.transcript.text import one_line


def fit(text: str, width: int) -> str:
    """Return harmless text in exactly `width` cells, cut with an ellipsis or padded with blanks."""
    text = one_line(text)
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, width - 1) + "…"


def wrapped(text: str, width: int) -> list[str]:
    """Return a hint in lines of at most `width` characters; its own lines are kept apart."""
    return [row for line in text.splitlines() for row in wrap(line, max(1, width)) or [""]]


def money(amount: float, currency: str) -> str:
    """Return a formatted amount: `$0.42`, `$0.0007`, `1.20 EUR`."""
    digits = 2 if amount >= 0.01 else 4
    return (
        f"${amount:.{digits}f}"
        if currency == "USD"
        else f"{amount:.{digits}f} {one_line(currency)}"
    )
