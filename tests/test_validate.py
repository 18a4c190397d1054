from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer_lib as tl
from factories import make_config, make_model, randomise, sources, targets
from transformer_lib import _lists
from transformer_lib import _validate as check

pytestmark = pytest.mark.fast

SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
INTEGERS = [*SIGNED, torch.uint8, torch.uint16, torch.uint32, torch.uint64]


def test_an_int_in_range_is_returned():
    assert check.check_int("n", 1) == 1
    assert check.check_int("n", 0, minimum=0) == 0


@pytest.mark.parametrize("value", [1.0, "3", True, None])
def test_what_is_no_int_is_refused(value):
    with pytest.raises(TypeError, match=f"n must be an int, got {value!r} of type {type(value).__name__}"):
        check.check_int("n", value)


@pytest.mark.parametrize(("value", "minimum"), [(0, 1), (-7, 1), (-1, 0), (1, 2)])
def test_an_int_below_the_minimum_is_refused(value, minimum):
    with pytest.raises(ValueError, match=f"n must be at least {minimum}, got {value}"):
        check.check_int("n", value, minimum=minimum)


def test_a_fraction_is_returned_as_a_float():
    assert check.check_fraction("p", 0) == 0.0 and isinstance(check.check_fraction("p", 0), float)
    assert check.check_fraction("p", 0.75) == 0.75
    assert check.check_fraction("p", 1, below_one=False) == 1.0


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, float("nan"), float("inf")])
def test_a_fraction_out_of_range_is_refused(value):
    with pytest.raises(ValueError, match=rf"p must lie in \[0, 1\), got {value}"):
        check.check_fraction("p", value)


def test_one_is_the_end_of_a_closed_range():
    with pytest.raises(ValueError, match=r"p must lie in \[0, 1\], got 1.01"):
        check.check_fraction("p", 1.01, below_one=False)


@pytest.mark.parametrize("value", ["0.5", None, False])
def test_what_is_no_fraction_is_refused(value):
    with pytest.raises(TypeError, match=f"p must be a number, got {value!r}"):
        check.check_fraction("p", value)


def test_a_choice():
    assert check.check_choice("kind", "a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="kind must be one of 'a', 'b', got 'c'"):
        check.check_choice("kind", "c", ("a", "b"))


def test_a_tensor_of_the_right_rank_is_returned():
    x = torch.zeros(2, 3)
    assert check.check_tensor("x", x, rank=2) is x
    assert check.check_tensor("x", x, min_rank=1) is x


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match=r"x must be a torch.Tensor, got list"):
        check.check_tensor("x", [[1.0]])


def test_a_tensor_of_the_wrong_rank_is_refused():
    with pytest.raises(ValueError, match=r"x must have 3 axes, got 2: shape \(2, 3\)"):
        check.check_tensor("x", torch.zeros(2, 3), rank=3)
    with pytest.raises(ValueError, match=r"x must have at least 3 axes, got 2: shape \(2, 3\)"):
        check.check_tensor("x", torch.zeros(2, 3), min_rank=3)


def test_a_width():
    x = torch.zeros(2, 3)
    assert check.check_width("x", x, 3, "d_model") is x
    with pytest.raises(ValueError, match=r"x must end in d_model = 5 features, got 3: shape \(2, 3\)"):
        check.check_width("x", x, 5, "d_model")


def test_a_sequence():
    x = torch.zeros(2, 3, 5)
    assert check.check_sequence("x", x, 5) is x
    with pytest.raises(ValueError, match="x must have 3 axes"):
        check.check_sequence("x", x[0], 5)
    with pytest.raises(ValueError, match="x must end in d_model = 7 features"):
        check.check_sequence("x", x, 7)
    with pytest.raises(TypeError, match="x must hold floating-point numbers, got dtype torch.int64"):
        check.check_sequence("x", x.long(), 5)


@pytest.mark.parametrize("shape", [(0, 3, 5), (2, 0, 5)])
def test_an_empty_sequence_is_refused(shape):
    with pytest.raises(ValueError, match="x must not be empty, got shape"):
        check.check_sequence("x", torch.zeros(shape), 5)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_ids_of_any_integer_type_become_int64(dtype):
    ids = torch.tensor([[0, 6, 3]]).to(dtype)
    found = check.check_ids("ids", ids, 7, max_len=3)
    assert found.dtype == torch.int64 and found.tolist() == [[0, 6, 3]]
    assert dtype != torch.int64 or found is ids
    with pytest.raises(ValueError, match=r"ids must hold ids in \[0, 6\), got values from 0 to 6"):
        check.check_ids("ids", ids, 6)


