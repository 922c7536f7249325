"""YuniKorn: no objects; every pod carries its gang's task groups in an annotation.

Gangs are of style Hard: with Soft, YuniKorn gives up the guarantee after a while. A Hard gang that timed out leaves a
dead application id behind, so each attempt has an id of its own.
"""

from spinney.backends.yunikorn.backend import BACKEND
from spinney.backends.yunikorn.task_groups import application_id

__all__ = ["BACKEND", "application_id"]
