"""Every screen of the cockpit: the keys that lead there, and what is seen then."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Screen:
    """`on`: its keys are pressed on the screen before; else they begin in the list."""

    name: str
    keys: tuple[str, ...]
    seen: tuple[str, ...]
    on: bool = False
    least: int = 0
    """Columns from which on it is there."""


SCREENS = (
    Screen("list", (), ("fix-login", "broken")),
    Screen("palette", ("ctrl+p",), ("Search commands and replicas",)),
    Screen("palette-words", tuple("slee"), ("Sleep (stops processes",), on=True),
    Screen("narrowing", ("escape", "slash", *"is:wor"), ("1 of",), on=True),
    Screen("info", ("o",), ("Previews", "context 41k"), least=120),
    Screen("help", ("question_mark",), ("Create a replica",)),
    Screen("confirm", ("escape", "d"), ("Delete fix-login",), on=True),
    Screen("create", ("escape", "n"), ("New replica", "Codex"), on=True),
    Screen("chat", ("enter",), ("git push", "Then write a test")),
    Screen("changes", ("escape", "3"), ("[3 Changes]", "login.py"), on=True),
    Screen("files", ("escape", "4"), ("46 files", "basket.py"), on=True),
    Screen("file", (*"bask", "enter"), ("What is bought",), on=True),
    Screen("canvas", ("5",), ("plan.md", "2.9 KB")),
    Screen("canvas-read", ("enter",), ("The plan", "basket"), on=True),
    Screen("canvas-upload", ("escape", "u", *"/no/such", "enter"), ("No such file",), on=True),
    Screen("hooks", ("6",), ("exit 2", "npm ERR!")),
    Screen("exec", ("escape", "7"), ("pytest -q",), on=True),
    Screen("failed", ("down", "enter"), ("w retry",)),
    Screen("environments", ("e", "down"), ("Write tests first",)),
    Screen("variables", ("2",), ("SHOP_DATABASE_URL",), on=True),
    Screen("variable", ("a",), ("Allow override",), on=True),
    Screen("paste", ("escape", "v"), (".env",), on=True),
    Screen("environment-files", ("escape", "3"), ("pip.conf",), on=True),
    Screen("skills", ("4",), ("Review",), on=True),
    Screen("skill-search", ("a",), ("Search skills", "Refactor"), on=True),
    Screen("mcps", ("escape", "5"), ("tickets",), on=True),
    Screen("mcp", ("a",), ("Transport",), on=True),
    Screen("environment-hooks", ("escape", "6"), ("make deps",), on=True),
    Screen("environment-hook", ("enter",), ("version 3",), on=True),
    Screen("pool", ("escape", "7"), ("code 2).",), on=True),
    Screen("environment", ("escape", "n"), ("New environment",), on=True),
    Screen("automations", ("a",), ("triage",)),
    Screen("runs", (*"jjj", "enter"), ("no space left",), on=True),
    Screen("run", ("enter",), ("A run of",), on=True),
    Screen("automation", ("escape", "escape", "e"), ("Edit nightly",), on=True),
    Screen("begin-run", ("escape", "r"), ("Payload",), on=True),
    Screen("settings", ("comma",), ("[1 General]", "Clipboard")),
    Screen("settings-agents", ("2",), ("sk-1", "gemini"), on=True),
    Screen("settings-connections", ("3",), ("Add connection", "Create a key"), on=True),
    Screen("settings-notifications", ("4",), ("Target",), on=True),
    Screen("settings-end", ("5", "end"), ("exec.end",), on=True),
    Screen("settings-find", ("slash", *"clip"), ("General: Appearance", "terminal.allow"), on=True),
    Screen("settings-key", ("escape", "slash", *"replace", *["enter"] * 3), ("Required",), on=True),
    Screen("table", ("L",), ("STATE▾", "broken")),
)  # fmt: skip
