"""The app with a picture in tmux, for the tests of what reaches the terminal around both: DIRECTORY ARGUMENTS."""

import os
import shlex
import sys
from pathlib import Path

if __name__ == "__main__":
    directory, *arguments = sys.argv[1:]
    settings = Path(directory, "tmux.conf")
    settings.write_text("set -g status off\nset -g allow-passthrough on\n")
    app = [sys.executable, str(Path(__file__).with_name("pictures_app.py")), *arguments]
    command = ["tmux", "-u", "-S", f"{directory}/tmux", "-f", str(settings), "new-session"]
    os.execvp("tmux", [*command, shlex.join(app)])
