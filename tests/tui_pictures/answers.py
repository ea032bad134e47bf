"""What a service would answer, always the same: files, canvas, hooks, settings, environments."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from quarterdeck.wire.account import ApiKey, ChatappConnection
from quarterdeck.wire.agents import BUILTIN, Agent, CredentialStatus
from quarterdeck.wire.chats import SlashCommand
from quarterdeck.wire.environment_parts import FoundSkill
from quarterdeck.wire.events import Preview
from quarterdeck.wire.files import CanvasFile, CanvasItem, FileContent, FoundFile, FoundFiles
from quarterdeck.wire.setup import HookLog, HookLogList, HookLogs
from tests.tui_environments.still import still_client
from tests.tui_shell.frozen import START

PATHS = {
    "shop/login.py": "changed",
    "notes.txt": "untracked",
    "README.md": "unchanged",
    "shop/basket.py": "unchanged",
    "docs/a-very-long-name-" + "x" * 90 + ".md": "unchanged",
    "docs/naïve 漢字.md": "unchanged",
    **{f"tests/test_part_{number:02}.py": "unchanged" for number in range(40)},
}
SOURCE = '''"""What is bought."""

import time


def total(prices: list[int], *, tax: float = 0.19) -> float:
    # Once a day is enough.
    if not prices:
        raise ValueError("nothing was bought")
    return sum(prices) * (1 + tax)  # {}


{} = 3
'''.format("long " * 30, "x" * 120)
PLAN = """# The plan

Sell **more** apples, and say *where*:

| what | when |
|---|---|
| basket | today |
| till | tomorrow |

- [x] find the cause
- [ ] mend it, `limit = 30`

```python
def pay(amount):
    return amount
```
"""
ITEMS = {
    "plan.md": ("markdown", "text/markdown", len(PLAN)),
    "report.html": ("html", "text/html", 48_211),
    "shots/before.png": ("image", "image/png", 2_940),
    "a-very-long-name-" + "x" * 70 + ".csv": ("other", "text/csv", 7_340_032),
}
INSTALL = "npm install -g @openai/codex"


def client() -> Any:
    """A client of nobody, whose answers never change."""
    made = still_client()
    made.files = SimpleNamespace(search=_search, content=_content)
    made.canvas = SimpleNamespace(list=_items, get=_item)
    made.chats = SimpleNamespace(slash_commands=_commands)
    made.hook_logs = SimpleNamespace(read=_logs)
    made.previews = SimpleNamespace(list=_previews)
    made.agents = SimpleNamespace(list=_agents)
    made.credentials = SimpleNamespace(get=_credential)
    made.api_keys = SimpleNamespace(all=_keys)
    made.chatapp = SimpleNamespace(get=_target)
    made.skills = SimpleNamespace(list=made.skills.list, search=_skills)
    return made


async def _commands(*_: UUID) -> list[SlashCommand]:
    told = "Summarize the conversation, so that less of the context is used."
    return [SlashCommand(command="/compact", description=told, providers=["codex"])]


async def _skills(words: str) -> list[FoundSkill]:
    told = "Mends code without changing what it does, and says why it did so at each step"
    first = {"slug": "refactor", "source": "https://host/skills#refactor", "installs": 12_345}
    second = {"slug": "x" * 60, "source": "https://host/skills#x"}
    return [
        FoundSkill(name="Refactor", description=told, **first),
        FoundSkill(name="A name " + "x" * 60, **second),
    ]


async def _search(replica: UUID, words: str, **_: object) -> FoundFiles:
    fields = {"repo_name": "shop", "score": 1.0, "indexed_at": START, "stale": False}
    files = [
        FoundFile(path=path, display_path=path, status=status, **fields)
        for path, status in PATHS.items()
        if words in path
    ]
    state = {"indexed_at": START, "stale": False, "refreshing": False, "truncated": False}
    return FoundFiles(files=files, next_cursor=None, **state)


async def _content(replica: UUID, repository: str, path: str) -> FileContent:
    return FileContent(content=SOURCE, size_bytes=len(SOURCE), truncated=False)


async def _items(replica: UUID) -> list[CanvasItem]:
    return [
        CanvasItem(filename=name, kind=kind, size_bytes=size)
        for name, (kind, _, size) in ITEMS.items()
    ]


async def _item(replica: UUID, name: str) -> CanvasFile:
    kind, mime, size = ITEMS[name]
    return CanvasFile(filename=name, kind=kind, size_bytes=size, mime_type=mime, content=PLAN)


def _log(kind: str, name: str, code: int | None, minutes: int, output: str) -> HookLog:
    return HookLog(
        hook_type=kind,
        hook_name=name,
        hook_script="make deps\n",
        output=output,
        output_truncated=False,
        output_total_chars=len(output),
        exit_code=code,
        timed_out=code is None,
        executed_at=START - timedelta(minutes=minutes),
        duration_ms=61_500,
    )


async def _logs(replica: UUID) -> HookLogs:
    failed = "\x1b[32mcompiling\x1b[0m ...\nnpm \x1b[31mERR!\x1b[0m code 1\n" + "wide " * 50 + "\n"
    warm = [_log("warm", "prepare", 0, 30, "done\n")]
    start = [_log("start", "repository:shop", 2, 2, failed), _log("start", "slow", None, 9, "")]
    return HookLogs(warm_hooks=HookLogList(logs=warm), start_hooks=HookLogList(logs=start))


async def _previews(replica: UUID) -> list[Preview]:
    return [Preview(port=3000, public_url="http://127.0.0.1:41000/", created_at=START)]


async def _agents() -> list[Agent]:
    return [
        Agent(id=BUILTIN, name="Built-in", available=True, installed=True),
        Agent(id="codex", name="Codex", available=True, installed=True, version="0.169.0"),
        Agent(
            id="claude",
            name="Claude Code",
            available=False,
            installed=True,
            version="0.100.0",
            reason="No key: add one below, or log in with `claude login`.",
        ),
        Agent(id="gemini", name="Gemini", available=False, install=INSTALL),
    ]


async def _credential(name: str) -> CredentialStatus:
    return CredentialStatus(has_credentials=name == "codex", api_key="sk-1...cdef")


async def _keys() -> Any:
    key = {"id": UUID(int=80), "name": "robot", "key_prefix": "sk_robot", "created_at": START}
    yield ApiKey.model_validate(key)


async def _target() -> ChatappConnection:
    return ChatappConnection(connected=True, service="ntfy", created_at=START)
