"""The sampler of a request: what the caller asks for, and else what the target's files
say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from speclib.core.penalties import Penalties
from speclib.core.sampling import Sampler
from speclib.errors import BadValue
from speclib.models.open_pair import OpenPair


@dataclass(frozen=True)
class AskedSampling:
    """What ``decode`` was given of how tokens are chosen; None: left to the target's
    generation_config.json."""

    temperature: float
    top_k: Any
    top_p: float | None
    repetition_penalty: float | None
    presence_penalty: float
    frequency_penalty: float
    min_new_tokens: int | None

    def sampler(
        self, opened: OpenPair, prompt_length: int, max_new_tokens: int
    ) -> Sampler:
        """The sampler for a text that begins with so long a prompt.

        Raises BadValue for a value that is none, naming it, and for a file that asks
        for what is not here.
        """
        files = opened.generation_settings
        files.check(opened.pair.target.model, sampling=self.temperature > 0)
        least = self.min_new_tokens
        if least is not None and least > max_new_tokens:
            raise BadValue(
                f"min_new_tokens is {least}, more than max_new_tokens="
                f"{max_new_tokens}: give at most as many"
            )
        repetition = self.repetition_penalty
        penalties = Penalties(
            repetition=files.repetition_penalty if repetition is None else repetition,
            presence=self.presence_penalty,
            frequency=self.frequency_penalty,
            prompt_length=prompt_length,
            shortest=files.shortest(prompt_length, least),
            ends=opened.end_tokens,
            suppressed=frozenset(files.suppress_tokens),
        )
        top_k = files.top_k if self.top_k is None else self.top_k
        top_p = files.top_p if self.top_p is None else self.top_p
        return Sampler(self.temperature, top_k, top_p, penalties)
