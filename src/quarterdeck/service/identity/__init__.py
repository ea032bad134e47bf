"""Who asks: keys, user tokens, engine secrets, and what each of them opens.

`authenticator` turns a bearer into a `Caller`; `doors` says which routes take which bearers; the
rest is one module per kind of bearer.
"""
