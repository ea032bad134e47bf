"""The documentation names what the code has, and its links and section numbers lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from pydantic import BaseModel

from quarterdeck.cli.program import program
from quarterdeck.cli.schema import Config
from quarterdeck.tui.actions import ACTIONS
from quarterdeck.tui.actions.model import shown_name
from quarterdeck.tui.options import CHOICES
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.toml")])
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")]
)
CODE_SPAN = re.compile(r"`([^`\n]+)`")
VARIABLE = re.compile(r"\b(?:QD|QUARTERDECK)_[A-Z][A-Z_]*[A-Z]\b")
CITATION = re.compile(
    r"(?:INTERFACE|docs/interface\.md),?\s+(\d[\d.]*\d|\d)(?:\s+and\s+(\d[\d.]*\d|\d))?"
)
SECTION = re.compile(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", re.MULTILINE)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def text_of(*names: str) -> str:
    return "\n".join((ROOT / name).read_text(encoding="utf-8") for name in names)


def named_in(*names: str) -> set[str]:
    """Return what the pages name as code: each span as it is, and each word of it."""
    spans = CODE_SPAN.findall(text_of(*names))
    return {*spans, *(word for span in spans for word in re.split(r"[\s,=|\[\]()]+", span))}


def keys_of(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Yield the dotted names of a configuration model's values; `NAME` stands for a free name."""
    for name, field in model.model_fields.items():
        dotted = f"{above}{field.alias or name}"
        tables = [one for one in nested(field.annotation) if issubclass(one, BaseModel)]
        free = "NAME." if getattr(field.annotation, "__origin__", None) is dict else ""
        for table in tables:
            yield from keys_of(table, f"{dotted}.{free}")
        if not tables:
            yield dotted


def nested(annotation: object) -> Iterator[type]:
    """Yield the classes in an annotation."""
    arguments = getattr(annotation, "__args__", ())
    for one in arguments:
        yield from nested(one)
    if not arguments and isinstance(annotation, type):
        yield annotation


def configuration_keys() -> list[str]:
    # These two tables have no model: the cockpit reads its settings itself, [keys] holds action ids.
    plain = [key for key in keys_of(Config) if key not in ("cockpit", "keys")]
    return [*plain, *(f"cockpit.{name}" for name in CHOICES)]


def commands(group: click.Group, above: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its full name; modules of verbs are imported on the way."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{above} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{above} {name}")


ALL = {"qd": program, **dict(commands(program, "qd"))}
COMMON = {"--json", "--profile"}
"""Options of every command, described once."""


def sections_of_cli() -> dict[str, str]:
    """Return the text of each command in docs/cli.md, by its full name."""
    parts = re.split(
        r"^(?:##|###) `(qd[a-z -]*)[^`\n]*`.*$", text_of("docs/cli.md"), flags=re.MULTILINE
    )
    return {name.strip(): text for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def variables() -> set[str]:
    """Return the variables of the environment that the code names, generated ones included."""
    found = {
        name for path in SOURCES for name in VARIABLE.findall(path.read_text(encoding="utf-8"))
    }
    hosts = {
        f"QD_HOST_{host}_{key.upper()}"
        for host in "AB"
        for key in type(Config().host_a).model_fields
    }
    return found | hosts


def test_every_configuration_key_is_documented() -> None:
    assert configuration_keys()
    assert set(configuration_keys()) - named_in("docs/configuration.md") == set()


def documented_actions() -> list[tuple[str, str]]:
    """Return the ids of the page's rows with the text of their keys."""
    row = re.compile(r"^\| `([a-z-]+\.[a-z0-9_-]+)` \| ([^|]*) \|", re.MULTILINE)
    return row.findall(text_of("docs/keys.md"))


def test_every_action_is_documented() -> None:
    ids = {action.id for actions in ACTIONS.values() for action in actions}
    assert ids
    assert ids - named_in("docs/keys.md") == set()


def test_no_action_is_documented_that_does_not_exist() -> None:
    ids = {action.id for actions in ACTIONS.values() for action in actions}
    rows = [id for id, _ in documented_actions()]
    assert rows
    assert set(rows) - ids == set()
    assert len(rows) == len(set(rows))


def test_documented_keys_are_the_defaults() -> None:
    """Fixed actions are left out: their keys are sentences."""
    defaults = {
        action.id: [shown_name(key) for key in action.default]
        for actions in ACTIONS.values()
        for action in actions
        if not action.fixed
    }
    documented = {
        id: CODE_SPAN.findall(keys) for id, keys in documented_actions() if id in defaults
    }
    assert documented == defaults


def test_every_error_code_is_documented() -> None:
    assert {code.value for code in ErrorCode} - named_in("docs/interface.md") == set()


def test_every_event_type_is_documented() -> None:
    assert {type.value for type in EventType} - named_in("docs/interface.md") == set()


def test_every_command_and_option_is_documented() -> None:
    described = sections_of_cli()
    assert set(ALL) - set(described) == set()
    missing = {
        f"{name} {option}"
        for name, command in ALL.items()
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option not in COMMON and not re.search(rf"`{re.escape(option)}[`\s]", described[name])
    }
    assert missing == set()
    assert all(f"`{option}" in described["qd"] for option in COMMON)


def test_no_command_is_documented_that_does_not_exist() -> None:
    assert set(sections_of_cli()) - set(ALL) == set()


def test_every_variable_is_documented() -> None:
    assert variables() - named_in("docs/configuration.md") == set()


def anchor_of(heading: str) -> str:
    """Return the anchor that a heading gets when the page is shown."""
    plain = re.sub(r"[^\w\s-]", "", heading.replace("`", "").lower())
    return re.sub(r"\s", "-", plain.strip())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken: list[str] = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            broken.append(link)
        elif anchor:
            text = FENCE.sub("", target.read_text(encoding="utf-8"))
            headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            if anchor not in map(anchor_of, headings):
                broken.append(link)
    assert broken == []


def test_cited_sections_of_the_interface_exist() -> None:
    sections = set(SECTION.findall(text_of("docs/interface.md")))
    cited = {
        number: path.name
        for path in SOURCES
        for numbers in CITATION.findall(path.read_text(encoding="utf-8"))
        for number in numbers
        if number
    }
    assert cited
    assert {number: name for number, name in cited.items() if number not in sections} == {}
