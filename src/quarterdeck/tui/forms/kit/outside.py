"""Editing the text of a field in the person's own editor."""

from typing import Any, cast

from textual.app import App
from textual.widget import Widget

from quarterdeck.tui.forms.kit.controls import Editor
from quarterdeck.tui.outside.copies import edit
from quarterdeck.tui.outside.programs import OutsideError
from quarterdeck.tui.text import one_line


async def edit_outside(field: Editor, name: str) -> None:
    """Hands the text of a field to `$VISUAL` or `$EDITOR`, and takes over what became of it.

    A secret is not handed over: it would stand in a file.
    """
    if field.secret:
        _tell(field, "A secret is not written to a file: edit it here.")
        return
    changed = await edited_outside(field, name, field.text)
    if changed is not None:
        field.load(changed)


async def edited_outside(widget: Widget, name: str, text: str) -> str | None:
    """What the person's editor made of a text; None when nothing was changed."""
    try:
        changed = await edit(cast("App[Any]", widget.app), name, text)
    except OutsideError as error:
        _tell(widget, str(error))
        return None
    return changed if changed != text else None


def _tell(widget: Widget, text: str) -> None:
    widget.app.notify(one_line(text), severity="warning", markup=False)
