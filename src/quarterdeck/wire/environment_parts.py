"""Parts of an environment: variables, files, skills, MCP servers, hooks and tests of hooks."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from quarterdeck.wire.base import (
    NO_NUL,
    ONE_LINE,
    Body,
    Id,
    Line,
    Patch,
    Record,
    Switch,
    Text,
    Timestamp,
    bytes_at_most,
)
from quarterdeck.wire.environments import WarmPool
from quarterdeck.wire.inside import CA_VARIABLE, WAY_OUT

CONTENT_LIMIT = 65_536
"""Most bytes of a file."""
FILES_LIMIT = 1 << 20
"""Most bytes of all files of an environment together."""
FILES_MOST = 200
"""Most files of an environment."""
PATH_LIMIT = 1_024
PART_LIMIT = 255
"""Most bytes between two slashes of a path: file systems take no longer name."""
NAME_LIMIT = 255
HOME_MARK = "~/"


def _below_home(path: str) -> str:
    if not path.startswith(HOME_MARK):
        raise ValueError(f"it must begin with {HOME_MARK}")
    parts = path.removeprefix(HOME_MARK).split("/")
    if not all(parts) or {".", ".."} & set(parts):
        raise ValueError("it must name a file; . and .. and empty parts are not allowed")
    if any(len(part.encode()) > PART_LIMIT for part in parts):
        raise ValueError(f"none of its names may be longer than {PART_LIMIT} bytes")
    return path


FilePath = Annotated[
    str,
    Field(min_length=3, max_length=PATH_LIMIT),
    ONE_LINE,
    bytes_at_most(PATH_LIMIT),
    AfterValidator(_below_home),
]
Content = Annotated[Text, bytes_at_most(CONTENT_LIMIT)]
Name = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT), ONE_LINE]


class EnvironmentPart(Record):
    """What all parts have that can be listed, added and removed."""

    id: Id
    """Unique id."""
    organization_id: Id
    """Organization it belongs to."""
    environment_id: Id
    """Environment it belongs to."""
    created_at: Timestamp
    """When it was created."""
    updated_at: Timestamp
    """When it was last changed."""


class EnvironmentFile(EnvironmentPart):
    """A file that is written at `path` when a workspace is provisioned."""

    name: str
    """Name to show."""
    path: str
    """Where it is written; begins with `~/`."""
    content: Annotated[str, Field(repr=False)]
    """Text of the file."""


class EnvironmentFileList(Record):
    """Answer of `GET .../files`, by path."""

    environment_files: list[EnvironmentFile]
    """Files."""


class EnvironmentFileAnswer(Record):
    """Answer of making or changing a file."""

    environment_file: EnvironmentFile
    """The file."""


class CreateFile(Body):
    """Body of `POST .../files`; without a name it is the last part of the path."""

    path: FilePath
    """Where to write it; begins with `~/`, without `..`."""
    content: Annotated[Content, Field(repr=False)]
    """Text of the file, at most 65,536 bytes."""
    name: Name | None = None
    """Name to show; the last part of the path when it is left out."""


class ChangeFile(Patch):
    """Body of `PATCH .../files/{id}`; what is not given stays."""

    name: Name = Field(default_factory=str)
    """Name to show."""
    path: FilePath = Field(default_factory=str)
    """Where to write it; begins with `~/`, without `..`."""
    content: Content = Field(default_factory=str, repr=False)
    """Text of the file, at most 65,536 bytes."""


class EnvironmentHook(Record):
    """A version of a hook: a shell script. Versions only grow, and one is active."""

    id: Id
    """Unique id."""
    organization_id: Id
    """Organization it belongs to."""
    environment_id: Id
    """Environment it belongs to."""
    version: int
    """Number of the version; only grows."""
    content: str
    """Shell script."""
    is_active: bool
    """Whether new workspaces run it."""
    created_at: Timestamp
    """When it was created."""


class WarmHookAnswer(Record):
    """Answer of saving a warm hook."""

    warm_hook: EnvironmentHook
    """The saved version."""


class WarmHookState(Record):
    """Answer of `GET .../warm-hooks`."""

    warm_hook: EnvironmentHook | None
    """Active version; null when there is none."""
    warm_pool: WarmPool | None
    """Pool of the environment; null when there is none."""


class StartHookAnswer(Record):
    """Answer of `GET .../start-hooks` and of saving one; null when there is none."""

    start_hook: EnvironmentHook | None
    """Active version; null when there is none."""


class SaveHook(Body):
    """Body of the `save` operations; an empty start hook removes the active one."""

    content: Text
    """Shell script."""


NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
VARIABLE_PATTERN = r"^[^=\x00]+$"
HEADER_PATTERN = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

McpName = Annotated[str, Field(pattern=NAME_PATTERN)]


class McpTransport(StrEnum):
    """How an agent talks to a server."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


