"""Python imports this at start-up where its folder is on the path: plants the environment's break.

The table of breaks is read only when the module in question comes, so that a child which never
imports it starts as it would.
"""

import os

if os.environ.get("SUITES_BREAK"):
    from suites.meta.planting.install import AT, NAME, Planter

    def _instead():  # type: ignore[no-untyped-def]
        from suites.meta.breaks import BREAKS  # noqa: PLC0415 - read when it is needed

        return BREAKS[os.environ[NAME]].instead

    Planter(os.environ[AT], _instead).install()
