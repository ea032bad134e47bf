"""Callers: keys, user tokens, engine secrets.

`authentication` turns a bearer into a `Caller` and refuses those that the route does not accept;
`service.routing` says how a route declares them.
"""
