"""The command palette: actions, replicas and pages, found by a few of their letters.

Loaded when it is first opened.
"""
