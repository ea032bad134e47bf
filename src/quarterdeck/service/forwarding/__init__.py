"""Requests for a workspace of another service over the same database go on to that service.

middleware -> owners      whose workspace is it?
           -> upstream    the whole request there, the whole answer back
"""
