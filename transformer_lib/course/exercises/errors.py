"""Explains the errors that a learner's function may stop with, where Python or torch gives the wrong advice or none."""

from __future__ import annotations

import re
from collections.abc import Collection

NUMPY = (
    "An exercise works with torch tensors, which do not mix with NumPy: use torch's functions, "
    "such as torch.softmax(scores, dim=-1) in place of a softmax written for arrays."
)

ARRAYS = (
    "This exercise works with NumPy arrays, which do not mix with torch tensors: use NumPy's functions, "
    "such as np.exp(x) or x.sum(axis=-1, keepdims=True)."
)

_LONGEST = 160  # characters of a message

# What torch, NumPy or Python says, and what to do about it.
ADVICE = (
    (
        r"same dtype|expected scalar type|dtypes match|expected self\.dtype|mixed dtype|expected dtype",
        "Two tensors of different dtypes meet here: create new tensors with the dtype of the inputs, as in "
        "torch.zeros(3, dtype=x.dtype), and convert others by .to(x.dtype).",
    ),
    (
        r"not implemented for 'Bool'",
        "This operation needs numbers: turn booleans into numbers by .float(), and the result into booleans by > 0.",
    ),
    (
        r"torch\.return_types\.(max|min)",
        "In torch, x.max(dim) returns values and indices: use x.amax(dim, keepdim=True).",
    ),
    (
        r"'numpy\.ndarray' and 'Tensor'|'Tensor' and 'numpy\.ndarray'|must be Tensor, not numpy|keepdims=bool"
        r"|'Tensor' object has no attribute '(astype|copy)'|not implemented for NumPy arrays",
        NUMPY,
    ),
    (
        r"modified by an inplace operation",
        "A step such as e /= … overwrote numbers that the backward pass still needs: write e = e / …",
    ),
    (
        r"leaf Variable that requires grad is being used in an in-place",
        "Take the step inside `with torch.no_grad():`, or return the moved tensor as a new one.",
    ),
    (
        r"grad can be implicitly created only for scalar",
        "`backward()` starts from a single number: take the mean (or the sum) first.",
    ),
    (
        r"does not require grad and does not have a grad_fn",
        "No tensor in this result asks for a gradient: begin with v = values.clone().requires_grad_(), say.",
    ),
    (
        r"^MemoryError|can't allocate memory|std::bad_alloc",
        "It took far more memory than this exercise needs: does a list grow in the loop that runs over it?",
    ),
)


def error_text(error: BaseException) -> str:
    """Return type and first line of an exception, without addresses."""
    lines = str(error).strip().splitlines() or [""]
    message = re.sub(r"0x[0-9a-fA-F]+", "0x…", lines[0]).rstrip(".")
    if len(message) > _LONGEST:
        message = message[:_LONGEST].rpartition(" ")[0] + " …"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def explained(error: BaseException, line: str, gradients: Collection[str], *, arrays: bool = False) -> str:
    """Say that a function stopped, with what, and what to do about it.

    Args:
        error: what it stopped with.
        line: the learner's line that the error passed through.
        gradients: names of the arguments whose gradients the exercise compares.
        arrays: whether the exercise works with NumPy's arrays.
    """
    if left_over(error, line):
        return (
            "Your function reached the line `raise NotImplementedError` of an empty exercise: "
            "delete it and return your result, or first write the other function that you call."
        )
    text, advice = error_text(error), _advice(str(error), type(error).__name__, arrays)
    if "softmax" in line and "return_types" in text:  # the notebook's own softmax, written for arrays, was called
        advice += " A softmax written for NumPy stops here: use torch.softmax(scores, dim=-1)."
    if "numpy() on" in text and "requires grad" in text and gradients:
        text = text.partition(". Use ")[0]  # which would lose the gradients without a word
        advice = (
            "This exercise also compares gradients, which end at NumPy: do every step with torch, and detach nothing."
        )
    return f"Your function stopped with {text}.{' ' + advice if advice else ''}"


def left_over(error: BaseException | None, line: str) -> bool:
    """Return True for the error of a stub; torch raises one of the same type (a softmax of integers)."""
    return isinstance(error, NotImplementedError) and ("NotImplementedError" in line if line else not str(error))


def _advice(message: str, name: str, arrays: bool = False) -> str:
    said = f"{name}: {message}"
    if arrays and "einstein sum" in message and "..." in message:
        return "NumPy's einsum does not add up over '…': make a table with a row for each token first."
    if arrays and re.search(r"[Tt]ensor|torch", said):
        return ARRAYS
    return _about_shapes(message) or next((text for pattern, text in ADVICE if re.search(pattern, said)), "")


def _about_shapes(message: str) -> str:
    """Explain torch's message about a matrix product; speak of a transpose only where one of them would fit."""
    rule = "In A @ B the last axis of A and the last but one of B must be equal"
    found = re.search(r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", message)
    if found:
        rows, inner, other, columns = map(int, found.groups())
        return f"{rule}: is a transpose missing, or one too many?" if inner == columns or rows == other else f"{rule}."
    told = "first two dimensions of batch2" in message or "matmul: Input operand" in message  # torch's words, NumPy's
    return f"{rule}." if told else ""
