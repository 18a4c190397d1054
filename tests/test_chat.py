"""A conversation in turns: the same tokens as from scratch, though only what is new is read."""

from __future__ import annotations

import json
import os

import pytest
import torch

import transformer_lib as tl
from factories import randomise
from small_tokenizer import train
from transformer_lib import command
from transformer_lib.decoding import chat as chat_module
from transformer_lib.model import modern

pytestmark = pytest.mark.fast

VOCABULARY = 1205  # of the tokenizer below: the model says each of its tokens, and no other
TEMPLATE = (
    "{% for message in messages %}{{ '<|start|>' + message.role + '\\n' + message.content + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start|>assistant\\n' }}{% endif %}"
)
CONFIG = {
    **{"model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": 30, "num_hidden_layers": 2},
    **{"num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 17},
    **{"rms_norm_eps": 1e-5, "tie_word_embeddings": True},
}
QUESTIONS = ("What is the capital of France?", "And of Italy? 👍", "Thanks!")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return tl.ByteLevelTokenizer.from_file(folder)


def write_tokenizer(folder, **settings) -> None:
    train("smollm").save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<|start|>", "eos_token": "<|end|>", "chat_template": TEMPLATE} | settings
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


@pytest.fixture
def model():
    return make_model()


def make_model(**changes) -> modern.LanguageModel:
    torch.manual_seed(1)
    sizes = {"vocab_size": VOCABULARY, "d_model": 30, "n_heads": 3, "n_layers": 2, "d_ff": 17}
    return randomise(modern.LanguageModel(modern.Config(**sizes | changes)), 1.5).eval()


def from_scratch(model, tokenizer, messages, **options) -> str:
    ids = tokenizer.encode_chat(messages)
    return tokenizer.decode(tl.generate(model, ids, stop=tokenizer.stop_ids, use_cache=False, **options))


@pytest.mark.parametrize("window", [None, 13])
@pytest.mark.parametrize("system", [None, "Be brief."])
def test_each_answer_is_that_of_the_whole_conversation_read_anew(system, window, tokenizer):
    model = make_model(window=window)
    chat = tl.Chat(model, tokenizer, system=system, max_new_tokens=17)
    messages = [] if system is None else [{"role": "system", "content": system}]
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        answer = chat.say(question)
        assert answer == from_scratch(model, tokenizer, messages, max_new_tokens=17)
        messages.append({"role": "assistant", "content": answer})
        assert chat.messages == messages
    assert len({message["content"] for message in messages}) == len(messages)  # it said different things


def test_the_fast_path_says_the_same_in_every_turn(tokenizer, monkeypatch):
    monkeypatch.setattr(chat_module, "FIRST_ROOM", 29)  # so that it is soon too small
    model = make_model(n_kv_heads=1)
    chats = [tl.Chat(model, tokenizer, max_new_tokens=17, path=path) for path in ("readable", "fast")]
    for question in [*QUESTIONS, *QUESTIONS]:
        wanted, answer = (chat.say(question) for chat in chats)
        assert answer == wanted
    fast = chats[1]
    assert 29 < fast._cache.max_len < 512 and fast._read == chats[0]._read
    model.norm.weight.data = model.norm.weight * 2
    with pytest.raises(ValueError, match="norm.weight has changed since"):
        fast.say("And now?")


def test_a_turn_reads_only_what_is_new(model, tokenizer):
    read = []
    model.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].shape[1]))
    chat = tl.Chat(model, tokenizer, max_new_tokens=11)
    chat.say(QUESTIONS[0])
    first = len(tokenizer.encode_chat(chat.messages[:1]))
    assert read == [first] + [1] * 10
    whole = tokenizer.encode_chat([*chat.messages, {"role": "user", "content": QUESTIONS[1]}])
    known = len(os.path.commonprefix([chat._read, whole]))  # the text of an answer may give other tokens than were said
    assert known >= first
    read.clear()
    chat.say(QUESTIONS[1])
    assert read == [len(whole) - known] + [1] * 10


def test_the_first_tokens_said_at_random_are_those_of_generate(model, tokenizer):
    options = {"temperature": 1.3, "top_k": 17, "top_p": 0.9}
    chat = tl.Chat(model, tokenizer, max_new_tokens=7, generator=torch.Generator().manual_seed(5), **options)
    answer = chat.say(QUESTIONS[0])
    options["generator"] = torch.Generator().manual_seed(5)
    assert answer == from_scratch(model, tokenizer, chat.messages[:1], max_new_tokens=7, **options)


def test_an_answer_ends_at_the_end_of_the_turn(model, tokenizer):
    free = tl.Chat(model, tokenizer, max_new_tokens=9)
    ids = tokenizer.encode_chat([{"role": "user", "content": QUESTIONS[0]}])
    said = list(tl.generate(model, ids, max_new_tokens=9))
    ended = tl.ByteLevelTokenizer(
        tokenizer.vocab,
        tokenizer._ranks,
        splitting="smollm",
        special_tokens=tokenizer.special_tokens,
        added_tokens=tokenizer.added_tokens,
        chat_template=tokenizer.chat_template,
        stop_ids=[said[4]],
    )
    end = said.index(said[4]) + 1
    assert tl.Chat(model, ended, max_new_tokens=9).say(QUESTIONS[0]) == tokenizer.decode(said[:end])
    assert free.say(QUESTIONS[0]) == tokenizer.decode(said)


def test_streamed_pieces_are_the_answer(model, tokenizer):
    pieces = list(tl.Chat(model, tokenizer, max_new_tokens=13).stream(QUESTIONS[0]))
    assert len(pieces) > 5 and "".join(pieces) == tl.Chat(model, tokenizer, max_new_tokens=13).say(QUESTIONS[0])


