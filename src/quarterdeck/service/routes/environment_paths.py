"""What paths below one environment have in common."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path
from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from quarterdeck.wire.base import GivenId

PREFIX = "/v1/environments/{environment_id}"


def _either(value: object, read: ValidatorFunctionWrapHandler) -> object:
    """One sentence for what is neither, in place of one for each."""
    try:
        return read(value)
    except ValidationError as e:
        raise ValueError("it must be `global`, or a UUID with its hyphens and nothing else") from e


_Given = Annotated[GivenId | Literal["global"], WrapValidator(_either)]


async def _reference(environment_id: Annotated[_Given, Path()]) -> str:
    return str(environment_id)


EnvironmentRef = Annotated[str, Depends(_reference)]
"""The environment named in the path: its id, or `global`."""


def environment_router() -> APIRouter:
    """A router for paths below one environment."""
    return APIRouter(prefix=PREFIX, tags=["environments"])
