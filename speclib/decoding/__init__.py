"""From a prompt to a result: decode, what-ifs, replays, others' methods beside ours."""
