"""Models behind one interface; torch is imported only inside this package.

A model has ``vocab`` (rows), ``context`` (longest text), ``prefix`` (the tokens its KV cache
holds), ``rows(text, last, sampler) -> [last + 1, V]``, ``confidence(token)`` (its
probability after the last of these rows' texts, at temperature 1), ``cut(length)``, ``reset()``.
"""
