"""Labelled rows come in; the small networks that `proxy.memory.gate.network` runs go out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from proxy.memory.gate.network import SIZE, read_inputs, read_texts, vectors_of
from proxy.tools.semantic import load_universal
from train.gate.rows import Row, pair_of, weight_of

WHOLE = 6 * SIZE + 8
LAYERS = ("clause", "focus", "join", "last")


@dataclass(frozen=True)
class Plan:
    """How to train one network."""

    epochs: int = 5
    batch: int = 64
    rate: float = 2e-3
    decay: float = 0.1
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
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, plan.rate, total_steps=steps, pct_start=0.2
    )
    losses = nn.BCEWithLogitsLoss(reduction="none")
    for _ in range(plan.epochs):
        order = torch.randperm(len(data.label))
        for start in range(0, len(order), plan.batch):
            some = data.pick(order[start : start + plan.batch])
            soft = some.label * (1 - 2 * plan.smooth) + plan.smooth
            loss = (losses(net(some.whole, some.clauses, some.mask), soft) * some.weight).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call] # torch's own
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return net.eval()


def score(nets: Sequence[Net], data: Set) -> NDArray[np.float64]:
    with torch.no_grad():
        votes = [net(data.whole, data.clauses, data.mask).numpy() for net in nets]
    found: NDArray[np.float64] = np.mean(votes, axis=0)
    return found
