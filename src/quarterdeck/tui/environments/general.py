"""What an environment is: name, repositories, prompts."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from quarterdeck.store.environments import scope_of
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.environments import dialogs
from quarterdeck.tui.environments.rows import Row
from quarterdeck.tui.environments.section import Section
from quarterdeck.tui.environments.words import counted, moment, size_of, wrapped
from quarterdeck.wire.environments import Environment

SHOWN_LINES = 200
"""Lines of a prompt that stand here; its editor shows all."""
LOCKED = "The global environment stays as it is; what it carries can be changed."


class GeneralSection(Section):
    """Its fields, and the prompts in full."""

    where = Where.ENVIRONMENT_GENERAL
    widths = (13,)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.ENVIRONMENT_GENERAL)]

    def lines(self, environment: Environment) -> Sequence[Row]:
        book = self.parts.book
        source = book.get(environment.source_environment_id or environment.id)
        rows = [
            Row("name", ("Name", environment.name)),
            Row("scope", ("Whose", str(scope_of(environment)))),
            Row("bound", ("Repositories", book.bound_to(environment))),
            Row("carries", ("Carries", _carries(environment)), "muted"),
            Row("changed", ("Changed", moment(environment.updated_at)), "muted"),
        ]
        if environment.description:
            rows.insert(1, Row("description", ("Description", environment.description)))
        if source is not None and source.id != environment.id:
            rows.insert(2, Row("source", ("Made from", source.name)))
        for title, text in (
            ("System prompt", environment.system_prompt),
            ("Preferences", environment.personal_preferences),
        ):
            rows += _text(title, text, self.room)
        return rows

    def action_edit(self) -> None:
        environment = self.environment
        if environment is None:
            return
        if environment.is_global:
            self.say(LOCKED, trouble=True)
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


def _text(title: str, text: str | None, room: int) -> list[Row]:
    if not text:
        return [Row(title, (title, "none"), "muted")]
    lines = wrapped(text, room)
    rest = [Row("", ("", line)) for line in lines[:SHOWN_LINES]]
    return [Row(title, (title, size_of(text)), "heading"), *rest]
