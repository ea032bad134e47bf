"""Colors and keys of the transcript."""

from typing import Final

from textual.binding import Binding

from quarterdeck.tui.actions import ACTIONS, KeyContext
from quarterdeck.tui.actions.tabs import CHOICES, PERMISSIONS
from quarterdeck.tui.kit.spans import ROLE_COMPONENTS, role_css

COMPONENTS: Final[set[str]] = ROLE_COMPONENTS | {
    f"transcript--{name}" for name in ("cursor", "below", "found", "found-here")
}

ANSWERS: Final = [
    Binding(
        action.keys, f"answer('{action.id}')", action.help, show=False, priority=True, id=action.id
    )
    for place in (KeyContext.PERMISSION, KeyContext.CHOICE)
    for action in ACTIONS[place]
    if action.id in {*PERMISSIONS.values(), *CHOICES}
    and (place is KeyContext.PERMISSION or action.id == CHOICES[0])
]
"""Before the keys of the transcript: on a question a letter is an answer."""

BINDINGS: Final = [
    Binding("up,k", "line(-1)", "Up", show=False, id="transcript.up"),
    Binding("down,j", "line(1)", "Down", show=False, id="transcript.down"),
    Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False, id="transcript.page-up"),
    Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False, id="transcript.page-down"),
    Binding("home,g", "top", "Top", show=False, id="transcript.top"),
    Binding("end", "bottom", "End", show=False, id="transcript.bottom"),
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
