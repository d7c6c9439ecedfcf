"""Which peers are compared with in this run.

Where a peer is not to be had (Pinocchio has no wheel for Windows) its tests are not collected.  OpenSim and CasADi
bring different versions of one library, and cannot be in one process: tests of OpenSim have a run of their own,
``KINEGRAD_PEER=opensim``, as ``make test-slow`` does it.
"""

import importlib.util
import os

collect_ignore_glob = ["opensim_model.py"]  # imports OpenSim, and has no examples
if importlib.util.find_spec("pinocchio") is None:
    collect_ignore_glob += ["*.py"]
if os.environ.get("KINEGRAD_PEER") != "opensim":
    collect_ignore_glob += ["test_opensim*.py"]
