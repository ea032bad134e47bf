"""Codex's slash commands: those of its own interface that its app-server carries out, and skills."""

from typing import Any, cast

from quarterdeck.agents.objects import as_object

Params = dict[str, Any]

COMPACT, REVIEW, INIT = "compact", "review", "init"
_OWN = (
    (COMPACT, "Summarize the conversation, so that less of the context is used.", None),
    (REVIEW, "Review the uncommitted changes, or what is asked for.", "what to review"),
    (INIT, "Write AGENTS.md with instructions for agents.", None),
)
INIT_PROMPT = """\
Write a file AGENTS.md at the top of this repository that tells a contributor what to know before \
changing it: how it is structured, how to build, run and test it, its code style and naming, and how \
commits and pull requests look. Read the repository first, and state only what holds for it. Be \
concise: a few hundred words, with short sections and the commands to run. If the file exists \
already, improve it."""
_LONGEST_DESCRIPTION = 200


class Commands:
    """The commands of one session."""

    def __init__(self) -> None:
        self._skills: dict[str, Params] = {}

    def take_skills(self, answer: Params) -> None:
        """Note the answer of `skills/list`."""
        entries = map(as_object, cast("list[object]", answer.get("data") or []))
        skills = [
            as_object(skill)
            for entry in entries
            for skill in cast("list[object]", entry.get("skills") or [])
        ]
        own = {name for name, _, _ in _OWN}
        self._skills = {
            str(skill.get("name")): skill
            for skill in skills
            if skill.get("enabled") and skill.get("path") and str(skill.get("name")) not in own
        }

    @property
    def update(self) -> Params:
        """The session update that announces them."""
        own = [
            {
                "name": name,
                "description": description,
                **({"input": {"hint": hint}} if hint else {}),
            }
            for name, description, hint in _OWN
        ]
        skills = [
            {"name": name, "description": _description(skill), "input": {"hint": "task"}}
            for name, skill in self._skills.items()
        ]
        return {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [*own, *skills],
        }

    @staticmethod
    def read(text: str) -> tuple[str, str]:
        """Return the command that a message begins with, empty for none, and the rest."""
        first, _, rest = text.strip().partition(" ")
        return (first.removeprefix("/"), rest.strip()) if first.startswith("/") else ("", text)

    def skill_input(self, name: str, rest: str) -> list[Params] | None:
        """Return the input that uses a skill; None when there is none of this name."""
        skill = self._skills.get(name)
        if skill is None:
            return None
        text: Params = {"type": "text", "text": f"${name} {rest}".strip(), "text_elements": []}
        return [{"type": "skill", "name": name, "path": skill["path"]}, text]

    @staticmethod
    def review_target(rest: str) -> Params:
        """Return what `/review` looks at."""
        return {"type": "custom", "instructions": rest} if rest else {"type": "uncommittedChanges"}


def _description(skill: Params) -> str:
    short = as_object(skill.get("interface")).get("shortDescription") or skill.get("description")
    return str(short or "")[:_LONGEST_DESCRIPTION]
