"""A conversation as one text: the chat template of a model, which is a program in the language of Jinja.

A model that was taught to answer knows one form of conversations, such as `<|im_start|>user\\n…<|im_end|>\\n`. It comes
with the template that writes this form. As a template is somebody else's program, it runs in Jinja's sandbox and is
given plain data: it can read the messages, and reach and change nothing. (It can take time and memory, as any program.)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .._lists import check_items
from .._validate import check_flag

Message = Mapping[str, Any]  # {"role": "user", "content": "…"}


class ChatTemplate:
    """Writes messages as the text that a model was taught with.

    Args:
        source: the template, in the language of Jinja, as in `chat_template.jinja`.
        names: what it may use besides the messages, above all bos_token and eos_token.

    Raises:
        TypeError, ValueError: source is no text, or no template.
    """

    def __init__(self, source: str, **names: object) -> None:
        if not isinstance(source, str):
            raise TypeError(f"source must be a string, got {type(source).__name__}")
        self.source, self.names = source, names
        try:
            self._template = _environment().from_string(source)
        except TemplateError as error:
            raise ValueError(f"source must be a template in the language of Jinja, got: {error}") from None

    @classmethod
    def beside(cls, folder: Path, config: Mapping[str, Any]) -> ChatTemplate | None:
        """Return the template of a model's folder, or None if it has none.

        Args:
            folder: where `chat_template.jinja` may be. config: `tokenizer_config.json`, which may hold it as a text, or
                as a list of templates with names, of which "default" is taken.
        """
        file, source = folder / "chat_template.jinja", config.get("chat_template")
        if file.exists():
            source = file.read_text(encoding="utf-8")
        elif isinstance(source, list):
            source = {entry["name"]: entry["template"] for entry in source}.get("default")
        special = {name: token for name, token in config.items() if name.endswith("_token")}
        texts = {name: token["content"] if isinstance(token, dict) else token for name, token in special.items()}
        named = {name: token for name, token in texts.items() if isinstance(token, str)}
        return None if source is None else cls(source, **named)

    def render(self, messages: Iterable[Message], *, add_generation_prompt: bool = False, **variables: object) -> str:
        """Return the conversation as one text, with special tokens; `ByteLevelTokenizer.encode_chat` returns its ids.

        Args:
            messages: each a dictionary with "role" and "content", such as {"role": "user", "content": "Hello"}.
            add_generation_prompt: end with what stands before an answer, so that the model goes on with one.
            variables: what else the template asks for, such as `tools`.

        Raises:
            TypeError, ValueError: a message has another form; the template refuses the messages, or fails.
        """
        listed = check_messages(messages)
        check_flag("add_generation_prompt", add_generation_prompt)
        names = self.names | {"tools": None, "documents": None} | _plain("variables", variables)
        try:
            return self._template.render(messages=listed, add_generation_prompt=add_generation_prompt, **names)
        except Refusal as error:
            raise ValueError(f"messages must be as the chat template has them, and it says: {error}") from None
        except Exception as error:  # a template is a program, and can fail in any way
            raise ValueError(
                f"the chat template must run with these messages, got {type(error).__name__}: {error}"
            ) from error


class Refusal(Exception):
    """What a template's `raise_exception` says."""


def check_messages(messages: object) -> list[dict[str, Any]]:
    """Return the messages as a list of dictionaries, if each has a role and a content.

    Raises:
        TypeError, ValueError: there is none, or one has another form; the error names its index.
    """
    listed = check_items("messages", messages, 'dictionaries, such as {"role": "user", "content": "Hello"}')
    if not listed:
        raise ValueError("messages must hold at least one message, got none")
    for i, message in enumerate(listed):
        if not isinstance(message, Mapping):
            raise TypeError(f'messages[{i}] must be a dictionary with "role" and "content", got {message!r}')
        if not isinstance(message.get("role"), str) or not isinstance(
            message.get("content", 0), (str, list, type(None))
        ):
            raise ValueError(
                f'messages[{i}] must have "role", a string, and "content", a string or parts, got {dict(message)}'
            )
    return [_plain(f"messages[{i}]", dict(message)) for i, message in enumerate(listed)]


def _plain(name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of data that JSON can write: of any other object, a template could call the methods.

    Raises:
        TypeError: it holds another object.
    """
    try:
        return dict(json.loads(json.dumps(data)))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold strings, numbers, lists and dictionaries, but {error}") from None


class _Generation(Extension):
    """`{% generation %}…{% endgeneration %}` marks answers for training; what is between is written as it is."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return what is between the marks."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    """Return Jinja's sandbox with what transformers gives to templates; a template can change no list or dictionary."""
    extensions = [loopcontrols, _Generation]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
    environment.filters["tojson"] = _to_json
    environment.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
    return environment


def _raise_exception(message: str) -> NoReturn:
    raise Refusal(message)


def _strftime_now(format: str) -> str:
    return datetime.now().strftime(format)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return JSON as it is: Jinja's own filter would write < and > as numbers, for web pages."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
