"""The settings in a target's generation_config.json: how its tokens are chosen.

Like transformers' ``generate``, ``decode`` obeys that file. It always applies the
penalties and bans, but top_k and top_p only with a temperature. A setting that would
change the text and is not implemented raises an error that names it. As in
``generate(do_sample=False)``, the caller sets the temperature and the number of tokens,
and decides whether to sample.

Importing this module imports neither torch nor transformers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from speclib.arguments import Number, Whole, problems_in, shown
from speclib.core.settings import end_token_set
from speclib.errors import BadValue

if TYPE_CHECKING:
    from transformers import GenerationConfig, PretrainedConfig

GENERATION_CONFIG = "generation_config.json"

Natural: TypeAlias = Annotated[int, Whole(least=0)]

# Settings that change a text and are not implemented: name -> values without effect.
NOT_HERE: Mapping[str, Collection[Any]] = {
    "no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1.0,),
    "encoder_no_repeat_ngram_size": (0,),
    "bad_words_ids": (),
    "sequence_bias": (),
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
    "begin_suppress_tokens": ([],),
    "exponential_decay_length_penalty": (),
    "guidance_scale": (1.0,),
    "penalty_alpha": (0.0,),
    "num_beams": (1,),
    "stop_strings": ([],),
    "watermarking_config": (),
    "token_healing": (False,),
    "max_time": (),
    "constraints": (),
    "force_words_ids": (),
    "dola_layers": (),
}
NOT_HERE_WHEN_SAMPLING: Mapping[str, Collection[Any]] = {
    "min_p": (0.0,),
    "top_h": (),
    "typical_p": (1.0,),
    "epsilon_cutoff": (0.0,),
    "eta_cutoff": (0.0,),
}


class GenerationSettings(BaseModel):
    """The file's settings, under transformers' names; a missing setting is off.

    ``refused``: settings that are not implemented, as "name=value".
    ``refused_when_sampling``: the same, for settings that matter only when sampling.
    """

    model_config = ConfigDict(frozen=True)
    repetition_penalty: Annotated[float, Number(above=0)] = 1.0
    min_new_tokens: Natural | None = None
    min_length: Natural = 0
    suppress_tokens: tuple[Natural, ...] = ()
    top_k: Natural = 0
    top_p: Annotated[float, Number(above=0, most=1)] = 1.0
    refused: tuple[str, ...] = ()
    refused_when_sampling: tuple[str, ...] = ()

    def shortest(self, prompt_length: int, min_new_tokens: int | None) -> int:
        """The minimum length of a text in tokens, prompt included.

        ``min_new_tokens``: the caller's value, which overrides the file's. As in
        transformers, ``min_length`` applies only if neither is set.
        """
        least = self.min_new_tokens if min_new_tokens is None else min_new_tokens
        return self.min_length if least is None else prompt_length + least

    def check(self, model: str, sampling: bool) -> None:
        """Raises BadValue if the file has settings that are not implemented."""
        refused = self.refused + (self.refused_when_sampling if sampling else ())
        if refused:
            raise BadValue(
                f"the generation_config.json of {model!r} sets {', '.join(refused)}, "
                "which would change the text and is not implemented: copy the folder, "
                "and remove the setting there"
            )


def settings_in(config: GenerationConfig, model: str) -> GenerationSettings:
    """The settings in ``config``, a file of ``model``.

    Raises BadValue for a value of the wrong type.
    """
    stated = {
        "refused": _set_in(config, NOT_HERE),
        "refused_when_sampling": _set_in(config, NOT_HERE_WHEN_SAMPLING),
    }
    for name in GenerationSettings.model_fields:
        value = getattr(config, name, None)
        if value is not None:
            stated[name] = value
    try:
        return GenerationSettings.model_validate(stated)
    except ValidationError as error:
        reason = problems_in(error, GenerationSettings)
        raise BadValue(f"{GENERATION_CONFIG} of {model!r}: {reason}") from None


def end_tokens_in(
    config: GenerationConfig | PretrainedConfig, model: str
) -> frozenset[int] | None:
    """The end tokens in ``config``, a file of ``model``; None if it has no such entry.

    Chat models often have several: the end of a text and the end of a turn. With an
    empty list, nothing ends a text. Raises BadValue for an entry that is not a token.
    """
    stated: Any = getattr(config, "eos_token_id", None)
    if stated is None:
        return None
    ends = stated if isinstance(stated, list) else [stated]
    if not all(Whole(least=0).allows(end) for end in ends):
        raise BadValue(
            f"model {model!r} has eos_token_id = {shown(stated)} in its files: give "
            "the id of a token, a list of ids, or null"
        )
    return end_token_set(ends)


def _set_in(
    config: GenerationConfig, settings: Mapping[str, Collection[Any]]
) -> tuple[str, ...]:
    """The ``settings`` that the file sets to a value with an effect."""
    found = []
    for name, without_effect in settings.items():
        value = getattr(config, name, None)
        if value is not None and value not in without_effect:
            found.append(f"{name}={value!r}")
    return tuple(found)
