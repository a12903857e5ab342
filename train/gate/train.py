"""Labelled messages come in; the weights of the built-in memory gate, or its figures, go out.

    pip install torch==2.13.0 'usher-gateway[semantic]'
    python -m train.gate.train            # writes proxy/memory/gate/network.npz and words.bin
    python -m train.gate.train --folds 4  # only measures, every row by networks that never saw it

Deterministic for a given torch and machine. Torch is needed here alone.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from proxy.memory.gate.model import NETWORK_FILE, WORDS_FILE, pack_words
from proxy.memory.gate.network import SIZE, read_inputs, read_texts, vectors_of
from proxy.memory.gate.pair import Pair, read_pair
from proxy.memory.gate.words import BUCKETS, read_features
from proxy.tools.semantic import load_universal
from train.gate.compose import compose

HERE = Path(__file__).parent
Row = dict[str, Any]
WHOLE = 6 * SIZE + 8
WEIGHT = {"dev": 2.0, "public": 1.5, "seed": 1.5, "own": 0.6}


@dataclass(frozen=True)
class Plan:
    """How to train one network."""

    epochs: int = 11
    batch: int = 64
    rate: float = 1e-3
    decay: float = 0.3
    smooth: float = 0.03
    width: int = 96


class Net(nn.Module):
    """What `proxy.memory.gate.network` computes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.clause, self.focus = nn.Linear(SIZE, width), nn.Linear(width, 2)
        self.join, self.last = nn.Linear(WHOLE + 3 * width, width), nn.Linear(width, 1)
        self.drop_in, self.drop = nn.Dropout(0.2), nn.Dropout(0.4)

    def forward(self, whole: Tensor, clauses: Tensor, mask: Tensor) -> Tensor:
        hidden = torch.relu(self.clause(self.drop_in(clauses)))
        focus = self.focus(hidden).masked_fill(~mask[..., None], -1e4).softmax(1)
        pooled = torch.einsum("bcp,bcw->bpw", focus, hidden).flatten(1)
        most = hidden.masked_fill(~mask[..., None], 0).amax(1)
        seen = torch.cat([self.drop_in(whole), pooled, most], 1)
        return self.last(self.drop(torch.relu(self.join(seen)))).squeeze(-1)


@dataclass(frozen=True)
class Set:
    """Rows as tensors."""

    whole: Tensor
    clauses: Tensor
    mask: Tensor
    label: Tensor
    weight: Tensor

    def pick(self, index: Any) -> "Set":
        return Set(
            *(t[index] for t in (self.whole, self.clauses, self.mask, self.label, self.weight))
        )


def load_rows() -> list[Row]:
    """All labelled rows; `set` says where each is from."""
    rows: list[Row] = []
    for name in ("dev", "public", "seed"):
        for line in (HERE / "data" / f"gate_{name}.jsonl").read_text("utf-8").splitlines():
            rows += [{**json.loads(line), "set": name}]
    seen: set[str] = set()
    for row in compose(HERE / "phrases"):
        known = json.dumps([row["latest"], row["context"]])
        if known not in seen:
            seen.add(known)
            rows.append({**row, "set": "own"})
    return rows


def pair_of(row: Row) -> Pair:
    return read_pair({"latest": row["latest"], "conversation": row.get("context") or []})


def weight_of(row: Row) -> float:
    return WEIGHT[row["set"]] * (0.5 if row.get("doubtful") else 1.0)


