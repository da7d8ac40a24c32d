"""One model run by several processes, or with several layers computed at once.

``ranks`` are the processes that together run one model. ``tensor_parallel`` divides
every layer among them, ``pipeline`` distributes whole layers, and ``replicas`` gives
each rank a copy. ``layer_parallel`` lets several layers read the same input, as in
EasySpec, on one rank or on several.
"""
