"""Variables of an environment (specification, operation 7; INTERFACE 7)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, Id, Patch, Record, Switch, Timestamp
from quarterdeck.wire.inside import WAY_OUT
from quarterdeck.wire.stored_text import Text, bytes_at_most

KEY_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,254}$"
VALUE_LIMIT = 65_536
"""Most bytes of a value."""

RESERVED_KEYS = frozenset(
    ("HOME", "USER", "LOGNAME", "QUARTERDECK_WORKSPACE", "QUARTERDECK_SANDBOX", *WAY_OUT)
)
"""What the sandbox and the service set themselves, whatever an environment says; so no variable has such a key (400)."""

Key = Annotated[str, Field(pattern=KEY_PATTERN)]
Value = Annotated[Text, bytes_at_most(VALUE_LIMIT)]


class EnvironmentVariable(Record):
    """One variable; its value is encrypted where it is stored.

    `personal_override_allowed`: personal environments with this source may set their own value.
    """

    id: Id
    organization_id: Id
    environment_id: Id
    key: str
    value: Annotated[str, Field(repr=False)]
    personal_override_allowed: bool
    created_at: Timestamp
    updated_at: Timestamp


class EnvironmentVariableList(Record):
    """Answer of `GET .../variables`, by key."""

    environment_variables: list[EnvironmentVariable]


class EnvironmentVariableAnswer(Record):
    """Answer of making or changing a variable."""

    environment_variable: EnvironmentVariable


class CreateVariable(Body):
    """Body of `POST .../variables`."""

    key: Key
    value: Annotated[Value, Field(repr=False)]
    personal_override_allowed: Switch = False


class ChangeVariable(Patch):
    """Body of `PATCH .../variables/{id}`; what is not given stays."""

    key: Key = Field(default_factory=str)
    value: Value = Field(default_factory=str, repr=False)
    personal_override_allowed: Switch = Field(default_factory=bool)