def encode(rows: Sequence[Row]) -> Set:
    """Tensors of rows; each distinct text goes through the encoder once."""
    texts = [read_texts(pair_of(row)) for row in rows]
    wanted = list(dict.fromkeys(text for found in texts for text in found.all))
    encoder = load_universal()
    vectors = {}
    for start in range(0, len(wanted), 64):
        some = wanted[start : start + 64]
        vectors |= vectors_of(some, encoder.encode(some))
    inputs = [read_inputs(found, vectors) for found in texts]
    longest = max(len(clauses) for _, clauses in inputs)
    clauses = np.zeros((len(rows), longest, SIZE), np.float32)
    mask = np.zeros((len(rows), longest), bool)
    for i, (_, found) in enumerate(inputs):
        clauses[i, : len(found)], mask[i, : len(found)] = found, True
    return Set(
        torch.from_numpy(np.stack([whole for whole, _ in inputs])),
        torch.from_numpy(clauses),
        torch.from_numpy(mask),
        torch.tensor([float(row["label"]) for row in rows]),
        torch.tensor([weight_of(row) for row in rows]),
    )


def train(data: Set, plan: Plan, seed: int) -> Net:
    torch.manual_seed(seed)
    net = Net(plan.width)
    optimizer = torch.optim.AdamW(net.parameters(), lr=plan.rate, weight_decay=plan.decay)
    steps = plan.epochs * (len(data.label) // plan.batch + 1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, plan.rate, total_steps=steps)
    losses = nn.BCEWithLogitsLoss(reduction="none")
    for _ in range(plan.epochs):
        order = torch.randperm(len(data.label))
        for start in range(0, len(order), plan.batch):
            some = data.pick(order[start : start + plan.batch])
            soft = some.label * (1 - 2 * plan.smooth) + plan.smooth
            loss = (losses(net(some.whole, some.clauses, some.mask), soft) * some.weight).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call] # torch's own
            optimizer.step()
            schedule.step()
    return net.eval()


def score(nets: Sequence[Net], data: Set) -> np.ndarray[Any, Any]:
    with torch.no_grad():
        votes = [net(data.whole, data.clauses, data.mask).numpy() for net in nets]
    found: np.ndarray[Any, Any] = np.mean(votes, axis=0)
    return found


def train_words(rows: Sequence[Row], epochs: int = 14) -> tuple[np.ndarray[Any, Any], float]:
    """The linear model over letters: weights and the scale of their whole numbers."""
    random = np.random.default_rng(0)
    features = [np.array(sorted(set(read_features(pair_of(row)))), np.int64) for row in rows]
    weights, squares = np.zeros(BUCKETS), np.full(BUCKETS, 1e-6)
    for _ in range(epochs):
        for i in random.permutation(len(rows)):
            found = features[i]
            size = np.sqrt(max(1, len(found)))
            guess = 1 / (1 + np.exp(-np.clip(weights[found].sum() / size, -30, 30)))
            slope = (guess - rows[i]["label"]) * weight_of(rows[i]) / size
            step = slope + 2e-4 * weights[found]
            squares[found] += step**2
            weights[found] -= 0.3 * step / np.sqrt(squares[found])
    scale = float(np.abs(weights).max()) / 127
    return np.clip(np.round(weights / scale), -127, 127).astype(np.int64), scale


def score_words(rows: Sequence[Row], weights: np.ndarray[Any, Any], scale: float) -> Any:
    found = [sorted(set(read_features(pair_of(row)))) for row in rows]
    return np.array([weights[f].sum() * scale / np.sqrt(max(1, len(f))) for f in found])


def threshold_for(rows: Sequence[Row], scores: Any, recall: float) -> float:
    """The score that this share of the clear positives of the development set reaches."""
    good = [
        s
        for r, s in zip(rows, scores, strict=True)
        if r["set"] == "dev" and r["label"] and not r.get("doubtful")
    ]
    return float(np.sort(good)[int((1 - recall) * len(good))])


