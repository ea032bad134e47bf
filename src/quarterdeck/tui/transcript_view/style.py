"""The view's looks and keys, as data."""

from typing import Final

from textual.binding import Binding

from quarterdeck.tui.transcript_view.lines import Role

COMPONENTS: Final[set[str]] = {
    f"transcript--{name}" for name in (*Role, "cursor", "below", "found", "found-here")
}

BINDINGS: Final = [
    Binding("up,k", "line(-1)", "Up", show=False, id="transcript.up"),
    Binding("down,j", "line(1)", "Down", show=False, id="transcript.down"),
    Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False, id="transcript.page-up"),
    Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False, id="transcript.page-down"),
    Binding("home,g", "top", "Top", show=False, id="transcript.top"),
    Binding("end,G", "bottom", "End", show=False, id="transcript.bottom"),
    Binding(
        "left_square_bracket",
        "prompt(-1)",
        "Previous prompt",
        show=False,
        id="transcript.previous-prompt",
    ),
    Binding(
        "right_square_bracket", "prompt(1)", "Next prompt", show=False, id="transcript.next-prompt"
    ),
    Binding("enter", "activate", "Open or answer", show=False, id="transcript.toggle"),
    Binding("y", "copy", "Copy", show=False, id="transcript.copy"),
]

_ROLE_LOOKS: Final = """
{widget} > .transcript--text {{ color: $foreground; }}
{widget} > .transcript--user {{ color: $text-primary; }}
{widget} > .transcript--prompt {{ color: $foreground; }}
{widget} > .transcript--dim {{ color: $text-muted; }}
{widget} > .transcript--heading {{ color: $text-primary; }}
{widget} > .transcript--code {{ color: $foreground; }}
{widget} > .transcript--inline {{ color: $text-accent; background: $panel; }}
{widget} > .transcript--quote {{ color: $text-muted; }}
{widget} > .transcript--rule {{ color: $text-disabled; }}
{widget} > .transcript--link {{ color: $text-accent; text-style: underline; }}
{widget} > .transcript--working {{ color: $text-primary; }}
{widget} > .transcript--done {{ color: $text-success; }}
{widget} > .transcript--failed {{ color: $text-error; }}
{widget} > .transcript--asking {{ color: $text-warning; }}
{widget} > .transcript--chosen {{ color: $text-warning; text-style: reverse; }}
{widget} > .transcript--added {{ color: $text-success; }}
{widget} > .transcript--removed {{ color: $text-error; }}
{widget} > .transcript--keyword {{ color: $text-primary; }}
{widget} > .transcript--string {{ color: $text-success; }}
{widget} > .transcript--comment {{ color: $text-muted; }}
{widget} > .transcript--number {{ color: $text-warning; }}
{widget} > .transcript--name {{ color: $text-accent; }}
"""


def role_css(widget: str) -> str:
    """How the roles look in a widget of this name: the same wherever text of an agent is shown."""
    return _ROLE_LOOKS.format(widget=widget)


CSS: Final = """
TranscriptView {
    background: $background;
    color: $foreground;
    overflow-x: hidden;
    overflow-y: scroll;
    scrollbar-size-vertical: 1;
}
TranscriptView > .transcript--cursor { color: $text-primary; }
TranscriptView > .transcript--found { background: $warning 40%; }
TranscriptView > .transcript--found-here {
    background: $warning;
    color: $background;
    text-style: bold;
}
TranscriptView > .transcript--below { color: $text-primary; text-style: reverse; }
""" + role_css("TranscriptView")
