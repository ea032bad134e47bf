"""Finds the shell blocks of a message, by Markdown's rules for fences."""

import re
from dataclasses import dataclass

SHELLS = {"": "bash", "sh": "sh", "bash": "bash", "shell": "bash", "console": "bash"}
"""Languages that are run, and the shell that runs each."""

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})\s*(?P<language>[^\s`{]*)(?P<rest>[^`]*)$")
_TITLE_WIDTH = 200


@dataclass(frozen=True)
class Block:
    """One fenced block that can be run."""

    shell: str
    script: str

    @property
    def title(self) -> str:
        """The first line that says something."""
        lines = [line.strip() for line in self.script.splitlines() if line.strip()]
        telling = [line for line in lines if not line.startswith("#")] or lines
        return telling[0][:_TITLE_WIDTH]


@dataclass(frozen=True)
class Parsed:
    """What a message holds: blocks to run, and the languages of blocks that are not run."""

    blocks: list[Block]
    skipped: list[str]


def parse(message: str) -> Parsed:
    """The blocks of a message in order. A fence that is never closed goes to the end."""
    parsed = Parsed([], [])
    lines = iter(message.splitlines())
    for line in lines:
        if not (fence := _FENCE.match(line)):
            continue
        body: list[str] = []
        for inner in lines:
            if _closes(inner, fence["mark"]):
                break
            body.append(inner)
        _add(parsed, fence["language"].lower(), body)
    return parsed


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(mark) and set(stripped) == {mark[0]}


def _add(parsed: Parsed, language: str, body: list[str]) -> None:
    if language not in SHELLS:
        parsed.skipped.append(language)
        return
    script = "\n".join(_typed(body) if language == "console" else body)
    if script.strip():
        parsed.blocks.append(Block(SHELLS[language], script + "\n"))


def _typed(body: list[str]) -> list[str]:
    """Of a console block with prompts, what was typed; the rest is what the program answered."""
    typed = [line.strip()[2:] for line in body if line.strip().startswith("$ ")]
    return typed or body
