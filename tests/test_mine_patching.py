"""`mine.patching`: a map of patches by the learner's function is that of the library, and runs nothing twice."""

from __future__ import annotations

import pytest
import torch

from exercise_styles_24 import patch_map_by_where, patch_map_put_back
from factories import randomise
from transformer_lib import modern
from transformer_lib.course import mine
from transformer_lib.course.mine.patching import Patching
from transformer_lib.model import circuits

pytestmark = pytest.mark.fast

IDS, OTHERS = torch.tensor([[3, 5, 7, 2]]), torch.tensor([[3, 5, 11, 2]])


def small():
    torch.manual_seed(0)
    sizes = {"vocab_size": 23, "d_model": 13, "n_heads": 3, "n_layers": 2, "d_ff": 17, "n_kv_heads": 1, "d_head": 10}
    return randomise(modern.LanguageModel(modern.Config(**sizes)), 2.0).eval()


def test_the_map_is_that_of_patched_streams():
    model, right, wrong = small(), 17, 19

    def difference(logits):
        return logits[..., right] - logits[..., wrong]

    low, high = (difference(model(ids)[:, -1]) for ids in (IDS, OTHERS))
    expected = circuits.recovered(circuits.patch_streams(model, IDS, OTHERS, difference), high, low)[..., 0]
    shares = mine.patching()(model, IDS, OTHERS, right, wrong)
    assert shares.shape == (3, 4)
    torch.testing.assert_close(shares, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("theirs", [patch_map_by_where, patch_map_put_back])
def test_the_learners_function_takes_the_librarys_place(theirs):
    yours, library = Patching({"patch_map": theirs}), Patching({})
    assert yours.whose == "patch_map is yours." and "is the library's" in library.whose
    found, expected = (each(small(), IDS, OTHERS, 17, 19) for each in (yours, library))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_what_a_patch_leaves_as_it_is_does_not_run_again(monkeypatch):
    model, runs = small(), []
    whole = model.continue_from
    monkeypatch.setattr(model, "continue_from", lambda *args, **named: runs.append(args) or whole(*args, **named))
    mine.patching()(model, IDS, OTHERS, 17, 19)
    assert len(runs) < 3 + 3 * 4  # the first two words are equal in both texts


@pytest.mark.parametrize(("ids", "others", "name"), [(IDS, OTHERS[:, :3], "others"), (IDS.repeat(2, 1), IDS, "ids")])
def test_texts_that_do_not_fit_are_refused(ids, others, name):
    with pytest.raises(ValueError, match=f"{name} must be one text"):
        mine.patching()(small(), ids, others, 17, 19)
