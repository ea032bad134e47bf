"""What paths below one environment have in common."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Path

PREFIX = "/v1/environments/{environment_id}"


async def _reference(environment_id: Annotated[UUID | Literal["global"], Path()]) -> str:
    return str(environment_id)


EnvironmentRef = Annotated[str, Depends(_reference)]
"""The environment named in the path: its id, or `global`."""


def environment_router() -> APIRouter:
    """A router for paths below one environment."""
    return APIRouter(prefix=PREFIX, tags=["environments"])
