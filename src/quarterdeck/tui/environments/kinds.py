"""The sections that an environment has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual.binding import BindingType

from quarterdeck.store.environments import scope_of
from quarterdeck.tui.actions import KeyContext, eager_bindings
from quarterdeck.tui.environments import dialogs
from quarterdeck.tui.environments.part_sections import (
    FilesSection,
    HooksSection,
    McpsSection,
    SkillsSection,
    VariablesSection,
)
from quarterdeck.tui.environments.pool import PoolSection
from quarterdeck.tui.environments.rows import TableRow, counted, moment, size_of, wrapped
from quarterdeck.tui.environments.section import Parts, Section
from quarterdeck.wire.environments import Environment

SHOWN_LINES = 200
"""Lines of a prompt that are shown here; its editor shows all."""
LOCKED = "The global environment stays as it is; what it carries can be changed."


class GeneralSection(Section):
    """Its fields, and the prompts in full."""

    where = KeyContext.ENVIRONMENT_GENERAL
    widths = (13,)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENT_GENERAL)]

    def lines(self, environment: Environment) -> Sequence[TableRow]:
        book = self.parts.book
        source = book.get(environment.source_environment_id or environment.id)
        rows = [
            TableRow("name", ("Name", environment.name)),
            TableRow("scope", ("Scope", str(scope_of(environment)))),
            TableRow("bound", ("Repositories", book.bound_to(environment))),
            TableRow("carries", ("Contents", _carries(environment)), "muted"),
            TableRow("changed", ("Updated", moment(environment.updated_at)), "muted"),
        ]
        if environment.description:
            rows.insert(1, TableRow("description", ("Description", environment.description)))
        if source is not None and source.id != environment.id:
            rows.insert(2, TableRow("source", ("Inherits from", source.name)))
        for title, text in (
            ("System prompt", environment.system_prompt),
            ("Push", environment.push),
            ("Co-author", environment.co_author),
            ("Preferences", environment.personal_preferences),
        ):
            rows += _text(title, text, self.room)
        return rows

    def action_edit(self) -> None:
        environment = self.environment
        if environment is None:
            return
        if environment.is_global:
            self.say(LOCKED, is_error=True)
            return
        self.open(lambda: dialogs.change_environment(self.parts.book, environment))

    def action_prompt(self) -> None:
        environment = self.environment
        if environment is None:
            return
        if environment.is_global or environment.source_environment_id is not None:
            self.say(LOCKED if environment.is_global else "Its source says what it is.")
            return
        self.open(lambda: dialogs.change_prompt(self.parts.book, environment))


def _carries(environment: Environment) -> str:
    return ", ".join(
        (
            counted(environment.variable_count, "variable"),
            counted(environment.file_count, "file"),
            counted(environment.skill_count, "skill"),
            f"{environment.mcp_count} MCP",
        )
    )


def _text(title: str, text: str | None, room: int) -> list[TableRow]:
    if not text:
        return [TableRow(title, (title, "none"), "muted")]
    lines = wrapped(text, room)
    rest = [TableRow("", ("", line)) for line in lines[:SHOWN_LINES]]
    return [TableRow(title, (title, size_of(text)), "heading"), *rest]


SectionName = Literal["general", "variables", "files", "skills", "mcps", "hooks", "pool"]


@dataclass(frozen=True)
class SectionKind:
    """The label in the bar, and the factory of the section."""

    label: str
    make: Callable[[Parts], Section]


KINDS: dict[SectionName, SectionKind] = {
    "general": SectionKind("General", GeneralSection),
    "variables": SectionKind("Variables", VariablesSection),
    "files": SectionKind("Files", FilesSection),
    "skills": SectionKind("Skills", SkillsSection),
    "mcps": SectionKind("MCP", McpsSection),
    "hooks": SectionKind("Hooks", HooksSection),
    "pool": SectionKind("Pool", PoolSection),
}
