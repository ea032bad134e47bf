"""Searching the registries."""

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import SandboxDriver
from quarterdeck.service.skills.registries import all_skills
from quarterdeck.wire.environment_skills import FoundSkill

MOST_FOUND = 100


async def search_skills(home: Home, sandboxes: SandboxDriver, query: str) -> list[FoundSkill]:
    """The skills that have every word of the query, best match first; all for an empty one.

    A match in the name or slug is better than one in the description alone.
    """
    words = query.casefold().split()
    ranked = [(_rank(skill, words), skill) for skill in await all_skills(home, sandboxes)]
    fitting = [(rank, skill) for rank, skill in ranked if rank is not None]
    fitting.sort(key=lambda one: (one[0], one[1].slug, one[1].source))
    return [skill for _, skill in fitting[:MOST_FOUND]]


def _rank(skill: FoundSkill, words: list[str]) -> int | None:
    """Smaller is better; None when a word is missing."""
    name = f"{skill.slug} {skill.name}".casefold()
    text = f"{name} {skill.description or ''}".casefold()
    if not all(word in text for word in words):
        return None
    query = " ".join(words)
    if query in (skill.slug.casefold(), skill.name.casefold()):
        return 0
    if name.startswith(query):
        return 1
    return 2 if all(word in name for word in words) else 3
