"""The candidates that the extra `bench` installs: transformers' MarianMT, and x-transformers."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType

from torch import Tensor, nn

from .peers import FUSED, Missing, Peer
from .work import BOS, EOS, PAD, Work


def needed(name: str) -> ModuleType:
    """Import a package of the extra."""
    try:
        with warnings.catch_warnings(action="ignore"):  # they are for the package's authors
            return importlib.import_module(name)
    except ImportError as error:
        raise Missing(f"{name} is not installed: {error}") from error


class Marian(Peer):
    """MarianMT with random weights: the paper's encoder-decoder in transformers, from its configuration alone."""

    note, training_note, decoding_note = "biases in attention", f"its own loss, labels of −100; {FUSED}", "a cache"

    def __init__(self, work: Work) -> None:
        library = needed("transformers")
        sides = {
            f"{side}_{name}": value
            for side in ("encoder", "decoder")
            for name, value in (("layers", work.n_layers), ("attention_heads", work.n_heads), ("ffn_dim", work.d_ff))
        }
        config = library.MarianConfig(
            vocab_size=work.vocabulary,
            d_model=work.d_model,
            **sides,
            dropout=work.dropout,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=work.max_len,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            forced_eos_token_id=None,
            decoder_start_token_id=BOS,
            share_encoder_decoder_embeddings=False,
            tie_word_embeddings=False,
        )
        model = library.MarianMTModel(config)
        super().__init__(work, model, model.lm_head)

    def loss(self, src: Tensor, tgt: Tensor) -> Tensor:
        labels = tgt[:, 1:].masked_fill(tgt[:, 1:] == PAD, -100)
        return self.model(input_ids=src, attention_mask=(src != PAD).long(), labels=labels).loss

    def greedy(self, src: Tensor, new_tokens: int) -> Tensor:
        return self._generate(src, new_tokens, 1)

    def beam(self, src: Tensor, new_tokens: int) -> Tensor:
        return self._generate(src, new_tokens, self.work.beam_size)

    def _generate(self, src: Tensor, new_tokens: int, beams: int) -> Tensor:
        mask = (src != PAD).long()
        options = {"max_new_tokens": new_tokens, "num_beams": beams, "do_sample": False}
        return self.model.generate(input_ids=src, attention_mask=mask, **options)


class XTransformers(Peer):
    """x-transformers' XTransformer, told to be the paper's: post-norm, ReLU, sinusoids, dropout after sub-layers."""

    note = "norms without bias, embeddings not scaled, positions scaled by a learned number"
    training_note, decoding_note = f"its own loss; {FUSED}", "a cache"

    def __init__(self, work: Work) -> None:
        library = needed("x_transformers")
        options = {
            "num_tokens": work.vocabulary,
            "max_seq_len": work.max_len,
            "depth": work.n_layers,
            "heads": work.n_heads,
            "attn_dim_head": work.d_model // work.n_heads,
            "ff_mult": work.d_ff / work.d_model,
            "attn_flash": True,
            "pre_norm": False,
            "ff_custom_activation": nn.ReLU(),
            "scaled_sinu_pos_emb": True,
            "emb_dropout": work.dropout,
            "attn_sublayer_dropout": work.dropout,
            "ff_sublayer_dropout": work.dropout,
            "verbose": False,
        }
        sides = {f"{side}_{name}": value for side in ("enc", "dec") for name, value in options.items()}
        model = library.XTransformer(dim=work.d_model, ignore_index=PAD, pad_value=PAD, **sides)
        super().__init__(work, model, model.decoder.net.to_logits)

    def loss(self, src: Tensor, tgt: Tensor) -> Tensor:
        return self.model(src, tgt, mask=src != PAD)

    def greedy(self, src: Tensor, new_tokens: int) -> Tensor:
        start = src.new_full((len(src), 1), BOS)
        new = self.model.generate(src, start, new_tokens, mask=src != PAD, temperature=0.0)
        return nn.functional.pad(new, (1, 0), value=BOS)
