"""The checks' devices, pairs and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speclib import machine
from speclib.data import prompts
from speclib.data.pairs import ModelSpec, Pair, load_pair
from speclib.data.placement import Place
from speclib.errors import BadValue
from speclib.models import gpus

PAIR = "embedded/llama-7b-70b"
TASK = "humaneval"
ModelShape = tuple[int, int, int, int]
SEVEN_BILLION = (32, 4096, 32, 11008)  # layers, width, heads, ffn of Llama 2 7B
ONE_BILLION = (22, 2048, 32, 5632)  # of TinyLlama 1.1B
SMALL = (12, 768, 12, 2048)  # the embedded pairs' shape, a stand-in for Llama 2
SMALLER = (4, 512, 8, 1184)
CPU_DRAFT = (4, 512, 8, 1280)  # llama.cpp packs weights in blocks of 256
FIXED_ROWS = 16  # rows in every target pass, if all have the same shape
DRAFT_ROWS = 8  # rows in every recorded draft pass
# The pairs in PEARL's main tables, in published shapes.
SHAPE_PAIRS = (
    "shape/codellama-7b-34b",
    "shape/codellama-7b-70b",
    "shape/llama-7b-70b",
    "shape/llama3.1-8b-70b",
    "shape/deepseek-1.3b-33b",
    "shape/deepseek-6.7b-33b",
)
LAUNCHED = "launched one by one"
RECORDED = "recorded"
RACE_CAPACITY = 512  # tokens: prompt, output and drafts


@dataclass(frozen=True)
class Setup:
    """What is checked, and where.

    draft, target   places of the two models
    target_shape, draft_shape
                    the architectures whose speed is measured
    prompts, tokens number of prompts, and of new tokens per prompt
    passes          number of passes timed to measure one duration
    two_ranks       places of two ranks that compute one model together
    shape_pairs     pairs whose shapes are measured: their passes, and c
    latency_folder  where these pairs' latency files are written; None: nowhere
    """

    draft: str
    target: str
    target_shape: ModelShape = SEVEN_BILLION
    draft_shape: ModelShape = ONE_BILLION
    prompts: int = 4
    tokens: int = 128
    passes: int = 30
    two_ranks: tuple[str, str] = ("cuda:0", "cuda:0")
    shape_pairs: tuple[str, ...] = SHAPE_PAIRS
    latency_folder: Path | None = None

    @property
    def on_gpu(self) -> bool:
        return self.target.startswith("cuda")

    @property
    def shares_a_device(self) -> bool:
        """Whether draft and target share a GPU, and so cannot work in parallel."""
        return self.draft == self.target

    @property
    def kind_of_pass(self) -> str:
        """How a timed pass is launched on its device."""
        return RECORDED if self.on_gpu else LAUNCHED

    @property
    def place(self) -> Place:
        return Place(draft=(self.draft,), target=(self.target,))

    @property
    def texts(self) -> list[Any]:
        """The prompts."""
        return [prompt.input for prompt in prompts.load(TASK, self.prompts)]

    def exact_pair(self) -> Pair:
        """The embedded models as they were trained, which are small."""
        return self._embedded_pair(target_shape=None, draft_shape=None)

    def speed_pair(self) -> Pair:
        """The embedded models in the shapes whose speed is measured.

        On a GPU, all their passes have the same shape and are recorded. Their caches
        have room for a whole text; otherwise a pass would be recorded while it is
        timed.
        """
        pair = self._embedded_pair(self.target_shape, self.draft_shape)
        if not self.on_gpu:
            return pair
        return pair.with_fixed_rows(
            FIXED_ROWS, draft=DRAFT_ROWS, recorded=True, first_room=RACE_CAPACITY
        )

    def _embedded_pair(
        self, target_shape: ModelShape | None, draft_shape: ModelShape | None
    ) -> Pair:
        embedded = load_pair(PAIR)
        target = embedded.target.model_copy(update={"shape": target_shape})
        draft = embedded.draft.model_copy(update={"shape": draft_shape})
        return embedded.model_copy(
            update={"target": target, "draft": draft, "place": self.place}
        )

    def pair_on_two_ranks(self, target: str, draft: str) -> Pair:
        """The exact pair on two ranks per model; ``target``, ``draft``: the layouts."""
        pair = self.exact_pair()
        return pair.model_copy(
            update={
                "target": pair.target.model_copy(update={"spread": target}),
                "draft": pair.draft.model_copy(update={"spread": draft}),
                "place": Place(draft=self.two_ranks, target=self.two_ranks),
            }
        )

    @property
    def cpu_draft_threads(self) -> int:
        """Threads for a draft on the CPU, leaving some cores free to launch passes.

        If the target is on the CPU, one thread: more would take the target's core.
        """
        return max(1, machine.cores() // 2) if self.on_gpu else 1

    def cpu_draft_pair(self) -> Pair:
        """The pair with its draft on the CPU, as in DuoDecoding.

        A GPU records the target's passes. The draft runs in llama.cpp if the extra
        llamacpp is installed, otherwise in torch.
        """
        pair = self.speed_pair()
        draft = ModelSpec(
            model=pair.draft.model,
            shape=CPU_DRAFT,
            runtime="auto",
            quantization="Q5_K_M",
        )
        place = self.place.model_copy(
            update={"draft": ("cpu",), "threads": self.cpu_draft_threads}
        )
        return pair.model_copy(update={"draft": draft, "place": place})


def setup_for_cpu() -> Setup:
    """The setup for this machine's CPU, with small shapes."""
    return Setup(
        draft="core:0",
        target="core:1",
        target_shape=SMALL,
        draft_shape=SMALLER,
        prompts=1,
        tokens=24,
        passes=5,
        two_ranks=("core:0", "core:1"),
        shape_pairs=("embedded/duo-torch",),
    )


def setup_for_gpus() -> Setup:
    """The setup for a machine with GPUs. Raises BadValue if torch finds none.

    With two or more GPUs, draft and target have one each, and so do two ranks.
    """
    found = gpus.count()
    if not found:
        raise BadValue(
            "torch finds no GPU here: install a torch built for CUDA and look at "
            "nvidia-smi; or check this machine's CPU with --device cpu"
        )
    other = "cuda:1" if found > 1 else "cuda:0"
    return Setup(draft="cuda:0", target=other, two_ranks=("cuda:0", other))
