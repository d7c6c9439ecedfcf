"""Where a peer is not to be had (Pinocchio has no wheel for Windows) its tests are not collected."""

import importlib.util

collect_ignore_glob = ["*.py"] if importlib.util.find_spec("pinocchio") is None else []
