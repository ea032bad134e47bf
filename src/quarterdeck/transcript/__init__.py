"""Folds the agent events of a chat into blocks to show. Pure: no screen, no I/O.

Message flow: `wire.AgentEvent` -> a dialect (`acp`) reads it as steps -> `apply.Fold` -> `Block`s.

Nothing is imported here: who only cleans text (`text`) does not load the fold.
"""
