"""Importing this module loads what an engine needs until its first turn, for a process that forks engines."""

from collections.abc import Iterator
from importlib import import_module

from pydantic import BaseModel

for _name in ("quarterdeck.agents.catalog", "quarterdeck.engine.daemon"):
    import_module(_name)


def _models(base: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield from _models(model)
        if model.__module__.startswith("quarterdeck.wire."):
            yield model


# Models are built on first use otherwise, in the memory of each fork.
for _model in _models():
    _model.model_rebuild()
