"""Can a Transformer read an image? Patches of handwritten digits as tokens, beside plain rivals (notebook 19)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.baselines import count_parameters
from transformer_lib.course.lab.patches import EPOCHS, VERSIONS
from transformer_lib.data.digits import load_digits
from transformer_lib.model.encoder import Encoder
from transformer_lib.model.positional import LearnedPosition
from transformer_lib.training.schedules import make_schedule

from .engine import Step, Steps, Study

SIZE = 2  # a patch is SIZE × SIZE pixels
SIZES = (2, 32, 4, 64)  # layers, d_model, heads, d_ff
BATCH_SIZE, RATE, WARMUP = 64, 3e-3, 20
SHORT = 1  # epochs of a run that a test repeats


@dataclass(frozen=True)
class Setup:
    """One run: one of VERSIONS, passes over the images, the seed of split, weights and order."""

    version: str
    epochs: int
    seed: int


class Split(NamedTuple):
    """Images to learn from and images held out, each [n, 8, 8], with their digits."""

    images: Tensor
    labels: Tensor
    held_images: Tensor
    held_labels: Tensor


def split(seed: int) -> Split:
    """Return all digits, a quarter of each kind held out, drawn with the seed."""
    images, labels = load_digits()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    kinds = [order[labels[order] == digit] for digit in range(10)]
    held = torch.cat([kind[: len(kind) // 4] for kind in kinds])
    kept = torch.cat([kind[len(kind) // 4 :] for kind in kinds])
    return Split(images[kept], labels[kept], images[held], labels[held])


def patches(images: Tensor, size: int = SIZE) -> Tensor:
    """Cut images [n, h, w] into patches of size × size pixels, row by row: [n, h · w / size², size²]."""
    n, h, w = images.shape
    cut = images.reshape(n, h // size, size, w // size, size)
    return cut.transpose(2, 3).reshape(n, -1, size * size)


def another_order() -> Tensor:
    """Return the order in which "positions, another order" reads the patches of every image, [patches]."""
    return torch.randperm((8 // SIZE) ** 2, generator=torch.Generator().manual_seed(0))


class PatchClassifier(nn.Module):
    """Patches as tokens: a linear map, positions or none, `Encoder` under no mask, the mean, a linear map to digits.

    Args:
        learned_positions: whether each place in the sequence has a learned vector.
    """

    def __init__(self, learned_positions: bool = True) -> None:
        super().__init__()
        _, d_model, *_ = SIZES
        self.embedding = nn.Linear(SIZE * SIZE, d_model)
        self.position = LearnedPosition((8 // SIZE) ** 2, d_model) if learned_positions else nn.Identity()
        self.stack = Encoder(*SIZES, norm_first=True, activation="gelu")
        self.output_head = nn.Linear(d_model, 10)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits [n, 10] for patches [n, n_patches, pixels]."""
        x = self.stack(self.position(self.embedding(tokens)))
        return self.output_head(x.mean(dim=1))


def new_model(version: str, seed: int) -> PatchClassifier:
    """Return the untrained model of a version."""
    torch.manual_seed(seed)
    return PatchClassifier(version != "no positions")


def train(model: nn.Module, tokens: Tensor, labels: Tensor, epochs: int, seed: int) -> list[float]:
    """Train with AdamW on batches in random order, and return the loss of each step."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01, fused=True)
    steps, losses = epochs * -(-len(labels) // BATCH_SIZE), []
    rate = make_schedule("cosine", total_steps=steps, learning_rate=RATE, warmup_steps=WARMUP, d_model=SIZES[1])
    for _ in range(epochs):
        for rows in torch.randperm(len(labels), generator=generator).split(BATCH_SIZE):
            for group in optimizer.param_groups:
                group["lr"] = rate(len(losses) + 1)
            loss = F.cross_entropy(model(tokens[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@torch.no_grad()
def share_right(model: nn.Module, tokens: Tensor, labels: Tensor) -> float:
    """Return the share of images whose digit has the largest logit."""
    return round(float((model(tokens).argmax(dim=-1) == labels).float().mean()), 4)


def run_setup(setup: Setup) -> dict[str, Any]:
    """Train one set-up, and return what share of digits it gets right; and where only the test's patches are moved."""
    parts, order = split(setup.seed), another_order()
    tokens, held = patches(parts.images), patches(parts.held_images)
    if setup.version == "positions, another order":
        tokens, held = tokens[:, order], held[:, order]
    model = new_model(setup.version, setup.seed)
    losses = train(model, tokens, parts.labels, setup.epochs, setup.seed)
    return {
        "parameters": count_parameters(model),
        "loss": round(sum(losses[-22:]) / 22, 4),
        "held out": share_right(model, held, parts.held_labels),
        "trained on": share_right(model, tokens, parts.labels),
        "moved in the test": share_right(model, held[:, order], parts.held_labels),
    }


