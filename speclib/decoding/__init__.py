"""From a prompt to a result: decode, what-ifs, replays, and others' methods beside ours."""
