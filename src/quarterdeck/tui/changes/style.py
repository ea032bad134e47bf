"""The looks of the view, as data."""

from typing import Final

from quarterdeck.tui.transcript_view.lines import Role

_GROUNDS = ("added", "removed", "added-word", "removed-word", "file", "repository", "match")
_TEXTS = (
    "plus",
    "minus",
    "number",
    "note",
    "rule",
    "hunk",
    "cursor",
    "chosen",
    "comment",
    "comment-head",
    "comment-edge",
    "empty",
)
_CODE: Final = {
    Role.KEYWORD: "$text-primary",
    Role.STRING: "$text-success",
    Role.COMMENT: "$text-muted",
    Role.NUMBER: "$text-warning",
    Role.NAME: "$text-accent",
    Role.DIM: "$text-muted",
}

COMPONENTS: Final[set[str]] = {f"changes--{name}" for name in (*_GROUNDS, *_TEXTS)} | {
    f"changes--code-{role}" for role in Role
}

CSS: Final = (
    """
ChangesWindow {
    background: $background;
    color: $foreground;
    overflow-x: hidden;
    overflow-y: scroll;
    scrollbar-size-vertical: 1;
    & > .changes--added { background: $success 12%; }
    & > .changes--removed { background: $error 12%; }
    & > .changes--added-word { background: $success 35%; }
    & > .changes--removed-word { background: $error 35%; }
    & > .changes--file { background: $panel; text-style: bold; }
    & > .changes--repository { color: $text-primary; text-style: bold underline; }
    & > .changes--match { color: $text-warning; text-style: reverse; }
    & > .changes--plus { color: $text-success; }
    & > .changes--minus { color: $text-error; }
    & > .changes--number { color: $text-muted; }
    & > .changes--note { color: $text-muted; text-style: none; }
    & > .changes--rule { color: $text-disabled; }
    & > .changes--hunk { color: $text-muted; }
    & > .changes--cursor { color: $text-primary; }
    & > .changes--chosen { color: $text-warning; }
    & > .changes--comment { color: $foreground; }
    & > .changes--comment-head { color: $text-warning; }
    & > .changes--comment-edge { color: $text-warning; }
    & > .changes--empty { color: $text-muted; }
"""
    + "".join(
        f"    & > .changes--code-{role} {{ color: {color}; }}\n" for role, color in _CODE.items()
    )
    + "}\n"
)