def by_cache(model, src, tgt):
    cache, memory = model.new_cache(), model.encode(src)
    return torch.cat([model.decode(part, memory, src, cache=cache) for part in tgt.split((3, 1, 7), dim=1)], dim=1)


def whole(model, src, tgt):
    return model(src, tgt)


def joined(model, src, _):
    batch = tl.serving.JoiningBatch(model, 7, max_new_tokens=5)
    batch.join(src)
    return [batch.step() for _ in range(5)]


def other(kind, *sizes, **options):
    torch.manual_seed(0)
    return randomise(kind(*sizes, **options))


MODERN = tl.modern.Config(vocab_size=29, d_model=12, n_heads=3, n_layers=1, d_ff=17)
READERS = {
    "Transformer": lambda: (make_model(), whole),
    "Transformer, with a cache": lambda: (make_model(position="learned"), by_cache),
    "DecoderOnlyTranslator": lambda: (other(tl.DecoderOnlyTranslator, make_config(position="relative")), whole),
    "DecoderOnlyTranslator, with a cache": lambda: (
        other(tl.DecoderOnlyTranslator, make_config(position="rotary")),
        by_cache,
    ),
    "LanguageModel": lambda: (other(tl.LanguageModel, 29, 1, 30, 3, 17), lambda model, _, tgt: model(tgt)),
    "MaskedLanguageModel": lambda: (
        other(tl.MaskedLanguageModel, 29, 1, 30, 3, 17),
        lambda model, _, tgt: model(tgt, tl.padding_mask(tgt, 0), (tgt.long() > 7).to(tgt.dtype)),
    ),
    "TextEncoder": lambda: (
        other(tl.TextEncoder, 29, 1, 30, 3, 17),
        lambda model, _, tgt: model(tgt, tl.padding_mask(tgt, 0), (tgt.long() > 7).to(tgt.dtype)),
    ),
    "modern.LanguageModel": lambda: (other(tl.modern.LanguageModel, MODERN), lambda model, _, tgt: model(tgt)),
    "int8": lambda: (tl.int8.quantized(make_model()), whole),
    "greedy": lambda: (make_model(), lambda model, src, _: tl.greedy_decode(model, src, max_new_tokens=5)),
    "greedy, fast": lambda: (
        make_model(),
        lambda model, src, _: tl.greedy_decode(model, src, max_new_tokens=5, path="fast"),
    ),
    "beam": lambda: (make_model(), lambda model, src, _: tl.beam_search(model, src, beam_size=2, max_new_tokens=5)),
    "serving": lambda: (make_model(), joined),
    "speculative": lambda: (
        other(tl.LanguageModel, 29, 1, 30, 3, 17),
        lambda model, _, tgt: tl.speculative_decode(model, model, tgt, max_new_tokens=5).ids,
    ),
}


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.uint64])
@pytest.mark.parametrize("name", READERS)
def test_every_model_reads_ids_of_any_integer_type(name, dtype):
    model, read = READERS[name]()
    model, ids = model.eval(), (sources(), targets())
    with torch.no_grad():
        wanted = read(model, *ids)
        found = read(model, *(x.to(dtype) for x in ids))
    assert found == wanted if isinstance(wanted, list) else torch.equal(found, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64])
def test_ids_that_are_no_integers_are_refused(dtype):
    with pytest.raises(TypeError, match=f"ids must hold integer token ids, got dtype {dtype}"):
        check.check_ids("ids", torch.zeros(2, 3, dtype=dtype), 7)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.tensor([1, 2]), "ids must have 2 axes, got 1"),
        (torch.zeros(0, 3, dtype=torch.long), r"ids must not be empty, got shape \(0, 3\)"),
        (torch.zeros(3, 0, dtype=torch.long), r"ids must not be empty, got shape \(3, 0\)"),
        (torch.zeros(2, 6, dtype=torch.long), "ids has 6 tokens, more than max_len = 5"),
        (torch.tensor([[3, 7]]), r"ids must hold ids in \[0, 7\), got values from 3 to 7"),
        (torch.tensor([[-1, 3]]), r"ids must hold ids in \[0, 7\), got values from -1 to 3"),
    ],
)
def test_bad_ids_are_refused(ids, message):
    with pytest.raises(ValueError, match=message):
        check.check_ids("ids", ids, 7, max_len=5)


