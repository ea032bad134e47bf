"""What a person is told of the fields of environments and of what they carry."""

from collections.abc import Sequence

from quarterdeck.store.environments import EnvironmentBook
from quarterdeck.tui.forms.kit import FILL, Field, Kind
from quarterdeck.tui.forms.kit.spec import Option
from quarterdeck.wire.environments import Environment

KEY = Field(
    "key",
    "Name",
    "What programs in the workspace read it by.",
    rule="Letters, digits and _, no digit first",
    placeholder="DATABASE_URL",
)
VALUE = Field("value", help="May have several lines.", kind=Kind.LINES, secret=True, rows=4)
OVERRIDE = Field(
    "personal_override_allowed",
    "May be replaced",
    "Personal environments made from this one may set their own value.",
)
VARIABLE = (KEY, VALUE, OVERRIDE)

FILE = (
    Field("path", help="Below the home directory: ~/name.", placeholder="~/.config/tool.toml"),
    Field(
        "content",
        help="{form.editor} opens it in $EDITOR.",
        kind=Kind.LINES,
        rows=FILL,
        named_by="path",
        trimmed=False,
    ),
    Field("name", help="Without one it is the last part of the path.", folded=True),
)

SKILL = (
    Field("name", help="What it is called."),
    Field("slug", help="The name of its directory.", rule="Letters, digits and . _ -"),
    Field(
        "source",
        help="A git URL or a path; after a # the directory that holds SKILL.md.",
        placeholder="https://host/skills.git#review",
    ),
)

PROMPT = Field(
    "system_prompt",
    "System prompt",
    "Instructions that every agent of the environment gets.",
    kind=Kind.LINES,
    rows=FILL,
)


def general(book: EnvironmentBook, environment: Environment | None) -> Sequence[Field]:
    """The fields of an environment; None for a new one."""
    bound = environment is not None and environment.source_environment_id is not None
    head = [
        Field("name", help="Unique in its scope."),
        Field("description", help="For people: what it is for."),
    ]
    whose = [
        Field(
            "scope",
            "Whose",
            "The organization's is everybody's; your own is seen by you alone.",
            options=(("the organization's", "org"), ("your own", "user")),
        ),
        Field(
            "source_environment_id",
            "Made from",
            "A personal one takes repositories and prompt from this, and all that it carries.",
            kind=Kind.CHOICE,
            options=_sources(book),
            none="nothing",
        ),
    ]
    binding = [
        Field(
            "repository_id",
            "Repository",
            "What workspaces are made with.",
            kind=Kind.CHOICE,
            options=tuple((one.name, str(one.id)) for one in book.repositories),
            none="no repository",
        ),
        Field(
            "connect",
            "Or a new one",
            "Connects it and binds this environment to it.",
            placeholder="path or git URL",
        ),
        Field(
            "repository_set_id",
            "Or a set",
            "Several repositories together, in place of one.",
            kind=Kind.CHOICE,
            options=tuple((one.name, str(one.id)) for one in book.sets),
            none="no set",
        ),
        Field("system_prompt", help=PROMPT.help, kind=Kind.LINES, rows=3),
    ]
    preferences = Field(
        "personal_preferences",
        "Preferences",
        "What you want of agents; stands behind the system prompt.",
        kind=Kind.LINES,
        rows=3,
        folded=environment is None,
    )
    fields = [*head, *(whose if environment is None else [])]
    return [*fields, *([] if bound else binding), preferences]


def _sources(book: EnvironmentBook) -> tuple[Option, ...]:
    return tuple(
        (one.name, str(one.id))
        for one in book.ordered()
        if one.user_id is None and not one.is_global
    )
