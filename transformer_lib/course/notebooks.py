"""The notebooks of the course in one list: number, file, title, minutes, and what the learner builds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Notebook:
    """One notebook.

    Args:
        id: its number, from "00" on; "A" is the appendix.
        slug: rest of the file name.
        title: a few words.
        minutes: reading time with exercises, without the optional sections.
        builds: what the learner will have built, to follow "you will build".
        exercises: how many; their ids are "04.1", "04.2", …
        quizzes: how many; their ids are "04.q1", "04.q2", …
        widgets: ids of the interactive figures (`figures.catalogue`) that count as done once tried.
        cases: letters of what there is to diagnose; their ids are "17.A", "17.B", …
        optional: ids of the tasks that stand in optional sections.
        optional_minutes: what the optional sections take, with their exercises.
    """

    id: str
    slug: str
    title: str
    minutes: int
    builds: str
    exercises: int = 0
    quizzes: int = 0
    widgets: tuple[str, ...] = ()
    cases: str = ""
    optional: tuple[str, ...] = ()
    optional_minutes: int = 0

    @property
    def stem(self) -> str:
        """Name of the notebook's file without its end."""
        return f"{self.id}_{self.slug}"

    @property
    def filename(self) -> str:
        """Name of the notebook's file."""
        return f"{self.stem}.ipynb"

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Everything that has to be passed, as (kind, id)."""
        tasks = [("exercise", f"{self.id}.{number + 1}") for number in range(self.exercises)]
        questions = [("quiz", f"{self.id}.q{number + 1}") for number in range(self.quizzes)]
        cases = [("case", f"{self.id}.{letter}") for letter in self.cases]
        return (*tasks, *questions, *cases, *(("widget", name) for name in self.widgets))


NOTEBOOKS = (
    Notebook(
        "00",
        "start_here",
        "Start here",
        39,
        "a picture of the whole course",
        exercises=4,
        quizzes=2,
        widgets=("W27",),
        optional=("00.3", "00.4", "00.q2"),
        optional_minutes=16,
    ),
    Notebook(
        "01",
        "attention_is_a_lookup",
        "Attention is a lookup",
        85,
        "a dictionary that blends its answers",
        exercises=6,
        quizzes=5,
        widgets=("W1", "W2", "W26"),
        optional=("01.5", "01.6", "01.q2", "W2"),
        optional_minutes=48,
    ),
    Notebook(
        "02",
        "similarity_without_weights",
        "Similarity without weights",
        85,
        "attention with nothing to learn",
        exercises=7,
        quizzes=4,
        widgets=("W17", "W33"),
        optional=("02.3", "02.5", "02.6", "02.q2"),
        optional_minutes=44,
    ),
    Notebook(
        "03",
        "queries_keys_values",
        "Queries, keys, values",
        85,
        "the three projections",
        exercises=5,
        quizzes=3,
        widgets=("W16",),
        optional=("03.5", "03.q2"),
        optional_minutes=29,
    ),
    Notebook(
        "04",
        "scaled_dot_product_attention",
        "Scaled dot-product attention",
        85,
        "attention as the paper defines it, forward and backward",
        exercises=6,
        quizzes=3,
        widgets=("W3",),
        optional=("04.2", "04.5", "04.6"),
        optional_minutes=70,
    ),
    Notebook(
        "05",
        "tokens_and_embeddings",
        "Tokens and embeddings",
        85,
        "a subword tokenizer, and the table behind it",
        exercises=7,
        quizzes=3,
        widgets=("W18", "W19"),
        optional=("05.5", "05.6", "05.7", "05.q2"),
        optional_minutes=50,
    ),
    Notebook(
        "06",
        "positional_encoding",
        "Positional encoding",
        85,
        "encodings that tell order",
        exercises=7,
        quizzes=4,
        widgets=("W4", "W5"),
        optional=("06.2", "06.4", "06.6", "06.q2", "06.q4", "W5"),
        optional_minutes=48,
    ),
    Notebook(
        "07",
        "masking_and_teacher_forcing",
        "Masking and teacher forcing",
        85,
        "masks, and training on all positions at once",
        exercises=5,
        quizzes=3,
        widgets=("W6",),
        optional=("07.5",),
        optional_minutes=22,
    ),
    Notebook(
        "08",
        "multi_head_attention",
        "Multi-head attention",
        85,
        "several attentions side by side",
        exercises=5,
        quizzes=4,
        widgets=("W7", "W20"),
        optional=("08.5", "08.q4", "W20"),
        optional_minutes=27,
    ),
    Notebook(
        "09",
        "residuals_norms_feed_forward",
        "Residuals, norms, feed-forward",
        85,
        "what holds a deep stack together",
        exercises=6,
        quizzes=4,
        widgets=("W13",),
        optional=("09.5", "09.6", "09.q2"),
        optional_minutes=58,
    ),
    Notebook(
        "10",
        "encoder",
        "The encoder",
        85,
        "a stack of encoder layers",
        exercises=4,
        quizzes=3,
        widgets=("W21",),
        optional=("10.q2",),
        optional_minutes=14,
    ),
    Notebook(
        "11",
        "decoder_and_cross_attention",
        "The decoder and cross-attention",
        85,
        "masked attention, and attention to the source",
        exercises=5,
        quizzes=4,
        widgets=("W9", "W34"),
        optional=("11.3", "11.5", "11.q2"),
        optional_minutes=37,
    ),
    Notebook(
        "12",
        "the_transformer",
        "The whole Transformer",
        85,
        "the complete model",
        exercises=4,
        quizzes=4,
        widgets=("W15",),
        optional=("12.q4",),
        optional_minutes=9,
    ),
    Notebook(
        "13",
        "training",
        "Training",
        85,
        "a translator, trained on your machine",
        exercises=6,
        quizzes=4,
        widgets=("W11", "W14", "W25", "W35"),
        optional=("13.2", "13.4", "13.q4", "W11", "W14", "W25"),
        optional_minutes=48,
    ),
    Notebook(
        "14",
        "translating",
        "Translating",
        85,
        "greedy, sampled and beam decoding",
        exercises=6,
        quizzes=4,
        widgets=("W10",),
        optional=("14.2", "14.5", "14.q2", "14.q3"),
        optional_minutes=50,
    ),
    Notebook(
        "15",
        "what_the_heads_learned",
        "What the heads learned",
        84,
        "ablations, heads that you can read, and a control of your own",
        exercises=7,
        quizzes=4,
        widgets=("W24",),
        optional=("15.2", "15.4", "15.5", "15.q4"),
        optional_minutes=50,
    ),
    Notebook(
        "16",
        "cost_speed_and_scale",
        "Cost, speed and scale",
        85,
        "exact attention without its grid, forward and backward",
        exercises=6,
        quizzes=4,
        widgets=("W12",),
        optional=("16.2", "16.5", "16.q1", "16.q2", "16.q4"),
        optional_minutes=39,
    ),
    Notebook(
        "17",
        "bug_clinic",
        "Bug clinic",
        85,
        "a diagnosis for six patients, and instruments for your own model",
        exercises=6,
        quizzes=4,
        widgets=("W22",),
        cases="ABCDEFGHIJKL",
        optional=(
            "17.1",
            "17.3",
            "17.4",
            "17.5",
            "17.q2",
            "17.q3",
            "17.q4",
            "17.F",
            "17.G",
            "17.H",
            "17.I",
            "17.J",
            "17.L",
        ),
        optional_minutes=50,
    ),
    Notebook(
        "18",
        "the_transformer_by_hand",
        "The whole Transformer by hand",
        85,
        "a tape that trains a translator, and checks of gradients",
        exercises=8,
        quizzes=3,
        widgets=("W28",),
        optional=("18.1", "18.2", "18.3", "18.4", "18.5", "18.q1", "18.q2", "18.q3"),
        optional_minutes=59,
    ),
    Notebook(
        "19",
        "one_stack_three_models",
        "One stack, three models",
        85,
        "a language model that writes, and GPT-2 and BERT on your blocks",
        exercises=6,
        quizzes=3,
        widgets=("W29",),
        optional=("19.5", "19.q2", "19.q3"),
        optional_minutes=28,
    ),
    Notebook(
        "20",
        "the_block_of_today",
        "The block of today",
        85,
        "a block that computes what Llama 3, Qwen3 and Mistral compute",
        exercises=7,
        quizzes=4,
        widgets=("W30",),
        optional=("20.7",),
        optional_minutes=27,
    ),
    Notebook(
        "21",
        "learning_in_context",
        "Learning in context",
        85,
        "a circuit of two heads that copies what it has never seen",
        exercises=5,
        quizzes=4,
        widgets=("W31",),
        optional=("21.3", "21.q3", "21.q4"),
        optional_minutes=35,
    ),
    Notebook(
        "22",
        "from_model_to_server",
        "From model to server",
        79,
        "a server that answers many, and says the same",
        exercises=8,
        quizzes=4,
        widgets=("W32",),
        optional=("22.2", "22.3", "22.4", "22.5", "22.8", "22.q1"),
        optional_minutes=89,
    ),
    Notebook(
        "23",
        "what_chatgpt_is_made_of",
        "What ChatGPT is made of",
        85,
        "a chat with a real model, on your own functions",
        exercises=5,
        quizzes=2,
        widgets=("W36",),
        optional_minutes=6,
    ),
    Notebook(
        "24",
        "what_does_it_know_of_france",
        "What does it know of France, and where?",
        85,
        "a map of the way that a fact takes through a real model",
        exercises=5,
        quizzes=2,
        widgets=("W37",),
        optional=("24.5",),
        optional_minutes=22,
    ),
    Notebook(
        "25",
        "teaching_manners",
        "Teaching it manners",
        85,
        "LoRA on a real model, and a writer that is rewarded",
        exercises=5,
        quizzes=2,
        widgets=("W38",),
        optional_minutes=4,
    ),
    Notebook(
        "A",
        "claims_and_corrections",
        "Claims and corrections",
        68,
        "a habit of checking",
        exercises=4,
        quizzes=3,
        optional=("A.q1", "A.q2", "A.q3"),
        optional_minutes=19,
    ),
)


def notebook(notebook_id: str) -> Notebook:
    """Return the notebook with this number, such as "04".

    Raises:
        ValueError: if there is none.
    """
    for entry in NOTEBOOKS:
        if entry.id == notebook_id:
            return entry
    numbers = [entry.id for entry in NOTEBOOKS if entry.id.isdigit()]
    raise ValueError(f"notebook_id must be one of {numbers[0]} to {numbers[-1]} or A, got {notebook_id!r}")


def following(entry: Notebook) -> Notebook | None:
    """Return the notebook after this one; None for the last."""
    return dict(zip(NOTEBOOKS, NOTEBOOKS[1:], strict=False)).get(entry)


def chosen(names: Sequence[str]) -> list[Notebook]:
    """Return the notebooks with these numbers; all of them if no number is given.

    Raises:
        ValueError: if there is none for a number.
    """
    return [notebook(name) for name in names] or [*NOTEBOOKS]


def path_of(entry: Notebook) -> Path | None:
    """Return the notebook's file, beside this package or in the working directory; None when it is not there."""
    folders = (Path(__file__).resolve().parents[2] / "notebooks", Path.cwd())
    return next((folder / entry.filename for folder in folders if (folder / entry.filename).is_file()), None)


def file_of(entry: Notebook) -> Path:
    """Return the notebook's file, which must be there.

    Raises:
        FileNotFoundError: if it is neither beside this package nor in the working directory.
    """
    path = path_of(entry)
    if path is None:
        raise FileNotFoundError(f"{entry.filename} is neither beside transformer_lib nor in this folder")
    return path


def written(entry: Notebook) -> bool:
    """Return True when the notebook's file is there, beside this package or in the working directory."""
    return path_of(entry) is not None