def test_ids_that_are_no_tensor_are_refused():
    with pytest.raises(TypeError, match="ids must be a torch.Tensor, got list"):
        check.check_ids("ids", [[1, 2]], 7)


@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 1, 5, 7), (5, 7), (7,), (2, 1, 1, 7)])
def test_a_mask_that_broadcasts(shape):
    mask = torch.ones(shape, dtype=torch.bool)
    assert check.check_mask("mask", mask, (2, 3, 5, 7)) is mask


@pytest.mark.parametrize("shape", [(5,), (5, 5), (2, 5, 7), (1, 2, 3, 5, 7)])
def test_a_mask_that_does_not_broadcast_is_refused(shape):
    with pytest.raises(ValueError, match=r"mask must broadcast to the scores' shape \(2, 3, 5, 7\), got "):
        check.check_mask("mask", torch.ones(shape, dtype=torch.bool), (2, 3, 5, 7))


def test_a_mask_must_not_enlarge_the_scores():
    with pytest.raises(ValueError, match=r"mask must broadcast to the scores' shape \(1, 5, 7\), got \(2, 5, 7\)"):
        check.check_mask("mask", torch.ones(2, 5, 7, dtype=torch.bool), (1, 5, 7))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_that_is_not_boolean_is_refused(dtype):
    with pytest.raises(TypeError, match=f"mask must be boolean, True = may attend, got dtype {dtype}"):
        check.check_mask("mask", torch.ones(5, 7, dtype=dtype))


def once(*items):
    """A generator, which can be read only once."""
    yield from items


@pytest.mark.parametrize("make", [list, tuple, once, iter, np.array, lambda items: dict.fromkeys(items).keys()])
def test_texts_may_come_in_any_order_that_can_be_read(make):
    texts = ["a b", "c", "d"]
    given = make(*texts) if make is once else make(texts)
    assert _lists.check_texts("texts", given) == texts


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a b", "got 'a b'"),
        (b"a b", "got b'a b'"),
        ({"a": "b"}, "got {'a': 'b'}"),
        ({"a"}, "got {'a'}"),
        (frozenset({"a"}), r"got frozenset\({'a'}\)"),
        (7, "got 7"),
        (None, "got None"),
        (["a", 7], "got 7 at index 1"),
        ([["a"]], r"got \['a'\] at index 0"),
        ([b"a"], "got b'a' at index 0"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(texts, message):
    with pytest.raises(TypeError, match=f"^texts must be a list of strings, {message}$"):
        _lists.check_texts("texts", texts)


def test_an_error_of_the_generator_is_left_as_it_is():
    def broken():
        yield "a"
        raise TypeError("of the file")

    with pytest.raises(TypeError, match="^of the file$"):
        _lists.check_texts("texts", broken())


def test_rows_of_ids():
    rows = [[3, 5], (7,), torch.tensor([1, 2]), np.array([4]), once(np.int64(8), torch.tensor(9)), range(2), []]
    assert _lists.check_rows("rows", once(*rows)) == [[3, 5], [7], [1, 2], [4], [8, 9], [0, 1], []]
    assert _lists.check_rows("rows", torch.tensor([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert all(type(i) is int for row in _lists.check_rows("rows", [[np.int64(8)], torch.tensor([9])]) for i in row)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ("ab", TypeError, "rows must be a list of lists of ids, got 'ab'"),
        ([3, 5], TypeError, r"rows\[0\] must be a list of ids, got 3"),
        ([[3], "ab"], TypeError, r"rows\[1\] must be a list of ids, got 'ab'"),
        ([[3], {4: 5}], TypeError, r"rows\[1\] must be a list of ids, got {4: 5}"),
        ([[3], [1.5]], TypeError, r"rows\[1\] must hold integer ids, got \[1.5\]"),
        ([[3, True]], TypeError, r"rows\[0\] must hold integer ids, got \[3, True\]"),
        ([torch.tensor([1.0])], TypeError, r"rows\[0\] must hold integer ids, got \[1.0\]"),
        ([[torch.tensor(1.0)]], TypeError, r"rows\[0\] must hold integer ids, got \[tensor\(1.\)\]"),
        ([[[3]]], TypeError, r"rows\[0\] must hold integer ids, got \[\[3\]\]"),
        ([[3, 5], [7]], ValueError, r"rows must have at least 2 ids in every sentence, got \[7\] in sentence 1"),
    ],
)
def test_bad_rows_are_refused(rows, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        _lists.check_rows("rows", rows, fewest=2)
