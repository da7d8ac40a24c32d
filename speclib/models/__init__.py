"""Models behind one interface; torch is imported only inside this package.

A model has ``vocab`` (rows), ``context`` (longest text), ``prefix`` (the tokens its KV cache
holds), ``rows(text, last, sampler) -> [last + 1, V]``, ``chances() -> [V]`` (what follows the last
of these rows' texts, at temperature 1), ``cut(length)``, ``reset()``, and may have a ``continued``
of its own (see operations).
"""
