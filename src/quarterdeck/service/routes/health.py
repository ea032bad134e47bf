"""`GET /v1/health`: whether the service answers. Needs no key."""

from fastapi import APIRouter

from quarterdeck import __version__
from quarterdeck.wire.health import Health

router = APIRouter(tags=["health"])


@router.get("/v1/health")
async def read_health() -> Health:
    """The service is up."""
    return Health(status="ok", version=__version__)