def neighbours(parts: Split, k: int = 3) -> float:
    """Return the share right by the k nearest training images, the commonest of their digits (the lowest of equals)."""
    distances = torch.cdist(parts.held_images.flatten(1), parts.images.flatten(1))
    nearest = parts.labels[distances.topk(k, largest=False).indices]  # [held, k]
    return _share(F.one_hot(nearest, 10).sum(dim=1), parts.held_labels)


def logistic_regression(parts: Split) -> float:
    """Return the share right of one linear map from the pixels, with the penalty ‖W‖² / 2 on the summed loss."""
    pixels, weight = parts.images.flatten(1), torch.zeros(65, 10, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        logits = pixels @ weight[:64] + weight[64]
        value = F.cross_entropy(logits, parts.labels, reduction="sum") + weight[:64].square().sum() / 2
        value.backward()
        return value

    optimizer.step(loss)
    with torch.no_grad():
        return _share(parts.held_images.flatten(1) @ weight[:64] + weight[64], parts.held_labels)


def kernel_ridge(parts: Split, penalty: float = 0.1) -> float:
    """Return the share right of ridge regression on the digit's one-hot."""
    kernel, across = _kernels(parts)
    wanted = F.one_hot(parts.labels, 10).double()
    return _share(across @ torch.linalg.solve(kernel + penalty * torch.eye(len(kernel)), wanted), parts.held_labels)


def support_vector_machine(parts: Split, c: float = 10.0) -> float:
    """Return the share right of one machine for each digit against the rest, with c times the squared hinge loss."""
    kernel, across = _kernels(parts)
    features = torch.linalg.cholesky(kernel + 1e-6 * torch.eye(len(kernel)))  # [n, n], whose products are the kernel's
    side = 2 * F.one_hot(parts.labels, 10).double() - 1  # [n, 10], 1 for the digit and −1 for the others
    weight, bias = (torch.zeros(*shape, 10, dtype=side.dtype, requires_grad=True) for shape in ((len(kernel),), ()))
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        hinge = F.relu(1 - side * (features @ weight + bias))
        value = weight.square().sum() / 2 + c * hinge.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    with torch.no_grad():
        support = torch.linalg.solve_triangular(features.T, weight, upper=True)  # what each training image weighs
        return _share(across @ support + bias, parts.held_labels)


def _kernels(parts: Split) -> tuple[Tensor, Tensor]:
    """Return exp(−‖x − x'‖² / (64 var)) of the training images with themselves, and of those held out with them."""
    pixels, held = parts.images.flatten(1).double(), parts.held_images.flatten(1).double()
    scale = 64 * pixels.var(correction=0)
    kernel, across = ((-torch.cdist(some, pixels).square() / scale).exp() for some in (pixels, held))
    return kernel, across


def _share(scores: Tensor, labels: Tensor) -> float:
    return round(float((scores.argmax(dim=-1) == labels).float().mean()), 4)


def short_run(version: str) -> list[float]:
    """Return the losses of one epoch, seed 0: quick to repeat."""
    parts = split(0)
    tokens = patches(parts.images)
    tokens = tokens[:, another_order()] if version == "positions, another order" else tokens
    return [round(loss, 4) for loss in train(new_model(version, 0), tokens, parts.labels, SHORT, 0)]


RIVALS = {
    "3 nearest images": neighbours,
    "logistic regression": logistic_regression,
    "kernel ridge": kernel_ridge,
    "support vector machine": support_vector_machine,
}


def steps(seeds: Sequence[int]) -> Steps:
    """Try the rivals on the split of each seed, and train every version."""
    for position, seed in enumerate(seeds):
        for name, method in RIVALS.items():
            yield Step(("rivals", name, position), lambda method=method, seed=seed: method(split(seed)))
    for version in VERSIONS:
        yield Step(("short", version), short_run, version)
    for epochs, seed, version in itertools.product(EPOCHS, seeds, VERSIONS):
        setup = Setup(version, epochs, seed)
        yield Step(("runs", setup), run_setup, setup)


STUDY = Study("patches", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
