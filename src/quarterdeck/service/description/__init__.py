"""The OpenAPI description of the service, made from its routes."""
