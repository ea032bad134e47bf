"""Skills in registries: directories and git repositories with folders that hold a `SKILL.md`."""
