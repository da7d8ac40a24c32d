"""Models behind one interface; torch is imported only inside this package.

A model has ``vocab`` (rows), ``context`` (longest text), ``prefix`` (the tokens its KV cache
holds), ``rows(text, last, sampler) -> [last + 1, V]``, ``cut(length)`` and ``reset()``.
"""
