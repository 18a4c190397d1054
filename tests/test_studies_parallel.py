"""Data-parallel training: gradients weighted by tokens are those of the whole batch; two processes stay together."""

from __future__ import annotations

import pytest
import torch

from studies import parallel
from transformer_lib.course.lab import parallel as parallel_lab

EXACT = {"rtol": 0, "atol": 1e-12}


def gradient(rows):
    """Return the gradient of the mean over the tokens of these rows of batch 0, as one vector, and their number."""
    model = parallel_lab.new_model()
    src, tgt = (ids[rows] for ids in parallel_lab.batch(0))
    parallel.step_gradients(model, src, tgt)
    vector = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    return vector, parallel_lab.summed_loss(model, src, tgt)[1]


def test_the_halves_of_a_batch_are_uneven():
    src, tgt = parallel_lab.batch(0)
    assert src.shape == tgt.shape == (6, 11)
    assert [
        parallel_lab.summed_loss(parallel_lab.new_model(), *(x.chunk(2)[part] for x in (src, tgt)))[1]
        for part in (0, 1)
    ] == [20, 4]
    assert not torch.equal(src, parallel_lab.batch(1)[0])


def test_means_weighted_by_tokens_are_the_mean_of_the_whole():
    whole, tokens = gradient(slice(None))
    parts = [gradient(slice(0, 3)), gradient(slice(3, 6))]
    joined = sum(vector * count for vector, count in parts) / sum(count for _, count in parts)
    assert tokens == 24
    torch.testing.assert_close(joined, whole, **EXACT)
    assert (sum(vector for vector, _ in parts) / 2 - whole).abs().max() > 0.01


def test_two_processes_end_where_one_does():
    found = parallel.launch(2)
    alone = parallel.train()
    assert len(found) == 2
    for share in parallel.SHARES:
        assert torch.equal(found[0][share], found[1][share])
    torch.testing.assert_close(found[0]["by tokens"], alone, **EXACT)
    assert (found[0]["by process"] - alone).abs().max() > 1e-3


def test_training_moves_the_weights():
    start = torch.nn.utils.parameters_to_vector(parallel_lab.new_model().parameters())
    assert (parallel.train() - start).abs().max() > 0.01
    assert torch.equal(parallel.train(), parallel.train())


def test_an_uneven_number_of_processes_still_ends_where_one_does():
    found = parallel.launch(4)
    torch.testing.assert_close(found[3]["by tokens"], parallel.train(), **EXACT)


def test_more_processes_than_sentences_are_refused():
    with pytest.raises(ValueError, match="parts must be at most 6, one sentence for each process, got 7"):
        parallel.train(0, 7)
