"""Right answers to the exercises of notebook 13 in another style: library calls, loops, NumPy."""

from __future__ import annotations

import numpy as np
import torch

F = torch.nn.functional


def masked_cross_entropy_by_weights(logits, tgt_out, pad_id):
    real = tgt_out != pad_id
    wanted = F.one_hot(tgt_out, logits.shape[-1]).to(logits.dtype) * real[..., None]
    return -(wanted * (logits - logits.logsumexp(-1, keepdim=True))).sum() / real.sum()


def masked_cross_entropy_label_by_label(logits, tgt_out, pad_id):
    losses = [
        F.cross_entropy(row[t], labels[t])
        for row, labels in zip(logits, tgt_out, strict=True)
        for t in range(len(labels))
        if labels[t] != pad_id
    ]
    return sum(losses) / len(losses)


def early_stopping_in_numpy(losses, patience):
    for stopped in range(1, len(losses) + 1):
        kept = int(np.argmin(losses[:stopped])) + 1
        if stopped == kept + patience:
            break
    return kept, stopped


def label_smoothed_loss_against_q(logits, targets, epsilon):
    size = logits.shape[-1]
    q = torch.full_like(logits, epsilon / size) + (1 - epsilon) * F.one_hot(targets, size).to(logits.dtype)
    return F.cross_entropy(logits, q)


def grouped_interval_by_loops(right, groups, draws):
    shares = []
    for row in draws.tolist():
        drawn = [bool(ok) for group in row for ok in right[groups == group]]
        shares.append(sum(drawn) / len(drawn))
    return torch.tensor(np.quantile(shares, [0.025, 0.975]))


def grouped_interval_in_float32(right, groups, draws):
    sizes, hits = torch.bincount(groups), torch.bincount(groups, weights=right.float())
    shares = hits[draws].sum(-1) / sizes[draws].sum(-1)
    return shares.float().quantile(torch.tensor([0.025, 0.975]))


def train_with_grouped_rates(model, batches, rates):
    parameters = list(model.parameters())
    adam = torch.optim.Adam(parameters, lr=1.0, betas=(0.9, 0.98), eps=1e-9, foreach=False)
    losses = torch.zeros(len(rates))
    for step, batch in enumerate(batches):
        for group in adam.param_groups:
            group["lr"] = rates[step]
        loss = model.loss(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, max_norm=1)
        adam.step()
        adam.zero_grad()
        losses[step] = loss.detach()
    return losses


def train_by_a_scheduler(model, batches, rates):
    adam = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: rates[min(step, len(rates) - 1)])
    losses = []
    for src, tgt in batches:
        adam.zero_grad(set_to_none=False)
        losses.append(model.loss(src, tgt))
        losses[-1].backward()
        whole = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
        for p in model.parameters():
            p.grad /= whole.clamp(min=1)
        adam.step()
        schedule.step()
    return torch.stack(losses).detach()


def train_by_hand(model, batches, rates):
    mean, square = ([torch.zeros_like(p) for p in model.parameters()] for _ in range(2))
    losses = []
    for step, ((src, tgt), rate) in enumerate(zip(batches, rates, strict=True), start=1):
        loss = model.loss(src, tgt)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        norm = sum(g.square().sum() for g in gradients).sqrt()
        with torch.no_grad():
            for p, g, m, v in zip(model.parameters(), gradients, mean, square, strict=True):
                g = g / norm.clamp(min=1)
                m.mul_(0.9).add_(g, alpha=0.1)
                v.mul_(0.98).add_(g * g, alpha=0.02)
                p -= rate * (m / (1 - 0.9**step)) / ((v / (1 - 0.98**step)).sqrt() + 1e-9)
        losses.append(loss.item())
    return torch.tensor(losses)


def plan_as_a_cosine(last):
    rise = last // 10
    steps = np.arange(1, last + 1)
    return np.where(steps < rise, steps / rise, (1 + np.cos(np.pi * (steps - rise) / (last - rise))) / 2)


def plan_as_in_the_paper(last):
    return [min(step / 20, (20 / step) ** 0.5) for step in range(1, last + 1)]


def plan_in_three_stages(last):
    return torch.tensor(
        [0.04] * 10 + [1.0] * (last // 2 - 10) + [0.3] * (last // 4) + [0.1] * (last - last // 2 - last // 4)
    )


STYLES = [
    ("13.5", train_with_grouped_rates),
    ("13.5", train_by_a_scheduler),
    ("13.5", train_by_hand),
    ("13.6", plan_as_a_cosine),
    ("13.6", plan_as_in_the_paper),
    ("13.6", plan_in_three_stages),
    ("13.1", masked_cross_entropy_by_weights),
    ("13.1", masked_cross_entropy_label_by_label),
    ("13.2", early_stopping_in_numpy),
    ("13.3", label_smoothed_loss_against_q),
    ("13.4", grouped_interval_by_loops),
    ("13.4", grouped_interval_in_float32),
]
