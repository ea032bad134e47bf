"""A model server on loopback in place of every provider. `server.Model` is what tests start."""
