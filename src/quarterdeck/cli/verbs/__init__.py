"""The verbs of `qd` itself."""
