"""Where the configuration file is. Apart from its content: most people have none."""

import os
from pathlib import Path

from quarterdeck.local.home import HOME_VARIABLE

FILE_NAME = "config.toml"


def config_path() -> Path:
    """`config.toml` in `QUARTERDECK_HOME`, else in the platform's configuration directory."""
    named = os.environ.get(HOME_VARIABLE)
    if named:
        return Path(named).expanduser().absolute() / FILE_NAME
    from platformdirs import user_config_path  # slow to import, rarely needed

    return user_config_path("quarterdeck", appauthor=False) / FILE_NAME
