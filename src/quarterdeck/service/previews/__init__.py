"""Ports of workspaces that can be looked at through the service (INTERFACE 6).

registry    which ports; tells every change as an event
doorway     the loopback socket that all previews share
addresses   from an address to a token, and back
exchange    one connection through it: requests, streams and websockets, byte for byte
"""
