"""The settings page: connections, look, agents, keys of providers and of the service, notifications.

Loaded when it is first opened.
"""