def report(rows: Sequence[Row], scores: Any, threshold: float) -> Iterator[str]:
    """Recall and false positives, by set and by language."""
    passed = np.asarray(scores) >= threshold
    for name in ("dev", "public", "seed"):
        clear = [i for i, r in enumerate(rows) if r["set"] == name and not r.get("doubtful")]
        good = [i for i in clear if rows[i]["label"]]
        bad = [i for i in clear if not rows[i]["label"]]
        if good and bad:
            yield f"{name}: recall {passed[good].mean():.3f}, false positives {passed[bad].mean():.3f}"
    for key in ("lang", "kind"):
        groups: dict[str, list[int]] = {}
        for i, row in enumerate(rows):
            if row["set"] == "dev" and not row.get("doubtful"):
                groups.setdefault(row[key], []).append(i)
        parts = []
        for value, index in sorted(groups.items(), key=lambda item: -len(item[1])):
            good = [i for i in index if rows[i]["label"]]
            bad = [i for i in index if not rows[i]["label"]]
            parts.append(
                f"{value} {int(passed[good].sum())}/{len(good)} {int(passed[bad].sum())}/{len(bad)}"
            )
        yield f"{key} (found/asked, passed/others): " + ", ".join(parts)


def cross_validate(rows: list[Row], folds: int, members: int, keep_seed_out: bool) -> None:
    """Scores for every foreign row from networks that never saw it; the seed set is left out whole."""
    data = encode(rows)
    random = np.random.default_rng(0)
    fold = random.integers(0, folds, len(rows))
    fold[[i for i, r in enumerate(rows) if r["set"] == "own"]] = -1
    if keep_seed_out:
        fold[[i for i, r in enumerate(rows) if r["set"] == "seed"]] = -2
    scores, words = np.zeros(len(rows)), np.zeros(len(rows))
    for k in range(folds):
        learn = np.flatnonzero((fold != k) & (fold != -2))
        tested = np.flatnonzero(fold == k)
        nets = [train(data.pick(learn), Plan(), seed) for seed in range(members)]
        scores[tested] = score(nets, data.pick(tested))
        weights, scale = train_words([rows[i] for i in learn])
        words[tested] = score_words([rows[i] for i in tested], weights, scale)
        aside = np.flatnonzero(fold == -2)
        scores[aside] += score(nets, data.pick(aside)) / folds
        words[aside] += score_words([rows[i] for i in aside], weights, scale) / folds
        print(f"fold {k + 1} of {folds}", file=sys.stderr, flush=True)
    for name, found in (("network", scores), ("words", words)):
        for recall in (0.95, 0.97, 0.98):
            threshold = threshold_for(rows, found, recall)
            print(f"== {name} at recall {recall}: threshold {threshold:.3f}")
            print("\n".join(list(report(rows, found, threshold))[: None if recall == 0.97 else 3]))
    with (HERE / "scores.jsonl").open("w") as out:
        for row, s, w in zip(rows, scores, words, strict=True):
            if row["set"] != "own":
                out.write(
                    json.dumps({**row, "score": float(s), "words": float(w)}, ensure_ascii=False)
                    + "\n"
                )


def write(rows: list[Row], members: int, shift: float, words_shift: float) -> None:
    """Train on everything and write both files."""
    data = encode(rows)
    weights: dict[str, np.ndarray[Any, Any]] = {
        "members": np.array(members),
        "shift": np.array(shift),
    }
    for member in range(members):
        net = train(data, Plan(), member)
        for name in ("clause", "focus", "join", "last"):
            layer = getattr(net, name)
            weights[f"{name}_w{member}"] = layer.weight.detach().numpy().T.astype(np.float16)
            weights[f"{name}_b{member}"] = layer.bias.detach().numpy().astype(np.float16)
    np.savez_compressed(NETWORK_FILE, **weights)  # type: ignore[arg-type] # names and arrays
    found, scale = train_words(rows)
    WORDS_FILE.write_bytes(pack_words([int(w) for w in found], scale, words_shift))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--shift", type=float, default=-2.5, help="threshold of the networks")
    parser.add_argument("--words-shift", type=float, default=-3.3, help="threshold of the letters")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.folds:
        cross_validate(load_rows(), asked.folds, asked.members, keep_seed_out=True)
    else:
        write(load_rows(), asked.members, asked.shift, asked.words_shift)


if __name__ == "__main__":
    main()
