"""Where each agent looks below HOME for skills and for instructions that always apply.

Skills are installed once, in `.agents/skills`, which codex, opencode and gemini read by themselves.
Their own places get a link for versions that do not yet; those that read both tell a skill once.
claude reads its own place alone. The built-in agent reads neither skills nor instructions.
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
