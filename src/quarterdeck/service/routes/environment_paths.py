"""What paths below one environment have in common."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path

from quarterdeck.wire.base import GivenId

PREFIX = "/v1/environments/{environment_id}"


async def _reference(environment_id: Annotated[GivenId | Literal["global"], Path()]) -> str:
    return str(environment_id)


EnvironmentRef = Annotated[str, Depends(_reference)]
"""The environment named in the path: its id, or `global`."""


def environment_router() -> APIRouter:
    """A router for paths below one environment."""
    return APIRouter(prefix=PREFIX, tags=["environments"])
