"""Keys reach a field through its queue; a command is carried out at once, and may be before them."""

import asyncio

from textual.widget import Widget


async def settled(*widgets: Widget) -> None:
    """Returns when each of them has taken in what was typed into it before."""
    for widget in widgets:
        taken = asyncio.Event()
        if widget.call_later(taken.set):
            await taken.wait()
