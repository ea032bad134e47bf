"""What of a difference is copied."""

from collections.abc import Sequence

from quarterdeck.store.changes_comments import Comment
from quarterdeck.tui.changes.model import Item, Kind, Section


def text_of(section: Section, chosen: Sequence[Item], comment: Comment | None) -> str:
    """A comment's text, chosen lines without their signs, or the whole difference of a file.

    Text for the clipboard is what the file holds, so that it can be pasted.
    """
    if comment is not None:
        return comment.text
    if not chosen:
        return section.change.text if section.change is not None else ""
    indices = [_copied(item) for item in chosen]
    return "\n".join(section.lines[index].text for index in indices)


def _copied(item: Item) -> int:
    """Of a pair its new side, when it has one."""
    if item.kind == Kind.PAIR:
        return item.partner if item.partner >= 0 else item.line
    return item.line
