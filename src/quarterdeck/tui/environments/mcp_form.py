"""The dialog for an MCP server: which fields there are depends on how one talks to it."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from textual import on

from quarterdeck.tui.environments.parts import Parts
from quarterdeck.tui.forms.kit import Field, FormScreen, ModelForm, Refused
from quarterdeck.tui.forms.kit.errors import model_errors
from quarterdeck.tui.forms.kit.spec import spec_of
from quarterdeck.wire.base import Body
from quarterdeck.wire.environment_mcps import (
    ChangeMcp,
    CreateMcp,
    EnvironmentMcp,
    McpTransport,
    Name,
    RemoteConfig,
    StdioConfig,
)
from quarterdeck.wire.environments import Environment

TRANSPORTS = (
    ("stdio: a program that is started", "stdio"),
    ("http: a server somewhere else", "http"),
    ("sse: the same with an event stream", "sse"),
)
STDIO, REMOTE = ("command", "args", "env"), ("url", "headers")
FIELDS = (
    Field("name", help="What agents call it.", rule="Letters, digits, _ and -"),
    Field("transport", help="How an agent talks to it.", options=TRANSPORTS),
    Field("command", help="The program, without its arguments.", placeholder="npx"),
    Field("args", "Arguments", "One a line, as they are.", rows=3),
    Field("env", "Variables", "Its own; they may be secret.", secret=True, rows=3),
    Field("url", "URL", placeholder="https://host/mcp"),
    Field("headers", help="Sent with each request; they may be secret.", secret=True, rows=3),
)


class McpServer(Body):
    """Every field that the dialog may show; which count depends on the transport."""

    name: Name
    transport: McpTransport = McpTransport.STDIO
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}

    def config(self) -> dict[str, Any]:
        """What the transport asks for.

        Raises:
            Refused: it does not fit.
        """
        stdio = self.transport is McpTransport.STDIO
        model: type[BaseModel] = StdioConfig if stdio else RemoteConfig
        given = self.model_dump(include=set(STDIO if stdio else REMOTE))
        try:
            return model.model_validate(given).model_dump()
        except ValidationError as error:
            specs = [spec_of(McpServer, field) for field in FIELDS]
            raise Refused(model_errors(error, specs)) from None


class McpScreen(FormScreen[object]):
    """Adds or changes a server."""

    def __init__(self, parts: Parts, environment: Environment, mcp: EnvironmentMcp | None) -> None:
        self._parts = parts
        self._environment = environment
        self._mcp = mcp
        form = ModelForm(McpServer, FIELDS, _start(mcp))
        title = mcp.name if mcp else f"New MCP server of {environment.name}"
        super().__init__(title, form, self._keep, verb="Save" if mcp else "Add")

    def on_mount(self) -> None:
        self._fit_transport()

    @on(ModelForm.Changed)
    def _fit_transport(self) -> None:
        stdio = self.form.value("transport") in {"stdio", McpTransport.STDIO}
        for path in STDIO:
            self.form.row(path).display = stdio
        for path in REMOTE:
            self.form.row(path).display = not stdio

    async def _keep(self, body: BaseModel) -> object:
        assert isinstance(body, McpServer)
        config, contents = body.config(), self._parts.contents
        if self._mcp is None:
            new = CreateMcp(name=body.name, transport=body.transport, config=config)
            return await contents.add_mcp(self._environment, new)
        change = ChangeMcp(name=body.name, transport=body.transport, config=config)
        return await contents.change_mcp(self._environment, self._mcp.id, change)


def _start(mcp: EnvironmentMcp | None) -> Mapping[str, Any]:
    if mcp is None:
        return {}
    return {"name": mcp.name, "transport": mcp.transport, **mcp.config}
