"""Why cells of a paper failed, stored for the process that runs its notebook."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from speclab.experiment.spec import Spec
from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.errors import SpeclibError


def store(key: str, errors: Mapping[Spec, Exception]) -> None:
    """Writes down why cells failed in the last run of a paper."""
    reasons = {spec.model_dump_json(): str(error) for spec, error in errors.items()}
    write_atomically(_file_of(key), json.dumps(reasons))


def read(key: str) -> dict[Spec, Exception]:
    """Why cells failed in the last run of a paper; empty where nothing is known."""
    try:
        reasons = json.loads(_file_of(key).read_text("utf-8"))
        return {
            Spec.model_validate_json(text): SpeclibError(reason)
            for text, reason in reasons.items()
        }
    except (OSError, ValueError, AttributeError):
        return {}


def _file_of(key: str) -> Path:
    return paths.CACHE / "reports" / f"{key}.failures.json"
