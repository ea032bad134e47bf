"""The dialog that makes a service known."""

from collections.abc import Awaitable, Callable
from typing import Annotated, cast

from pydantic import BaseModel
from pydantic import Field as Bounds

from quarterdeck.tui.forms.kit import Field, FormScreen, ModelForm, Refusal, Refused
from quarterdeck.tui.surroundings import NotPossible, Surroundings


class NewConnection(BaseModel):
    """A service: what to call it, where it is, and the key it is shown."""

    name: Annotated[str, Bounds(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=64)]
    address: Annotated[str, Bounds(pattern=r"^(https?://[^\s/]\S*|unix:/.+)$", max_length=2048)]
    key: Annotated[str, Bounds(pattern=r"^[!-~]+$", max_length=4096)] | None = None


FIELDS = (
    Field("name", rule="Letters and digits, also - and _ behind the first"),
    Field(
        "address",
        rule="It begins with http://, https:// or unix:/",
        placeholder="https://service.example",
    ),
    Field(
        "key",
        help="Without one, get it later: qd auth login --profile NAME.",
        rule="A key has no blanks",
        secret=True,
    ),
)


def new_connection(around: Surroundings) -> FormScreen[str]:
    """Dismissed with the name of the service, which is in the configuration file then."""

    async def save(body: NewConnection) -> str:
        try:
            if any(one.name == body.name for one in around.known()):
                raise Refused(Refusal({"name": "There is one of this name."}))
            around.add(body.name, body.address, body.key)
        except NotPossible as error:
            raise Refused(Refusal(general=str(error))) from None
        return body.name

    form = ModelForm(NewConnection, FIELDS)
    carry_out = cast("Callable[[BaseModel], Awaitable[str]]", save)
    return FormScreen("New connection", form, carry_out, verb="Add")
