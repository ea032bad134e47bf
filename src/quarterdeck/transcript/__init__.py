"""Folds agent events into the blocks that a person reads. Pure; one module per dialect."""
