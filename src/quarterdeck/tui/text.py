"""Fitting text into cells."""

from rich.cells import cell_len, set_cell_size

from quarterdeck.transcript.clean import one_line

__all__ = ["fit", "one_line"]


def fit(text: str, width: int) -> str:
    """Harmless text in exactly `width` cells, cut with an ellipsis or padded with blanks."""
    text = one_line(text)
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, width - 1) + "…"
