"""Uses an installed wheel without any extra."""

import speclib
from speclab import load_paper
from speclib import paths

assert not paths.IS_CHECKOUT, f"{paths.PACKAGE} is a checkout"
for folder in (paths.DATA, paths.ROOT):
    assert folder == paths.DATA_OF_WHEEL, folder

plain = speclib.simulate("autoregressive", tokens=32)
assert abs(plain.stats.seconds - 3.2) < 1e-9, plain.stats  # 32 passes of 0.1 s
runs = speclib.compare("pearl", gamma=5, c=5, alpha=0.8)
assert len({run.text for run in runs}) == 1, "methods write different texts"
toy = speclib.decode("x", pair="toy", world="virtual", max_new_tokens=4)
assert len(toy.tokens) == 4, toy

assert speclib.check("pearl"), "PEARL is not lossless"
assert not speclib.check(lambda drafted, q, p, coin: [drafted[0]])

latency = speclib.load_latency("pearl/codellama-7-34")
assert latency.target(1) > latency.draft(1) > 0, latency
assert speclib.load_pair("embedded/llama-7b-70b").target.model == "zoo/target"

# PEARL, table 1, as printed: CodeLlama 7&70B on HumanEval.
printed = load_paper("pearl").tables["table-1"].cells
assert 4.43 in [value for _row, _column, value in printed], printed

print(paths.HOME)
