"""The sections of an environment, in the order of their keys."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from quarterdeck.tui.environments.files import FilesSection
from quarterdeck.tui.environments.general import GeneralSection
from quarterdeck.tui.environments.hooks import HooksSection
from quarterdeck.tui.environments.mcps import McpsSection
from quarterdeck.tui.environments.parts import Parts
from quarterdeck.tui.environments.pool import PoolSection
from quarterdeck.tui.environments.section import Section
from quarterdeck.tui.environments.skills import SkillsSection
from quarterdeck.tui.environments.variables import VariablesSection

SectionName = Literal["general", "variables", "files", "skills", "mcps", "hooks", "pool"]


@dataclass(frozen=True)
class SectionKind:
    """What stands in the bar, and what makes the section."""

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
