"""The study of told keys: who is told what, the plain layer, and what is stored."""

from __future__ import annotations

import pytest
import torch

from transformer_lib.course.exercises.nb21 import told_layer
from transformer_lib.course.lab import copying
from transformer_lib.course.lab import keys as study_lab

STORED = study_lab.load_results()


def ids_of(size=3):
    return copying.batch(size, torch.Generator().manual_seed(5))[0]


def test_without_a_table_it_is_the_plain_layer():
    plain, nobody = copying.new_model(1, 1, 7), study_lab.new_model("nobody", 7)
    torch.testing.assert_close(nobody(ids_of()), plain(ids_of()), rtol=0, atol=1e-5)


def test_the_keys_are_told_as_in_the_exercise():
    told, written = study_lab.new_model("keys", 3), study_lab.Written(told_layer, 3)
    torch.testing.assert_close(told(ids_of(2)), written(ids_of(2)), rtol=0, atol=1e-4)
    assert told.before.numel() == 1664


@pytest.mark.parametrize("who", study_lab.ARMS)
def test_no_position_sees_a_later_letter_and_only_the_told_use_the_table(who):
    model, ids = study_lab.new_model(who, 2), ids_of()
    changed = ids.clone()
    changed[:, 17] = (ids[:, 17] + 1) % 26
    moved = (model(ids) - model(changed)).abs().amax(dim=(0, 2)) > 1e-6
    assert not moved[:17].any() and moved[17:].all()
    model(ids).sum().backward()
    uses = {name: getattr(model, name).grad is not None for name in ("before", "smear")}
    assert uses == {"before": who in ("queries", "keys", "values"), "smear": who == "smeared keys"}


def test_smeared_keys_can_be_plain_ones_or_those_one_earlier():
    model, ids = study_lab.new_model("smeared keys", 2), ids_of()
    with torch.no_grad():
        model.smear.fill_(100.0)
        torch.testing.assert_close(model(ids), study_lab.new_model("nobody", 2)(ids), rtol=0, atol=1e-5)
        model.smear.fill_(-100.0)
        assert (model(ids) - study_lab.new_model("nobody", 2)(ids)).abs().max() > 0.1


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeError, match="run must be a function, got NoneType"):
        study_lab.Written(None, 0)
    with pytest.raises(ValueError, match=r"steps must be one of \[400, 1200\], got 7"):
        study_lab.losses(STORED, 7)


def test_what_the_notebook_says_is_stored():
    for steps in (400, 1200):
        found = study_lab.losses(STORED, steps)
        assert all(list(rows) == list(study_lab.ARMS) for rows in found.values())
        new, unseen = found["new strings"], found["unseen, no letter twice"]
        assert max(new["keys"] + new["smeared keys"]) < 0.2 and max(unseen["keys"]) < 0.06
        assert min(new["nobody"] + new["queries"] + new["values"]) > 1.6
        assert min(unseen["nobody"] + unseen["queries"] + unseen["values"]) > 3.2
        assert (max(unseen["smeared keys"]) < 0.05) == (steps == 1200)
