"""A chat with a model by the learner's loop: the prompts are the template's, and nothing is read twice."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from small_panels import letters, talker
from transformer_lib.course.mine.chatting import Chatting, reader


def chatting(model=None, theirs=None):
    template = "{% if messages[0]['role'] != 'system' %}<s>be kind<e>\n{% endif %}" + (
        "{% for message in messages %}<s>{{ message.content }}<e>\n{% endfor %}<s>"
    )
    source = letters()
    tokenizer = tl.ByteLevelTokenizer(
        source.vocab, [], special_tokens=source.special_tokens, eos="<e>", chat_template=tl.ChatTemplate(template)
    )
    return Chatting(model or talker(), tokenizer, theirs or {})


def test_the_prompts_and_the_answers_make_the_conversation_that_the_template_writes():
    chat, questions, answers = chatting(), ["Why?", "And\nso?", "No!"], ["ab", "c", ""]
    text = "".join(prompt + answer + "<e>" for prompt, answer in zip(chat.prompts(questions), answers, strict=True))
    messages = [
        {"role": role, "content": content}
        for pair in zip(questions, answers, strict=True)
        for role, content in zip(("user", "assistant"), pair, strict=True)
    ]
    assert text + "\n<s>" == chat.tokenizer.chat_template.render(messages)


def test_it_says_what_the_model_says_without_a_cache():
    chat = chatting()
    first, second = chat("Why?", "And so?", max_new_tokens=5)
    ids = chat.tokenizer.encode(chat.prompts(["Why?"])[0], special=True)
    greedy = list(tl.generate(talker(), ids, max_new_tokens=5, stop=257, use_cache=False))
    said = [i for i in greedy if i != 257]
    assert chat.tokenizer.decode(said) == first
    ids += [*said, 257, *chat.tokenizer.encode(chat.prompts(["", "And so?"])[1], special=True)]
    greedy = tl.generate(talker(), ids, max_new_tokens=5, stop=257, use_cache=False)
    assert chat.tokenizer.decode([i for i in greedy if i != 257]) == second


def test_a_model_of_the_learners_parts_talks_with_a_cache():
    mine = tl.mine.today(talker())
    assert chatting(mine)("Why?", max_new_tokens=7) == chatting()("Why?", max_new_tokens=7)


@pytest.mark.parametrize("window", [None, 5])
def test_the_learners_parts_read_on_from_a_cache(window):
    torch.manual_seed(1)
    config = tl.modern.Config(
        vocab_size=23, d_model=12, n_heads=3, n_layers=2, d_ff=17, n_kv_heads=1, window=window, qk_norm=True
    )
    model = tl.modern.LanguageModel(config).double().eval()
    ids = torch.randint(23, (2, 11))
    mine = tl.mine.today(model)
    read, cache = mine, mine.new_cache()
    pieces = [read(ids[:, a:b], cache) for a, b in ((0, 7), (7, 8), (8, 11))]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(ids))
    one = reader(mine)
    torch.testing.assert_close([one(ids[0, :5].tolist()), one(ids[0, 5:].tolist())][1], model(ids)[0, -1])


def test_the_learners_loop_leads_the_conversation():
    chat = chatting(theirs={"converse": lambda prompts, *tools: [prompt.upper() for prompt in prompts]})
    assert chat("Why?")[0].startswith("<S>BE KIND<E>\n<S>WHY?<E>") and chat.whose == "converse is yours."
    assert "is the library's" in chatting().whose


def test_a_chat_needs_a_template():
    with pytest.raises(TypeError, match="tokenizer must have a chat_template"):
        Chatting(talker(), tl.ByteLevelTokenizer({"a": 0}, []), {})
