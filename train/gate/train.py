"""Labelled messages come in; the weights of the built-in memory gate, or its figures, go out.

    pip install torch==2.13.0 scikit-learn==1.9.1 'usher-gateway[semantic]'
    python -m train.gate.train --folds 3  # measures, every row by models that never saw it
    python -m train.gate.train            # writes proxy/memory/gate/network.npz and words.bin

Measuring leaves `thresholds.json` behind, which writing reads. Deterministic for given versions and
machine. Torch and scikit-learn are needed here alone.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from proxy.memory.gate.model import NETWORK_FILE, WORDS_FILE, pack_words
from proxy.memory.gate.pair import ease_of
from train.gate.figures import Nested, even, report, threshold_for
from train.gate.nets import LAYERS, Plan, encode, score, train
from train.gate.rows import HERE, Row, is_foreign, load_rows
from train.gate.wording import features_of, learn
from train.gate.wording import score as score_words

RECALL = 0.97
"""That the thresholds are set for."""
_THRESHOLDS = HERE / "thresholds.json"


def cross_validate(rows: list[Row], folds: int, members: int) -> None:
    """Scores every foreign row by models that never saw it; the seed set is left out whole."""
    fold = _deal(rows, folds)
    data, features = encode(rows), features_of(rows)
    networks, words = np.zeros(len(rows)), np.zeros(len(rows))
    for k in range(folds):
        known = np.flatnonzero((fold != k) & (fold != -2))
        wording = learn([rows[i] for i in known], [features[i] for i in known])
        nets = [train(data.pick(known), Plan(), seed) for seed in range(members)]
        for tested, share in ((np.flatnonzero(fold == k), 1), (np.flatnonzero(fold == -2), folds)):
            networks[tested] += score(nets, data.pick(tested)) / share
            words[tested] += score_words(wording, [features[i] for i in tested]) / share
        print(f"fold {k + 1} of {folds}", file=sys.stderr, flush=True)
    foreign = np.flatnonzero([is_foreign(row) for row in rows])
    show([rows[i] for i in foreign], Nested(fold[foreign], networks[foreign], words[foreign]))


def _deal(rows: Sequence[Row], folds: int) -> Any:
    """The fold of each row; -1 is learned from in each, -2 in none."""
    foreign = [i for i, row in enumerate(rows) if is_foreign(row)]
    fold = np.full(len(rows), -1)
    fold[foreign] = np.random.default_rng(0).integers(0, folds, len(foreign))
    fold[[i for i, row in enumerate(rows) if row["set"] == "seed"]] = -2
    return fold


def show(rows: Sequence[Row], found: Nested) -> None:
    """Print the figures and keep thresholds and scores."""
    share = even(rows, found.networks, found.words)
    blend = found.networks + share * found.words
    thresholds = {
        "letters": share,
        "blend": threshold_for(rows, blend, RECALL),
        "words": threshold_for(rows, found.words, RECALL),
    }
    ease = np.array([ease_of(row["latest"]) for row in rows])
    for name, scores in (("networks", found.networks), ("words", found.words), ("blend", blend)):
        for recall in (0.96, RECALL, 0.98):
            passed = scores + ease >= threshold_for(rows, scores, recall)
            lines = list(report(rows, passed))
            print(f"== {name} at recall {recall}")
            print("\n".join(lines if recall == RECALL and name != "networks" else lines[:4]))
    print(f"== blend and threshold chosen without the fold, at recall {RECALL}")
    print("\n".join(list(report(rows, found.passed(rows, RECALL)))[:2]))
    _THRESHOLDS.write_text(json.dumps({k: round(v, 4) for k, v in thresholds.items()}) + "\n")
    with (HERE / "scores.jsonl").open("w") as out:
        for row, s, w in zip(rows, blend, found.words, strict=True):
            line = {**row, "score": float(s), "words": float(w)}
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


def write(rows: list[Row], members: int) -> None:
    """Train on everything and write both files."""
    thresholds = json.loads(_THRESHOLDS.read_text())
    data = encode(rows)
    weights: dict[str, Any] = {
        "members": np.array(members),
        "letters": np.array(thresholds["letters"]),
        "shift": np.array(thresholds["blend"]),
    }
    for member in range(members):
        net = train(data, Plan(), member)
        for name in LAYERS:
            layer = getattr(net, name)
            weights[f"{name}_w{member}"] = layer.weight.detach().numpy().T.astype(np.float16)
            weights[f"{name}_b{member}"] = layer.bias.detach().numpy().astype(np.float16)
    np.savez_compressed(NETWORK_FILE, **weights)
    found = learn(rows, features_of(rows))
    weighed = found.weights.tolist(), found.rarities.tolist()
    WORDS_FILE.write_bytes(pack_words(*weighed, found.scale, thresholds["words"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--members", type=int, default=4)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.folds:
        cross_validate(load_rows(), asked.folds, asked.members)
    else:
        write(load_rows(), asked.members)


if __name__ == "__main__":
    main()