def test_whoever_stops_listening_ends_the_answer(model, tokenizer):
    chat = tl.Chat(model, tokenizer, max_new_tokens=13)
    said = []
    for piece in chat.stream(QUESTIONS[0]):
        said.append(piece)
        if len(said) == 3:
            break
    assert chat.messages[1] == {"role": "assistant", "content": "".join(said)}
    held = chat.stream(QUESTIONS[1])
    first = next(held)
    answer = chat.say(QUESTIONS[2])  # while somebody still holds the answer before
    assert list(held) == [] and chat.messages[3]["content"] == first
    assert answer == from_scratch(model, tokenizer, chat.messages[:-1], max_new_tokens=13)


def test_an_interrupted_answer_was_not_said(model, tokenizer):
    chat = tl.Chat(model, tokenizer, max_new_tokens=13)
    chat.say(QUESTIONS[0])
    before, calls = list(chat.messages), []

    def interrupt(*_):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with model.layers[1].register_forward_pre_hook(interrupt), pytest.raises(KeyboardInterrupt):
        chat.say(QUESTIONS[1])
    assert chat.messages == before
    answer = chat.say(QUESTIONS[2])
    assert answer == from_scratch(model, tokenizer, chat.messages[:-1], max_new_tokens=13)


def test_what_was_said_can_be_changed_and_forgotten(model, tokenizer):
    chat = tl.Chat(model, tokenizer, system="Be brief.", max_new_tokens=13)
    first = chat.say(QUESTIONS[0])
    chat.messages[2]["content"] = "Paris."
    answer = chat.say(QUESTIONS[1])
    assert answer == from_scratch(model, tokenizer, chat.messages[:-1], max_new_tokens=13)
    chat.reset()
    assert chat.messages == [{"role": "system", "content": "Be brief."}]
    assert chat.say(QUESTIONS[0]) == first


def test_what_does_not_fit_is_refused(model, tokenizer, monkeypatch):
    with pytest.raises(TypeError, match="text must be a string, got int"):
        tl.Chat(model, tokenizer).say(3)
    with pytest.raises(TypeError, match="model must be a modern.LanguageModel, got str"):
        tl.Chat("smollm2", tokenizer)
    with pytest.raises(TypeError, match="tokenizer must be a ByteLevelTokenizer, got WordTokenizer"):
        tl.Chat(model, tl.WordTokenizer(["a"]))
    with pytest.raises(ValueError, match="tokenizer must have at most the model's 1103 tokens, got 1205"):
        tl.Chat(make_model(vocab_size=1103), tokenizer)
    with pytest.raises(ValueError, match="max_new_tokens must be at least 1, got 0"):
        tl.Chat(model, tokenizer, max_new_tokens=0)
    with pytest.raises(ValueError, match="temperature must be at least 0, got -1"):
        tl.Chat(model, tokenizer, temperature=-1)
    monkeypatch.setattr(tokenizer, "chat_template", None)
    with pytest.raises(ValueError, match="tokenizer must have a chat_template, which writes a conversation as a text"):
        tl.Chat(model, tokenizer)


def test_a_conversation_that_is_too_long_is_refused_and_goes_on_after_reset(model, tokenizer, monkeypatch):
    first = len(tokenizer.encode_chat([{"role": "user", "content": QUESTIONS[0]}]))
    monkeypatch.setattr(tokenizer, "max_len", first + 3)
    chat = tl.Chat(model, tokenizer, max_new_tokens=13)
    ids = tokenizer.encode_chat([{"role": "user", "content": QUESTIONS[0]}])
    assert chat.say(QUESTIONS[0]) == tokenizer.decode(tl.generate(model, ids, max_new_tokens=3))
    before = list(chat.messages)
    with pytest.raises(ValueError, match=rf"must have less than max_len = {first + 3} tokens, got \d+: reset\(\)"):
        chat.say(QUESTIONS[1])
    assert chat.messages == before
    chat.reset()
    chat.say(QUESTIONS[0])


# The command -----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(model, tmp_path):
    """A folder in Hugging Face's form."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = transformers.LlamaConfig(**{name: value for name, value in CONFIG.items() if name != "model_type"})
    randomise(transformers.LlamaForCausalLM(config)).save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    return tmp_path


def chat_with(folder, lines, monkeypatch, capsys, *options):
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode()), encoding="ascii"))
    status = command.main(["chat", str(folder), "--max-new-tokens", "7", *options])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_the_command_answers_each_line(folder, monkeypatch, capsys):
    chat = tl.Chat(
        tl.interop.load_hf(folder), tl.ByteLevelTokenizer.from_file(folder), system="Kurz!", max_new_tokens=7
    )
    wanted = "".join(f"{chat.say(question)}\n" for question in QUESTIONS)
    lines = "\n\n".join(QUESTIONS)
    assert chat_with(folder, lines, monkeypatch, capsys, "--system", "Kurz!") == (0, wanted, "")
    drawn = [chat_with(folder, lines, monkeypatch, capsys, "--temperature", "1.5", "--seed", seed)[1] for seed in "112"]
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_command_says_what_it_cannot_answer(folder, tmp_path, monkeypatch, capsys):
    write_tokenizer(folder, model_max_length=40)
    status, _, error = chat_with(folder, "Hi\n" + "word " * 50 + "\nHi", monkeypatch, capsys)
    assert status == 1 and error.startswith("transformer-lib chat: the conversation must have less than max_len = 40")
    with pytest.raises(SystemExit) as ended:
        chat_with(tmp_path / "nothing", "Hi", monkeypatch, capsys)
    assert ended.value.code == 2 and "must be a folder with a tokenizer.json" in capsys.readouterr().err
