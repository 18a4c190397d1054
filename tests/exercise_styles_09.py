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


def feed_forward_parameters(d_model, d_ff, bias):
    layers = torch.nn.Linear(d_model, d_ff, bias=bias), torch.nn.Linear(d_ff, d_model, bias=bias)
    return sum(p.numel() for layer in layers for p in layer.parameters())


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


STYLES = [
    ("09.1", layer_norm),
    ("09.1", layer_norm_by_torch),
    ("09.2", layer_norm_backward),
    ("09.2", layer_norm_backward_by_jacobians),
    ("09.3", feed_forward),
    ("09.3", feed_forward_by_units),
    ("09.4", feed_forward_parameters),
    ("09.6", residual_sublayer),
    ("09.5", paths_of_length),
    ("09.5", paths_by_polynomial),
]
