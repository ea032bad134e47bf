"""The engine's methods by name, with their parameters and handlers."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.journal import Line
from quarterdeck.wire.engine import EngineHello, StreamTerminal, TerminalFrame

_Params = TypeVar("_Params", bound=BaseModel)
Handler = Callable[[dict[str, Any] | None], Awaitable[BaseModel | None]]


@dataclass(frozen=True)
class Method:
    """`lasting` methods run to their end even when the link breaks."""

    call: Handler
    lasting: bool = True


class Methods(Protocol):
    """The methods of a connection."""

    table: dict[str, Method]

    def hello(self) -> EngineHello:
        """Return the answer of `open`."""
        ...

    def journal(self, after: int) -> AsyncGenerator[list[Line], None]:
        """Yield the entries above an index, then live ones."""
        ...

    def watch(self, request: StreamTerminal) -> AsyncGenerator[TerminalFrame, None]:
        """Yield a terminal's frames."""
        ...


def parse(model: type[_Params], params: dict[str, Any] | None) -> _Params:
    """Read a call's parameters.

    Raises:
        EngineRefusedError: INVALID_REQUEST, `details` names the field.
    """
    try:
        return model.model_validate(params or {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        details = f"{field}: {first['msg']}"
        raise EngineRefusedError.invalid("The call's parameters are not valid.", details) from error
