"""W14: the smoothed target and the warm-up schedule, as numbers and as a picture."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from transformer_lib.course.figures.widgets import smoothed_target, training_choices
from transformer_lib.training.schedules import paper_rate


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 1.0])
def test_target_sums_to_one_and_is_torchs(smoothing):
    target = smoothed_target(smoothing, vocab_size=7, right=2)
    logits = torch.randn(1, 7, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    loss = -(torch.tensor(target) * logits.log_softmax(-1)).sum()
    expected = F.cross_entropy(logits, torch.tensor([2]), label_smoothing=smoothing)
    assert target.sum() == pytest.approx(1.0)
    torch.testing.assert_close(loss, expected)


def test_bad_smoothing():
    with pytest.raises(ValueError, match=r"smoothing must lie in \[0, 1\], got 1.5"):
        smoothed_target(1.5)


def test_panel_says_the_peak_and_changes_with_its_controls():
    panel = training_choices()
    peak = max(paper_rate(step, 512, 4000) for step in range(3990, 4010))
    assert f"the rate peaks at step 4,000 with {peak:.5f}" in panel.picture.says
    before = panel.picture.svg
    panel.set(warmup_steps=1000)
    assert panel.picture.svg != before and "step 1,000" in panel.picture.says
    panel.set(smoothing=0.0)
    assert "target 1.00 on the right token and 0.000" in panel.picture.says
    assert np.isclose(smoothed_target(0.0)[3], 1.0)
