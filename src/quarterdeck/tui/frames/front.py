"""A compositor that draws no more widgets than can be seen in what has changed.

Textual's compositor draws every widget whose container a change lies in, from the front to the back:
for one row of a terminal that is the terminal and all the containers around it, in full, and the key
line too, and then takes the terminal's row. Here it leaves out what lies beside the change, and stops
at the first widget that covers it.
"""

from collections.abc import Iterable

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


class FrontCompositor(Compositor):
    """Leaves out what is beside and behind."""

    def _get_renders(
        self, crop: Region | None = None
    ) -> Iterable[tuple[Region, Region, list[Strip]]]:
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip)
            if not seen or (crop is not None and not crop.overlaps(seen)):
                continue
            yield region, clip, widget.render_lines(seen.translate(-region.offset))
            if crop is not None and seen.contains_region(crop):
                return