def _web_address(url: object) -> object:
    """Check before the bounds: a text that is not an address is not merely too short."""
    if isinstance(url, str) and (not url.startswith(("http://", "https://")) or " " in url):
        raise ValueError("it must begin with http:// or https://")
    return url


class StdioConfig(Body):
    """A program that is started for the agent."""

    command: Annotated[str, Field(min_length=1), NO_NUL]
    """Program to start."""
    args: list[Text] = []
    """Arguments of the program."""
    env: dict[Annotated[str, Field(pattern=VARIABLE_PATTERN)], Text] = {}
    """Environment variables of the program."""


class RemoteConfig(Body):
    """A server somewhere else."""

    url: Annotated[
        str, Field(min_length=9, max_length=4096), ONE_LINE, BeforeValidator(_web_address)
    ]
    """Address of the server, http or https."""
    headers: dict[Annotated[str, Field(pattern=HEADER_PATTERN)], Line] = {}
    """Headers to send with each request."""


def checked_config(transport: McpTransport, config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration with only the fields of its transport.

    Raises:
        ValueError: it does not fit the transport. The text contains no values: they may be secret.
    """
    model = StdioConfig if transport is McpTransport.STDIO else RemoteConfig
    try:
        return model.model_validate(config).model_dump()
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][:1])
        reason = first["msg"].removeprefix("Value error, ")
    raise ValueError(f"{where}: {reason}")


class EnvironmentMcp(EnvironmentPart):
    """One server; its configuration is encrypted where it is stored."""

    name: str
    """Name that agents see."""
    transport: str
    """How an agent talks to it: `stdio`, `http` or `sse`."""
    config: Annotated[dict[str, Any], Field(repr=False)]
    """Settings: StdioConfig for `stdio`, otherwise RemoteConfig."""


class EnvironmentMcpList(Record):
    """Answer of `GET .../mcps`, by name."""

    environment_mcps: list[EnvironmentMcp]
    """Servers."""


class EnvironmentMcpAnswer(Record):
    """Answer of making or changing a server."""

    environment_mcp: EnvironmentMcp
    """The server."""


class CreateMcp(Body):
    """Body of `POST .../mcps`."""

    name: McpName
    """Name that agents see; unique in the environment."""
    transport: McpTransport
    """How an agent talks to it."""
    config: Annotated[dict[str, Any], Field(repr=False)]
    """Settings: StdioConfig for `stdio`, otherwise RemoteConfig."""

    @field_validator("config")
    @classmethod
    def _fits(cls, config: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        transport = info.data.get("transport")  # missing when it is invalid
        return config if transport is None else checked_config(transport, config)


class ChangeMcp(Patch):
    """Body of `PATCH .../mcps/{id}`; what is not given stays, `config` is replaced as a whole."""

    name: McpName = Field(default_factory=str)
    """Name that agents see; unique in the environment."""
    transport: McpTransport = Field(default_factory=lambda: McpTransport.STDIO)
    """How an agent talks to it."""
    config: dict[str, Any] = Field(default_factory=dict, repr=False)
    """Settings: StdioConfig for `stdio`, otherwise RemoteConfig."""


SLUG_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class EnvironmentSkill(EnvironmentPart):
    """A skill that is installed into workspaces, in a directory named by its slug.

    `source` is a git URL or a path, and after a `#` the directory in it that holds `SKILL.md`.
    Without one that is its top, or else the directory named by the slug.
    """

    name: str
    """Name to show."""
    slug: str
    """Directory it is installed in."""
    source: str
    """Git URL or path, with an optional `#` and directory."""


class EnvironmentSkillList(Record):
    """Answer of `GET .../skills`, by name."""

    environment_skills: list[EnvironmentSkill]
    """Skills."""


class EnvironmentSkillAnswer(Record):
    """Answer of enabling a skill."""

    environment_skill: EnvironmentSkill
    """The skill."""


class CreateSkill(Body):
    """Body of `POST .../skills`; a slug or source that is enabled already is a conflict."""

    name: Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]
    """Name to show."""
    slug: Annotated[str, Field(pattern=SLUG_PATTERN)]
    """Directory to install it in; unique in the environment."""
    source: Annotated[str, Field(min_length=1, max_length=1000), ONE_LINE]
    """Git URL or path, with an optional `#` and directory."""


class FoundSkill(Record):
    """A skill of a registry. `installs` is 0 where they are not counted."""

    name: str
    """Name to show."""
    slug: str
    """Directory to install it in."""
    source: str
    """Source for `POST .../skills`."""
    installs: int = 0
    """Number of installations, as the registry counts them."""
    description: str | None = None
    """Description."""


class FoundSkills(Record):
    """Answer of `GET /v1/environment-skills/search`, best match first."""

    skills: list[FoundSkill]
    """Matching skills."""


KEY_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,254}$"
VALUE_LIMIT = 65_536
"""Most bytes of a value."""

RESERVED_KEYS = frozenset(
    (
        "HOME",
        "USER",
        "LOGNAME",
        "QUARTERDECK_WORKSPACE",
        "QUARTERDECK_SANDBOX",
        *WAY_OUT,
        CA_VARIABLE,
    )
)
"""Variables that the sandbox and the service set themselves; an environment cannot have them (400)."""

Key = Annotated[str, Field(pattern=KEY_PATTERN)]
Value = Annotated[Text, bytes_at_most(VALUE_LIMIT)]


class EnvironmentVariable(EnvironmentPart):
    """One variable; its value is encrypted where it is stored.

    `personal_override_allowed`: personal environments with this source may set their own value.
    """

    key: str
    """Name of the variable."""
    value: Annotated[str, Field(repr=False)]
    """Value of the variable."""
    personal_override_allowed: bool
    """Whether personal environments with this source may set their own value."""
    suppressed: bool = False
    """Without effect: an inherited variable of this key does not allow personal overrides any more."""


class EnvironmentVariableList(Record):
    """Answer of `GET .../variables`, by key."""

    environment_variables: list[EnvironmentVariable]
    """Variables."""


class EnvironmentVariableAnswer(Record):
    """Answer of making or changing a variable."""

    environment_variable: EnvironmentVariable
    """The variable."""


class CreateVariable(Body):
    """Body of `POST .../variables`."""

    key: Key
    """Name of the variable; unique in the environment."""
    value: Annotated[Value, Field(repr=False)]
    """Value, at most 65,536 bytes."""
    personal_override_allowed: Switch = False
    """Whether personal environments with this source may set their own value."""


class ChangeVariable(Patch):
    """Body of `PATCH .../variables/{id}`; what is not given stays."""

    key: Key = Field(default_factory=str)
    """Name of the variable; unique in the environment."""
    value: Value = Field(default_factory=str, repr=False)
    """Value, at most 65,536 bytes."""
    personal_override_allowed: Switch = Field(default_factory=bool)
    """Whether personal environments with this source may set their own value."""


class HookTest(Record):
    """How a hook ended; `exit_code` is null when it timed out."""

    exit_code: int | None
    """Exit code; null when it timed out."""
    output: str
    """Output."""
    timed_out: bool
    """Whether it timed out and was stopped."""


class HookTestAnswer(Record):
    """Answer of `test`."""

    test: HookTest
    """How the test ended."""


class SavedHookTest(Record):
    """Answer of `save-test`: the version is in force only when its test succeeded."""

    warm_hook: EnvironmentHook
    """The saved version."""
    test: HookTest
    """How the test ended."""


class TestHook(Body):
    """Body of `test`; without content the version in force is tested."""

    __test__ = False  # not a test class, despite its name

    content: Text | None = None
    """Shell script to test; the active version when it is left out."""


class HookTestEvent(Record):
    """One message of `test/stream`.

    `progress` has a `message`, `output` what the hook printed, `complete` how it ended, `error` a
    `message` that says why it could not be run.
    """

    type: Literal["progress", "output", "complete", "error"]
    """Type of the event."""
    message: str | None = None
    """Message for a person; with `progress` and `error`."""
    output: str | None = None
    """What the hook printed; with `output` and `complete`."""
    exit_code: int | None = None
    """Exit code, with `complete`; null when it timed out."""
    timed_out: bool | None = None
    """Whether it timed out; with `complete`."""
