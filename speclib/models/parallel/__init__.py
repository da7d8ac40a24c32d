"""One model computed by several processes, or several of its layers at once.

``ranks`` are the processes that compute one model together. ``tensor_parallel`` cuts
every layer among them. ``layer_parallel`` lets several layers read the same input, in
the way of EasySpec, on one rank or on several.
"""
