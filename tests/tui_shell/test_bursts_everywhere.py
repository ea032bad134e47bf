"""Every page and dialog takes what is typed behind the key that opens it.

The whole burst is posted before the cockpit has handled its first key, as a terminal does with what
comes in one read. Each burst begins in the list of replicas, on a replica whose repository was changed.
"""

import pytest

from quarterdeck.tui.kit.dialogs import UnsavedScreen
from tests.support.waiting import eventually
from tests.tui_shell.live import Desk, Installation

CHANGE = """Change it.

```sh
echo 'A second line.' >> README
mkdir -p ~/.quarterdeck/canvas && echo '# The plan' > ~/.quarterdeck/canvas/plan.md
```
"""

LIST = {
    "help": ("?", "?", "replica.new"),
    "commands": ("ctrl+p", *"suspe", "Suspend (fg"),
    "filter": ("/", *"is:idle", "is:idle"),
    "new replica": ("n", *"Write a poem", "Write a poem"),
    "image for a new replica": ("n", "ctrl+o", *"~/shot.png", "~/shot.png"),
    "deletion": ("d", "tab", "Delete alpha?"),
    "panel": ("o", "copy"),
}
CHAT = {
    "message": ("m", *"Hello there", "Hello there"),
    "command of the agent": ("m", *"/pla", "/plan"),
    "mention of a file": ("m", *"@READ", "README"),
    "attachment": ("m", "ctrl+o", *"~/shot.png", "~/shot.png"),
    "find": ("m", "tab", "/", *"second", "second"),
    "export": ("m", "tab", "e", "home", *"copy-of-", "copy-of-alpha.md"),
    "new chat": ("m", "ctrl+n", *"built", "built"),
    "name of a chat": ("m", "tab", "r", "home", *"renamed ", "renamed "),
    "model": ("m", "alt+m", *"codex", "codex"),
    "goal": ("m", "alt+g", *"Green tests", "Green tests"),
}
TABS = {
    "terminal": ("t", *"echo hi-$((40+2))", "enter", "hi-42"),
    "second terminal": ("t", "ctrl+g", "c", *"echo ho-$((40+3))", "enter", "ho-43"),
    "search of a terminal": ("t", "ctrl+g", "/", *"needle", "needle"),
    "name of a terminal": ("t", "ctrl+g", ",", *"named", "named"),
    "search of changes": ("3", "/", *"second", "enter", "/second 1/1"),
    "comment": ("3", *"/second", "enter", "c", *"Why this?", "Why this?"),
    "file": ("4", *"READ", "enter", "A second line."),
    "find in a file": ("4", *"READ", "enter", "/", *"second", "second"),
    "upload": ("5", "u", *"~/notes.txt", "~/notes.txt"),
    "canvas": ("5", "enter", "The plan"),
    "hooks": ("6", "r", "No hooks have run"),
    "command": ("7", *"echo run-$((40+4))", "enter", "run-44"),
}
ENVIRONMENTS = {
    "environment": ("e", "n", *"staging", "staging"),
    "variable": ("e", "2", "a", *"TOKEN", "TOKEN"),
    "paste": ("e", "2", "v", "ctrl+t", *"A=from-env", "from-env"),
    "file": ("e", "3", "a", *"netrc", "netrc"),
    "skill": ("e", "4", "a", *"format", "format"),
    "skill by hand": ("e", "4", "m", *"by-hand", "by-hand"),
    "MCP server": ("e", "5", "a", *"tickets", "tickets"),
    "hook": ("e", "6", "enter", *"echo warm", "echo warm"),
    "pool": ("e", "7", "enter", "Target size"),
    "help": ("e", "?", "?", "environments.new"),
}
PAGES = {
    "automation": ("a", "n", *"nightly", "nightly"),
    "automations' help": ("a", "?", "?", "automation.new"),
    "provider": (",", "2", "end", "n", *"openai", "openai"),
    "settings' help": (",", "?", "?", "settings.change"),
    "page to page": ("e", "escape", "a", "escape", ",", "ctrl+p", *"suspe", "Suspend (fg"),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "bursts",
    [LIST, CHAT, TABS, ENVIRONMENTS, PAGES],
    ids=["list", "chat", "tabs", "environments", "pages"],
)
async def test_what_is_typed_behind_a_key_arrives(
    live: Installation, bursts: dict[str, tuple[str, ...]]
) -> None:
    await live.create_with_repository("alpha", CHANGE)
    async with live.cockpit(size=(130, 40)) as desk:
        await desk.see("alpha", "+1")
        for name, (*keys, seen) in bursts.items():
            desk.burst(keys)
            await desk.pilot.pause()  # it is queued, so that what is seen is not from before
            await eventually(lambda: not desk.app.keys_waiting, f"the keys of: {name}")
            try:
                await desk.see(seen)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None
            await back_to_list(desk)


async def back_to_list(desk: Desk) -> None:
    """Close what is open; what is unsaved is dropped."""
    while True:
        await eventually(lambda: not desk.app.keys_waiting, "the keys before")
        await desk.pilot.pause()
        if isinstance(desk.app.screen, UnsavedScreen):
            await desk.press("d")
        elif desk.focus == "ReplicaListView" and not desk.app.screen.is_modal:
            return
        elif desk.focus == "TerminalView":
            await desk.press("ctrl+g", "l")
        else:
            await desk.press("escape")
