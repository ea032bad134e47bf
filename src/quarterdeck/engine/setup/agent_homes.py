"""Where each agent looks below HOME for skills and for instructions that always apply.

Skills are installed once, in `.agents/skills`, the place that agents agree on; the others get a
link. The built-in agent reads neither.
"""

SKILLS = ".agents/skills"

OWN_SKILLS = (
    ".claude/skills",
    ".codex/skills",
    ".copilot/skills",
    ".gemini/skills",
    ".config/opencode/skills",
)

INSTRUCTIONS = (
    ".claude/CLAUDE.md",
    ".codex/AGENTS.md",
    ".copilot/copilot-instructions.md",
    ".gemini/GEMINI.md",
    ".config/opencode/AGENTS.md",
)
