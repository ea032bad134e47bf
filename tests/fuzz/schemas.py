"""JSON schemas of the description: values that fit them, values that do not, and a check."""

import re
from datetime import datetime
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

Object = dict[str, Any]
Components = dict[str, Object]

LONG = "x" * 70_000
TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["", " ", "\0", "\n", "%00", "../..", "/", "global", "'", '"', LONG, "\U0001f600"]
    ),
)
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**30, 1.5, 1e300]),
    TEXTS,
    st.just([]),
    st.just({}),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


def resolved(schema: Object, components: Components) -> Object:
    while "$ref" in schema:
        schema = components[schema["$ref"].rsplit("/", 1)[1]]
    return schema


def fitting(schema: Object, components: Components, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that fit a schema, where that can be told from it."""
    schema = resolved(schema, components)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return st.one_of([fitting(one, components, depth + 1) for one in schema[word]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            least, most = schema.get("minimum", -5), schema.get("maximum", 2**40)
            return st.integers(least, max(least, most))
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "string":
            return _text(schema)
        case "array":
            most = 0 if depth > 4 else 3
            return st.lists(fitting(schema.get("items", {}), components, depth + 1), max_size=most)
        case "object":
            return _object(schema, components, depth)
        case _:
            return JUNK


def _text(schema: Object) -> st.SearchStrategy[str]:
    if schema.get("format") == "uuid":
        return st.uuids().map(str)
    if schema.get("format") == "date-time":
        return st.datetimes().map(lambda value: value.isoformat() + "Z")
    least, most = schema.get("minLength", 0), min(schema.get("maxLength", 60), 300)
    if "pattern" in schema:
        found = st.from_regex(schema["pattern"])
        return found.filter(lambda text: least <= len(text) <= most)
    return st.text(min_size=least, max_size=max(least, min(most, 60)))


def _object(schema: Object, components: Components, depth: int) -> st.SearchStrategy[Object]:
    fields = {
        name: fitting(one, components, depth + 1)
        for name, one in schema.get("properties", {}).items()
    }
    needed = schema.get("required", [])
    return st.fixed_dictionaries(
        {name: fields.pop(name) for name in needed if name in fields}, optional=fields
    )


@st.composite
def mutated(draw: st.DrawFn, base: st.SearchStrategy[Any]) -> Any:
    """A value with one of its parts replaced, taken away or added."""
    value = draw(base)
    if not isinstance(value, dict) or not value or draw(st.integers(0, 5)) == 0:
        return draw(JUNK)
    changed = dict(value)
    name = draw(st.sampled_from(sorted(changed)))
    match draw(st.integers(0, 3)):
        case 0:
            del changed[name]
        case 1:
            changed[draw(TEXTS)] = draw(JUNK)
        case 2 if isinstance(changed[name], dict):
            changed[name] = draw(mutated(st.just(changed[name])))
        case _:
            changed[name] = draw(JUNK)
    return changed


def misfits(value: Any, schema: Object, components: Components, where: str = "$") -> list[str]:
    """What does not fit; the words that the description uses are understood."""
    schema = resolved(schema, components)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            tries = [misfits(value, one, components, where) for one in schema[word]]
            return [] if any(not one for one in tries) else [f"{where}: fits none of {word}"]
    if "const" in schema and value != schema["const"]:
        return [f"{where}: is not {schema['const']!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    if not _is(value, schema.get("type")):
        return [f"{where}: {value!r} is no {schema['type']}"]
    match value:
        case dict():
            return _object_misfits(value, schema, components, where)
        case list():
            items = schema.get("items", {})
            parts = (
                misfits(one, items, components, f"{where}[{n}]") for n, one in enumerate(value)
            )
            return [wrong for part in parts for wrong in part]
        case str():
            return _text_misfits(value, schema, where)
        case int() | float() if not isinstance(value, bool):
            least, most = schema.get("minimum", value), schema.get("maximum", value)
            return [] if least <= value <= most else [f"{where}: {value} is out of bounds"]
        case _:
            return []


def _object_misfits(value: Object, schema: Object, components: Components, where: str) -> list[str]:
    found = [f"{where}: lacks {name}" for name in schema.get("required", []) if name not in value]
    known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, one in value.items():
        rule = known.get(name, more)
        if isinstance(rule, dict):
            found += misfits(one, rule, components, f"{where}.{name}")
        elif not rule:
            found.append(f"{where}: has {name}")
    return found


def _is(value: Any, kind: str | None) -> bool:
    match kind:
        case None:
            return True
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(value, {"string": str, "array": list, "object": dict}[kind])


def _text_misfits(value: str, schema: Object, where: str) -> list[str]:
    try:
        if schema.get("format") == "uuid":
            UUID(value)
        if schema.get("format") == "date-time":
            datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return [f"{where}: {value!r} is no {schema['format']}"]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return [f"{where}: {value!r} does not match {schema['pattern']}"]
    return []
