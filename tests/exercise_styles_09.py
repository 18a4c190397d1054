"""Right answers to the exercises of notebook 09 in another style: closed forms, the library's names, recursion."""

from __future__ import annotations

import math

import torch


def layer_norm(x, gain, bias, eps):
    centred = x - x.mean(dim=-1, keepdim=True)
    return gain * centred / (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt() + bias


def layer_norm_by_torch(x, gain, bias, eps):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), gain, bias, eps)


def layer_norm_backward(x, gain, grad_output, eps):
    size = (x.var(dim=-1, keepdim=True, correction=0) + eps).sqrt()
    unit = (x - x.mean(dim=-1, keepdim=True)) / size
    g = gain * grad_output
    grad_x = (g - g.mean(dim=-1, keepdim=True) - unit * (g * unit).mean(dim=-1, keepdim=True)) / size
    return grad_x, (grad_output * unit).flatten(0, -2).sum(dim=0), grad_output.flatten(0, -2).sum(dim=0)


def layer_norm_backward_by_jacobians(x, gain, grad_output, eps):
    d = x.shape[-1]
    size = (x.var(dim=-1, correction=0) + eps).sqrt()[..., None]
    unit = (x - x.mean(dim=-1, keepdim=True)) / size
    jacobian = torch.eye(d).to(x) - 1 / d - unit[..., :, None] * unit[..., None, :] / d
    grad_x = torch.einsum("...ij,...j->...i", jacobian, gain * grad_output) / size
    return [grad_x, torch.einsum("...d,...d->d", grad_output, unit), torch.einsum("...d->d", grad_output)]


def feed_forward(x, W_1, b_1, W_2, b_2):
    return (x @ W_1 + b_1).clamp(min=0) @ W_2 + b_2


def feed_forward_by_units(x, W_1, b_1, W_2, b_2):
    output = b_2.expand(x.shape)
    for unit in range(len(b_1)):
        output = output + torch.relu(x @ W_1[:, unit] + b_1[unit])[..., None] * W_2[unit]
    return output


def feed_forward_by_branches(x, W_1, b_1, W_2, b_2):
    hidden = torch.nn.functional.linear(x, W_1.T, b_1)
    return torch.nn.functional.linear(torch.where(hidden > 0, hidden, torch.zeros_like(hidden)), W_2.T, b_2)


def table_network(table, n_answers):
    n = len(table)
    W_1 = torch.cat([torch.eye(n).repeat_interleave(n, dim=1), torch.eye(n).repeat(1, n)])
    return (
        W_1,
        -torch.ones(n * n),
        torch.nn.functional.one_hot(table.flatten(), n_answers).float(),
        torch.zeros(n_answers),
    )


def table_network_by_units(table, n_answers):
    """A column and a row for each pair, in lists, and in float64."""
    n = table.shape[0]
    columns, rows = [], []
    for a in range(n):
        for b in range(n):
            columns.append([float(i in (a, n + b)) for i in range(2 * n)])
            rows.append([float(answer == table[a, b]) for answer in range(n_answers)])
    bias = torch.full((n * n,), -1.0, dtype=torch.float64)
    as_numbers = [torch.tensor(part, dtype=torch.float64) for part in (columns, rows)]
    return [as_numbers[0].T, bias, as_numbers[1], torch.zeros(n_answers, dtype=torch.float64)]


def residual_sublayer(x, sublayer, norm, norm_first):
    if norm_first:
        return x + sublayer(norm(x))
    return norm(x + sublayer(x))


def paths_of_length(jacobians, length):
    """Each sub-layer is taken or not: sums of length 0, 1, … grow by one sub-layer at a time."""
    sums = [torch.eye(jacobians.shape[-1]).to(jacobians)] + [torch.zeros_like(jacobians[0])] * length
    for J in jacobians:
        sums = [sums[0]] + [sums[k] + J @ sums[k - 1] for k in range(1, length + 1)]
    return sums[length]


def paths_by_polynomial(jacobians, length):
    """(I + t J_n) … (I + t J_1) at n + 1 values of t; the answer is the coefficient of t^length."""
    n, d = len(jacobians), jacobians.shape[-1]
    angles = 2 * math.pi * torch.arange(n + 1).double() / (n + 1)
    values = []
    for t in torch.polar(torch.ones_like(angles), angles):
        product = torch.eye(d, dtype=torch.complex128)
        for J in jacobians:
            product = product + t * J.to(product) @ product
        values.append(product * t ** (-length))
    return torch.stack(values).mean(dim=0).real


def residual_by_composition(x, sublayer, norm, norm_first):
    before, after = (norm, lambda y: y) if norm_first else (lambda y: y, norm)
    return after(x.clone() + sublayer(before(x)))


STYLES = [
    ("09.1", feed_forward),
    ("09.1", feed_forward_by_units),
    ("09.1", feed_forward_by_branches),
    ("09.2", table_network),
    ("09.2", table_network_by_units),
    ("09.3", layer_norm),
    ("09.3", layer_norm_by_torch),
    ("09.4", residual_sublayer),
    ("09.4", residual_by_composition),
    ("09.5", paths_of_length),
    ("09.5", paths_by_polynomial),
    ("09.6", layer_norm_backward),
    ("09.6", layer_norm_backward_by_jacobians),
]
