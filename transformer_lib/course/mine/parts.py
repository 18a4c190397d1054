"""The parts that a learner writes, each with its fixed signature: those of a translator, and of training by hand."""

from __future__ import annotations

from dataclasses import dataclass

BY_HAND = "18"  # the notebook whose parts are in NumPy
TODAY, IN_CONTEXT, SERVING, REAL, INSIDE = "20", "21", "22", "23", "24"
# whose parts make something else than the Transformer of 2017
APART = (BY_HAND, TODAY, IN_CONTEXT, SERVING, REAL, INSIDE)


@dataclass(frozen=True)
class Part:
    """One part: its name, which is also the function's, the notebook that builds it, its arguments, and its task."""

    name: str
    notebook: str
    arguments: tuple[str, ...]
    task: str

    @property
    def of_model(self) -> bool:
        """Whether it belongs to the models of notebooks 12 and 19; others serve their own notebook alone."""
        return self.notebook not in APART


def _part(signature: str, notebook: str, task: str) -> Part:
    name, _, arguments = signature.rstrip(")").partition("(")
    return Part(name, notebook, tuple(arguments.split(", ")), task)


# Shapes are those of the exercises. A function among the arguments is another part with its weights inside.
PARTS = (
    _part("softmax(scores)", "01", "turns scores into weights or probabilities"),
    _part("similarity(query, key)", "02", "compares each query with each key"),
    _part("project(X, W_Q, W_K, W_V)", "03", "makes queries, keys and values"),
    _part("masked_attention(query, key, value, mask)", "04", "attends under a mask"),
    _part("embed(ids, table)", "05", "looks up each token's vector, times √d_model"),
    _part("sinusoidal_table(seq_len, d_model)", "06", "gives each position its vector"),
    _part("causal_mask(seq_len)", "07", "hides later tokens"),
    _part("padding_mask(ids, pad_id)", "07", "hides padding"),
    _part("split_heads(x, n_heads)", "08", "divides the features among the heads"),
    _part("merge_heads(x)", "08", "puts the heads side by side again"),
    _part("layer_norm(x, gain, bias, eps)", "09", "normalises each token"),
    _part("feed_forward(x, W_1, b_1, W_2, b_2)", "09", "transforms each token separately"),
    _part("encoder_layer(x, attention, feed_forward, norm_1, norm_2)", "10", "joins the parts of an encoder layer"),
    _part(
        "decoder_layer(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3)",
        "11",
        "joins the parts of a decoder layer",
    ),
    _part(
        "ids_to_logits(src, tgt_in, embed_src, embed_tgt, encoder, decoder, head, padding_mask, causal_mask, pad_id)",
        "12",
        "leads from token ids to logits, and says which mask goes where",
    ),
    _part("masked_cross_entropy(logits, tgt_out, pad_id)", "13", "measures the loss"),
    _part("greedy_loop(next_logits, bos_id, eos_id, max_new_tokens)", "14", "decodes greedily"),
    _part("beam_step(scores, next_log_probs, beam_size)", "14", "takes one step of beam search"),
    _part("linear_backward(g_y, x, weight)", BY_HAND, "carries a gradient back through a linear map"),
    _part("embedding_backward(g_x, ids, vocab_size)", BY_HAND, "collects the gradient of the embedding table"),
    _part(
        "decoder_layer_backward(g_y, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3)",
        BY_HAND,
        "carries a gradient back through a decoder layer",
    ),
    _part(
        "adam_step(parameter, g, mean, square, step, rate, beta_1, beta_2, eps)", BY_HAND, "moves a parameter by Adam"
    ),
    _part(
        "stack_logits(ids, prefix_lengths, embed, stack, head, pad_id)",
        "19",
        "leads from token ids to logits through one stack",
    ),
    _part("rms_norm(x, gain, eps)", TODAY, "divides each token by its root mean square"),
    _part("swiglu(x, W_gate, W_up, W_down)", TODAY, "transforms each token separately, through a gate"),
    _part("grouped_attention(query, key, value, mask)", TODAY, "attends with fewer heads of keys than of queries"),
    _part("window_mask(q_len, k_len, window)", TODAY, "hides later tokens, and those too far back"),
    _part("rotate_halves(x, positions, base)", TODAY, "turns queries and keys by their positions"),
    _part("induction_score(weights, period)", IN_CONTEXT, "tells which head copies"),
    _part("ablate_head(heads, head)", IN_CONTEXT, "takes a head away"),
    _part("tokens_that_stand(drafted, checked, eos_id)", SERVING, "keeps the drafted tokens that are the target's"),
    _part("converse(prompts, read, encode, decode, stop_id, max_new_tokens)", REAL, "leads a conversation"),
    _part("patch_map(rest, here, there, right, wrong)", INSIDE, "maps where a fact is"),
)

NAMES = tuple(part.name for part in PARTS)
# Parts of the model that no greedy translation calls, and where they have their work.
ELSEWHERE = {"masked_cross_entropy": "for a loss", "beam_step": "in beam search", "stack_logits": "in a single stack"}


def part_of(name: str) -> Part:
    """Return the part of this name.

    Raises:
        ValueError: there is none.
    """
    for part in PARTS:
        if part.name == name:
            return part
    raise ValueError(f"part must be one of {', '.join(NAMES)}, got {name!r}")
