"""The SDK's connection, without the models that `import acp` builds.

The driver passes an agent's updates on as they are, so it needs the SDK's JSON-RPC connection and
none of its 400 models; building those takes 0.6 s of CPU and 10 MB in every engine. So its modules
are imported with the package itself left unexecuted. A later `import acp` works as ever.
"""

import sys
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acp.connection import Connection
    from acp.exceptions import RequestError
    from acp.meta import PROTOCOL_VERSION
else:
    _entered = "acp" in sys.modules
    if not _entered:
        sys.modules["acp"] = module_from_spec(find_spec("acp"))
    try:
        from acp.connection import Connection
        from acp.exceptions import RequestError
        from acp.meta import PROTOCOL_VERSION
    finally:
        if not _entered:
            del sys.modules["acp"]

__all__ = ["PROTOCOL_VERSION", "Connection", "RequestError"]
