"""A tokenizer of the `tokenizers` library, trained in a second on texts of many languages, and these texts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, trainers

from transformer_lib.data import splitting

ROOT = Path(__file__).parents[1]
SPECIAL = ("<|end|>", "<|start|>", "<|end|>s")  # one begins with another
ADDED = "<tool>"
TEXTS = [
    "The man saw the bank near the river, and he didn't say it'S HIS; we'll SEE, I'M sure they'RE right.",
    "Der Mann sah das Ufer beim Fluß. Größe, Übermut und Äpfel: „so ist's“, 3,14 € – 1.000.000!",
    "L'homme a vu la rive près de l'œuvre ; c'est où ? Noël naïf à Besançon, 2ᵉ étage.",
    "Человек увидел берег реки. Ёжик в тумане № 5, «цена» — 12 345,67 ₽.",
    "那个人看见了河岸。今天是2026年11月28日,气温二十度。",
    "彼は川の岸を見た。カタカナとひらがな、漢字。①②③",
    "그 남자는 강둑을 보았다. 한국어 띄어쓰기 123.",
    "رأى الرجل ضفة النهر، ١٢٣٤٥ كتابًا.",
    "आदमी ने नदी का किनारा देखा। १२३ रुपये।",
    "ชายคนนั้นเห็นฝั่งแม่น้ำใกล้สะพาน ๑๒๓",
    "Ο άντρας είδε την όχθη του ποταμού.\u0301 Ελλάδα 2026",
    "האיש ראה את גדת הנהר. שָׁלוֹם",
    "👩‍👩‍👧‍👦 🇩🇪 👍🏽 ❤️ 🙂🙃 1️⃣ ✨",
    "def f(x):\n\tif x == 0x1F:\n\t\treturn {'a': [1, 2.5e-3]}  # 100%\r\n\r\n    print(f\"{x!r:>10}\")\n\n\n",
    " \t\n\r\n \u00a0\u2003\u3000\u2028x\u0085 \u000b\u000c  y   \n  z \n",
    "\u0000\u0001\u001c\u001d\u001e\u001f a\u200bb\u200d\ufeffc\u00ad",
    "e\u0301 é ﬁ Å \u212b ſ K \u017f's 'ſ 'S ½ ² Ⅷ ৪ 𝟙𝟚 𐍈 \U0001d11e",
    "<|end|> <|start|>x <|end|>s <|end <tool>t< tool>",
    "",
    " ",
]


def train(rule: str) -> tokenizers.Tokenizer:
    """A small tokenizer of the `tokenizers` library that splits by a rule of `SPLITTING`."""
    return tokenizers.Tokenizer.from_str(_trained(rule))


@cache
def _trained(rule: str) -> str:
    made = tokenizers.Tokenizer(models.BPE())
    steps = {
        "gpt2": [pre_tokenizers.ByteLevel(add_prefix_space=False)],
        "smollm": [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
    }.get(rule)
    if steps is None:
        cut = pre_tokenizers.Split(Regex(*splitting.SPLITTING[rule]), "isolated")
        steps = [cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    made.pre_tokenizer = pre_tokenizers.Sequence(steps)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1201, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), min_frequency=1
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    made.train_from_iterator([*TEXTS, readme], trainer)
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    made.add_tokens([AddedToken(ADDED, special=False, normalized=False)])
    return made.to_str()
