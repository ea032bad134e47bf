"""What a message becomes for an agent."""


def with_uploads(text: str, uploads: list[str]) -> str:
    """Return a prompt that names the files which come with it."""
    if not uploads:
        return text
    files = "\n".join(f"- {path}" for path in uploads)
    return f"{text}\n\nFiles that come with this message:\n{files}".lstrip()
