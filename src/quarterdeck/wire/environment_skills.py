"""Skills of an environment, and where to find them (specification, operation 18; INTERFACE 7)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, Id, Record, Timestamp
from quarterdeck.wire.stored_text import ONE_LINE

SLUG_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class EnvironmentSkill(Record):
    """A skill that is installed into workspaces, in a directory named by its slug.

    `source` is a git URL or a path, and after a `#` the directory in it that holds `SKILL.md`.
    Without one that is its top, or else the directory named by the slug.
    """

    id: Id
    organization_id: Id
    environment_id: Id
    name: str
    slug: str
    source: str
    created_at: Timestamp
    updated_at: Timestamp


class EnvironmentSkillList(Record):
    """Answer of `GET .../skills`, by name."""

    environment_skills: list[EnvironmentSkill]


class EnvironmentSkillAnswer(Record):
    """Answer of enabling a skill."""

    environment_skill: EnvironmentSkill


class CreateSkill(Body):
    """Body of `POST .../skills`; a slug or source that is enabled already is a conflict."""

    name: Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]
    slug: Annotated[str, Field(pattern=SLUG_PATTERN)]
    source: Annotated[str, Field(min_length=1, max_length=1000), ONE_LINE]


class FoundSkill(Record):
    """A skill of a registry. `installs` is 0 where nobody counts them."""

    name: str
    slug: str
    source: str
    installs: int = 0
    description: str | None = None


class FoundSkills(Record):
    """Answer of `GET /v1/environment-skills/search`, best match first."""

    skills: list[FoundSkill]
