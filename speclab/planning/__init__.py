"""Which method, with which settings, is fastest for a pair on this machine?

passes are timed     ->  experiment: seconds by device, alone and together
what could be run    ->  candidates: methods with settings
ranked by `virtual`  ->  plan: the methods' code on a clock with these seconds
checked by `measured`   the first few, in turns with plain decoding
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = ("plan",)
