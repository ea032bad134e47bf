"""The view's looks and keys, as data."""

from typing import Final

from textual.binding import Binding

from quarterdeck.tui.transcript_view.lines import Role

COMPONENTS: Final[set[str]] = {f"transcript--{name}" for name in (*Role, "cursor", "below")}

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
    Binding("enter", "activate", "Open or answer", show=False, id="transcript.open"),
    Binding("y", "copy", "Copy", show=False, id="transcript.copy"),
]

CSS: Final = """
TranscriptView {
    background: $background;
    color: $foreground;
    overflow-x: hidden;
    overflow-y: scroll;
    scrollbar-size-vertical: 1;
}
TranscriptView > .transcript--text { color: $foreground; }
TranscriptView > .transcript--user { color: $text-primary; }
TranscriptView > .transcript--prompt { color: $foreground; }
TranscriptView > .transcript--dim { color: $text-muted; }
TranscriptView > .transcript--heading { color: $text-primary; }
TranscriptView > .transcript--code { color: $foreground; }
TranscriptView > .transcript--inline { color: $text-accent; background: $panel; }
TranscriptView > .transcript--quote { color: $text-muted; }
TranscriptView > .transcript--rule { color: $text-disabled; }
TranscriptView > .transcript--link { color: $text-accent; text-style: underline; }
TranscriptView > .transcript--working { color: $text-primary; }
TranscriptView > .transcript--done { color: $text-success; }
TranscriptView > .transcript--failed { color: $text-error; }
TranscriptView > .transcript--asking { color: $text-warning; }
TranscriptView > .transcript--chosen { color: $text-warning; text-style: reverse; }
TranscriptView > .transcript--added { color: $text-success; }
TranscriptView > .transcript--removed { color: $text-error; }
TranscriptView > .transcript--keyword { color: $text-primary; }
TranscriptView > .transcript--string { color: $text-success; }
TranscriptView > .transcript--comment { color: $text-muted; }
TranscriptView > .transcript--number { color: $text-warning; }
TranscriptView > .transcript--name { color: $text-accent; }
TranscriptView > .transcript--cursor { color: $text-primary; }
TranscriptView > .transcript--below { color: $text-primary; text-style: reverse; }
"""
