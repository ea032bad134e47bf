"""The skills that an environment installs."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from quarterdeck.store.environment_contents import Entry
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.environments import dialogs
from quarterdeck.tui.environments.rows import Row
from quarterdeck.tui.environments.section import Section
from quarterdeck.tui.environments.skill_search import SkillSearch
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.wire.environment_skills import EnvironmentSkill
from quarterdeck.wire.environments import Environment


class SkillsSection(Section):
    """One line a skill."""

    where = Where.ENVIRONMENT_SKILLS
    widths = (0.34, 0.36)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.ENVIRONMENT_SKILLS)]

    def forget(self) -> None:
        self._entries: list[Entry[EnvironmentSkill]] = []

    async def load(self, environment: Environment) -> None:
        self._entries = await self.parts.contents.skills(environment)

    def lines(self, environment: Environment) -> Sequence[Row]:
        if not self._entries:
            return [Row("", (keyed("No skills: {section.add} searches the registries."),), "muted")]
        head = Row("", ("SKILL", "SOURCE", "FROM"), "heading")
        return [head, *(_row(entry) for entry in self._entries)]

    def action_add(self) -> None:
        if (environment := self.environment) is not None:
            known = {entry.record.slug for entry in self._entries if entry.own}
            self.open(lambda: SkillSearch(self.parts, environment, known))

    def action_by_hand(self) -> None:
        if (environment := self.environment) is not None:
            self.open(lambda: dialogs.skill_by_hand(self.parts, environment))

    def action_edit(self) -> None:
        """A skill is what its source is: nothing of it can be changed here."""

    def action_delete(self) -> None:
        slug, environment = self.rows.chosen, self.environment
        entry = next((one for one in self._entries if one.record.slug == slug), None)
        if entry is None or environment is None:
            return
        if not entry.own:
            self.say(f"It is that of {entry.of.name}: remove it there.")
            return
        hold_keys(self)
        self.ask(
            f"Remove {entry.record.name}?",
            "Workspaces made later lack it; its source stays where it is.",
            lambda: self.parts.contents.delete_skill(environment, entry.record.id),
            f"{entry.record.name} was removed.",
        )


def _row(entry: Entry[EnvironmentSkill]) -> Row:
    skill = entry.record
    cells = (skill.name, skill.source, "own" if entry.own else entry.of.name)
    return Row(skill.slug, cells, "plain" if entry.own else "muted")
