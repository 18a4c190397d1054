"""What the clinic's instruments say of faults that are not in its catalogue (notebook 17).

After two steps the instruments that need no long training are read, and the model is compared with a sound one that has
its weights; then each is trained for 200 and for 1,000 steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer_lib.course.clinic import instruments, patients, task
from transformer_lib.course.clinic import recipe as training
from transformer_lib.course.clinic.faults import HEALTHY, Fault
from transformer_lib.course.clinic.unheard import EARLY, UNHEARD, norm_over
from transformer_lib.course.lab.parts import without_residual
from transformer_lib.model.layers import FeedForward
from transformer_lib.model.multihead import MultiHeadAttention
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.loss import shift_right

from .engine import Step, Steps, Study

STEPS = (200, 1000)
YOUNG = 2  # steps, before the instruments are read
SAME = 1e-5  # how closely two outputs must agree, in single precision


def skip_encoder(model: Transformer) -> None:
    """Hand the embedded source on as the memory."""
    model.encoder.register_forward_hook(lambda module, args, memory: args[0])


def reshape_into_heads(model: Transformer) -> None:
    """Cut [seq_len, d_model] into heads by a reshape, which mixes tokens and features."""
    for layer in model.modules():
        if isinstance(layer, MultiHeadAttention):
            heads = layer.n_heads
            layer.split_heads = lambda x, heads=heads: x.reshape(x.shape[0], heads, x.shape[1], -1)


def norm_over_tokens(model: Transformer) -> None:
    """Take mean and variance over the tokens of a sentence in place of the features of a token."""
    norm_over(model, dim=1)


def add_positions_twice(model: Transformer) -> None:
    """Add the position encodings once more to the embedded tokens."""
    embed = model._embed
    model._embed = lambda table, ids, start=0: model.position(embed(table, ids, start), start)


def copy_first_head(model: Transformer) -> None:
    """Put the first head's output in the place of the second's too."""
    for layer in model.modules():
        if isinstance(layer, MultiHeadAttention):
            join = layer.join_heads
            layer.join_heads = lambda heads, join=join: join(heads[:, :1].expand_as(heads))


def no_relu(model: Transformer) -> None:
    """Leave the ReLU out, so that the two maps of a feed-forward network are one."""
    for layer in model.modules():
        if isinstance(layer, FeedForward):
            layer.forward = lambda x, layer=layer: layer.contract(layer.expand(x))


STRANGERS = (
    Fault("residual left out", "norm(f(x))", "norm(x + f(x))", without_residual),
    Fault("encoder skipped", "memory = embedded", "memory = self.encoder(embedded, mask)", skip_encoder),
    Fault("heads split by reshape", "x.reshape(…)", "x.unflatten(…).transpose(1, 2)", reshape_into_heads),
    Fault("norm over the tokens", "x.mean(dim=1)", "x.mean(dim=-1)", norm_over_tokens),
    Fault("positions added twice", "position(position(x))", "position(x)", add_positions_twice),
    Fault("second head copies the first", "heads[:, [0, 0]]", "heads", copy_first_head),
    Fault("ReLU left out", "contract(expand(x))", "contract(relu(expand(x)))", no_relu),
    Fault(
        "optimizer has the decoder only",
        "Adam(model.decoder.parameters())",
        "Adam(model.parameters())",
        trains=lambda model: model.decoder.parameters(),
    ),
    Fault(
        "pairs misaligned",
        "zip(sources, targets[1:])",
        "zip(sources, targets)",
        feed=lambda tgt: shift_right(tgt.roll(1, dims=0)),
    ),
)
"""Faults that are not in the catalogue; the first four and the list itself were chosen by hand, so no rate follows."""


def outputs(model: nn.Module, *inputs: Tensor) -> list[tuple[str, Tensor]]:
    """Return (name, output) of every module below the model, in the order in which they finish."""
    finished: list[tuple[str, Tensor]] = []

    def keep(name: str):
        return lambda module, args, output: finished.append((name, output.detach()))

    hooks = [module.register_forward_hook(keep(name)) for name, module in model.named_modules() if name]
    with torch.no_grad():
        model(*inputs)
    for hook in hooks:
        hook.remove()
    return finished


def first_difference(model: Transformer, reference: Transformer, *inputs: Tensor) -> str | None:
    """Return the first module whose output in the model is not the reference's; None if there is none."""
    for (name, one), (other_name, other) in zip(outputs(model, *inputs), outputs(reference, *inputs), strict=False):
        if name != other_name or not torch.allclose(one, other, atol=SAME):
            return name
    return None


def beside_reference(model: Transformer) -> str | None:
    """Return where a model parts from a sound one with the same weights."""
    with torch.random.fork_rng(devices=[]):
        reference = Transformer(model.config).eval()
    reference.load_state_dict(model.state_dict())
    return first_difference(model, reference, *task.rows())


def measure(case: Fault, seed: int, steps: Sequence[int] = STEPS) -> dict:
    """Return what the instruments flag, where the model parts from a sound one, and what it learns."""
    young = patients.Patient("young", *training.train(case, seed, training.Recipe(steps=YOUNG)), case, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        values = {name: instruments.read(name, young) for name in EARLY}
    flagged = {name: round(value, 3) for name, value in values.items() if instruments.INSTRUMENTS[name].abnormal(value)}
    result = {"flagged": flagged, "first difference": beside_reference(young.model), "loss": {}, "reverses": {}}
    for number in steps:
        old = patients.Patient("old", *training.train(case, seed, training.Recipe(steps=number)), case)
        result["loss"][str(number)] = round(old.log.at_the_end()[0], 4)
        result["reverses"][str(number)] = round(old.reverses(), 4)
    return result


def steps(seeds: Sequence[int]) -> Steps:
    """Measure every fault with each seed."""
    for case, (position, seed) in itertools.product((HEALTHY, *STRANGERS, *UNHEARD), enumerate(seeds)):
        yield Step(("found", case.name, position), measure, case, seed)


STUDY = Study("clinic_strangers", __doc__, steps, by_seed=True)


if __name__ == "__main__":
    STUDY.command()
