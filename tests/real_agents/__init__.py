"""Real coding agents against a model that does what the tests tell it."""
