"""A virtual world that checks operations' KV accounts against the caches."""

from __future__ import annotations

from collections.abc import Sequence

from speclib.operations.draft_dynamic_tree import DraftDynamicTree
from speclib.operations.draft_sequences import DraftSequences
from speclib.operations.draft_tree import DraftTree
from speclib.operations.fork import Fork
from speclib.operations.propose import Propose
from speclib.worlds.virtual import Virtual


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Returns the length of the longest common prefix of two texts."""
    count = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        count += 1
    return count


def nodes_off_the_first_path(parents: Sequence[int]) -> int:
    """Returns how many nodes of a tree follow its first line."""
    count = 0
    for length in range(1, len(parents) + 1):
        is_a_line = parents[:length] == tuple(range(-1, length - 1))
        if not is_a_line:
            count += 1
    return count


class WatchedWorld(Virtual):
    """Checks every operation's KV accounts against the cache before and after it.

    ``checked`` counts the operations.
    """

    checked = 0

    def _start(self, future):
        model, op = self.models[future.device], future.op
        same_run = getattr(model, "run_number", None) == self.run.number
        before = list(model.prefix.fed) if same_run else []

        super()._start(future)

        output, kept, fed = self._progress[future].done
        self.checked += 1
        if op.is_empty:  # the text ends before the first draft
            assert (kept, fed) == (len(model.prefix.fed), 0)
        elif isinstance(op, DraftTree):
            self.check_drafted_tree(future, before, output.small, kept, fed)
        elif isinstance(op, DraftDynamicTree):
            self.check_dynamic_tree(future, before, output.small, kept, fed)
        elif isinstance(op, Fork):
            self.check_fork(future, before, output.small, kept, fed)
        elif isinstance(op, Propose):
            self.check_sequences(future, before, (output.small,), kept, fed)
        elif isinstance(op, DraftSequences):
            self.check_sequences(future, before, output.small, kept, fed)
        else:
            self.check_sequences(future, before, ((),), kept, fed)

    def check_sequences(self, future, before, drafts, kept, fed):
        """Checks that the cache contains the text and one sequence's fed tokens."""
        op, cached = future.op, self.models[future.device].prefix.fed
        several = len(drafts) > 1

        # A scored tree leaves its first line in the cache.
        parents = getattr(op, "parents", ())
        stays = len(op.text) - nodes_off_the_first_path(parents)

        # The cache contains the fed drafts: the last sequence's, if there are several.
        drafted = cached[stays:]
        assert cached[:stays] == list(op.text[:stays])
        assert tuple(drafted) in {draft[: len(drafted)] for draft in drafts}

        fed_drafts = sum(len(draft[1:]) for draft in drafts)
        assert several or len(drafted) == fed_drafts

        # The first of several sequences may be fed once more, only for theta.
        fed_again = kept + fed - len(op.text) - fed_drafts
        assert fed_again == 0 or (fed_again == 1 and several)

        assert kept == min(common_prefix(before, op.text), len(op.text) - op.last - 1)

    def check_drafted_tree(self, future, before, drafted, kept, fed):
        """Checks that all levels except the last were fed, each node once.

        The cache keeps the tree's first line, or nothing if the next pass calibrates.
        """
        op, (tokens, parents) = future.op, drafted
        levels: list[int] = []
        for parent in parents:
            levels.append(levels[parent] + 1 if parent >= 0 else 1)
        inner_nodes = sum(level < op.n for level in levels)
        assert kept + fed - len(op.text) == inner_nodes
        assert max(levels) == op.n

        cached = self.models[future.device].prefix.fed
        line = cached[len(op.text) :]
        assert cached[: len(op.text)] == list(op.text)
        assert line == list(tokens[: len(line)])

        calibrates = (op.lp or 1) > 1 and op.calibrate
        assert (len(line) == 0) == (op.n == 1 or calibrates)
        assert kept == min(common_prefix(before, op.text), len(op.text) - 1)

    def check_dynamic_tree(self, future, before, drafted, kept, fed):
        """Checks that each level except the last fed at most ``width`` nodes.

        Some are dropped later. A head's cache keeps none of its own nodes.
        """
        op, (tokens, parents) = future.op, drafted
        assert op.features is not None
        assert len(tokens) == len(parents) <= op.budget

        inner_levels = op.n - 1
        fed_drafts = kept + fed - len(op.text)
        assert inner_levels <= fed_drafts <= inner_levels * op.width

        assert self.models[future.device].prefix.fed == list(op.text)
        assert kept == min(common_prefix(before, op.text), len(op.text) - 1)

    def check_fork(self, future, before, drafted, kept, fed):
        """Checks that every guess was fed, and every draft but the last of each branch.

        The cache keeps the text, its window and the tree's line that continues it.
        """
        op = future.op
        outcomes, branches = drafted or ((), ())
        assert kept + fed - len(op.text) == len(outcomes) * op.n
        assert all(len(branch) == op.n for branch in branches)

        cached = self.models[future.device].prefix.fed
        assert cached[: len(op.text)] == list(op.text)
        wanted = len(op.text) - op.last - 1
        assert kept == min(common_prefix(before, op.text), wanted)
