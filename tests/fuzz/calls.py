"""Requests made from the description of an operation, right ones and wrong ones."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from tests.fuzz.schemas import JUNK, TEXTS, Components, Object, fitting, mutated

FAR = (
    "/test",
    "/save-test",
    "/stream",
    "/warm-pools",
    "/wake",
    "/archive",
    "/sleep",
    "/trigger",
    "/retry",
)
"""Operations that start or end what is real; they are asked about what does not exist."""

URLS = st.sampled_from(["", "x", "/nowhere/at/all", "file:///nowhere", "json://127.0.0.1:1/", 7])
"""Nothing that leads out of this machine."""

BAD_JSON = st.sampled_from(
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'"text"', b"7", b"[" * 5_000, b'{"a":1}{"b":2}']
)
LONGEST_WORD = 4_000
"""Of a parameter: the client itself sends no longer addresses."""

RAW = ("application/json", "text/plain", "application/xml", "multipart/form-data", "")


@dataclass(frozen=True)
class Operation:
    """One operation of the description."""

    method: str
    path: str
    spec: Object = field(repr=False)
    components: Components = field(repr=False)

    @property
    def group(self) -> str:
        return self.spec["tags"][0]

    @property
    def streams(self) -> bool:
        answers = self.spec["responses"].get("200", {}).get("content", {})
        return "text/event-stream" in answers

    @property
    def far(self) -> bool:
        return self.path.endswith(FAR) or (self.method == "DELETE" and self.path.endswith("/{id}"))

    def answer_schema(self, status: int) -> Object | None:
        """The schema of a JSON answer; None when it is described without one."""
        answer = self.spec["responses"][str(status)]
        if "$ref" in answer:
            return {"$ref": "#/components/schemas/ErrorObject"}
        return answer.get("content", {}).get("application/json", {}).get("schema")


@dataclass(frozen=True)
class Request:
    """What is sent."""

    method: str
    url: str
    headers: dict[str, str]
    more: dict[str, Any]


def operations(description: Object) -> list[Operation]:
    schemas = description["components"]["schemas"]
    return [
        Operation(method.upper(), path, spec, schemas)
        for path, methods in description["paths"].items()
        for method, spec in methods.items()
    ]


@st.composite
def requests(draw: st.DrawFn, operation: Operation, known: dict[str, list[str]]) -> Request:
    """A request of an operation; `known` are ids that exist, by the name of their parameter.

    What belongs to one group of operations alone stands under `GROUP NAME`.
    """
    url, query, headers = operation.path, {}, {}
    for one in operation.spec.get("parameters", []):
        value = _parameter(draw, operation, one, known)
        match one["in"]:
            case "path":
                url = url.replace("{" + one["name"] + "}", quote(_word(value), safe=""))
            case "query" if one.get("required") or draw(st.booleans()):
                query[one["name"]] = _word(value)
            case "header" if draw(st.integers(0, 7)) == 0:
                headers[one["name"]] = "".join(
                    letter for letter in _word(value) if " " <= letter <= "~"
                ).strip()
            case _:
                pass
    return Request(operation.method, url, headers, {"params": query, **_body(draw, operation)})


def _parameter(
    draw: st.DrawFn, operation: Operation, one: Object, known: dict[str, list[str]]
) -> Any:
    mine = known.get(f"{operation.group} {one['name']}") or known.get(one["name"], [])
    exists = [] if operation.far else mine
    if one["in"] == "path" and exists and draw(st.integers(0, 9)) < 7:
        return draw(st.sampled_from(exists))
    return draw(st.one_of(fitting(one["schema"], operation.components), TEXTS, JUNK))


def _word(value: Any) -> str:
    return (value if isinstance(value, str) else str(value))[:LONGEST_WORD]


def _body(draw: st.DrawFn, operation: Operation) -> Object:
    described = operation.spec.get("requestBody", {}).get("content", {})
    if "multipart/form-data" in described:
        name, content = draw(TEXTS), draw(st.binary(max_size=200))
        if draw(st.integers(0, 4)) == 0:
            return {"data": {"filename": name}}
        return {"data": {"filename": name}, "files": {"file": ("file", content)}}
    if not described:
        return {}
    if draw(st.integers(0, 9)) == 0:
        return {
            "content": draw(BAD_JSON),
            "headers": {"Content-Type": draw(st.sampled_from(RAW))},
        }
    schema = next(iter(described.values()))["schema"]
    base = fitting(schema, operation.components)
    value = draw(st.one_of(base, mutated(base), mutated(mutated(base))))
    if isinstance(value, dict):
        value = {name: _tame(draw, name, one) for name, one in value.items()}
    return {"json": value}


def _tame(draw: st.DrawFn, name: str, value: Any) -> Any:
    """Keeps what is asked on this machine, and short."""
    if name in ("url", "webhook_url", "source"):
        return draw(URLS)
    if name == "command" and isinstance(value, str):
        return f": {value!r}" if len(value) < 100 and "\0" not in value else value
    return value
