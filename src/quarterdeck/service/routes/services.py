"""`GET /v1/services`: which home answers, and who else shares its database."""

from fastapi import APIRouter

from quarterdeck.service.context import Context
from quarterdeck.service.presence import services_known
from quarterdeck.wire.services import ServiceList

router = APIRouter(tags=["services"])


@router.get("/v1/services")
async def list_all(context: Context) -> ServiceList:
    """Every service of the database; over a database of its own the one that answers."""
    return ServiceList(services=await services_known(context))
