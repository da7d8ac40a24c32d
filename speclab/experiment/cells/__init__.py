"""What one cell computes. Besides the method's own code, only this enters a cache key.

The engines name the modules of this folder that enter their keys, and the modules of
the models that a measured cell loads (``CODE`` in each engine). All that these import
enters, too. No module here knows a paper or the cache.
"""
