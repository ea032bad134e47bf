"""Reads the strips out of Textual's screen updates, as Textual itself would write them."""

from collections.abc import Iterator

from textual._compositor import ChopsUpdate, LayoutUpdate

from quarterdeck.tui.frames.screen import Placed

Update = LayoutUpdate | ChopsUpdate


def placed_strips(update: Update) -> Iterator[Placed]:
    """The strips of an update, row by row, from left to right."""
    match update:
        case LayoutUpdate():
            return _layout(update)
        case ChopsUpdate():
            return _chops(update)


def _layout(update: LayoutUpdate) -> Iterator[Placed]:
    for y, strips in enumerate(update.strips, update.region.y):
        x = update.region.x
        for strip in strips:
            # Nothing is drawn where no widget is.
            if strip is not None:  # pyright: ignore[reportUnnecessaryComparison]
                yield Placed(y, x, strip)
                x += strip.cell_length


def _chops(update: ChopsUpdate) -> Iterator[Placed]:
    for y, left, right in update.spans:
        chops = update.chops[y].items()
        for end, (x, strip) in zip(update.chop_ends[y], chops, strict=False):
            if strip is None or x >= right or end <= left:
                continue
            whole = x >= left and end <= right
            yield Placed(y, x, strip if whole else strip.crop(0, min(end, right) - x))
