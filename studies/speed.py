"""How fast is the library beside others? The stored answer (docs/speed.md).

`make bench` measures and prints; `make bench BENCH=--store` also writes data/bench.json, from which everything here
follows: the tables of docs/speed.md and the line in the README. The programs are in tests/benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transformer_lib._files import DATA
from transformer_lib.course.lab import stored

from .engine import save
from .pages import ROOT, write_between

RESULTS, TRICKS, DEPLOYED = (DATA / f"{name}.json" for name in ("bench", "tricks", "deployed"))
SHARED, HELD, ELSEWHERE = (DATA / f"{name}.json" for name in ("shared", "held", "elsewhere"))
REAL, REAL_PEER = DATA / "real_speed.json", "transformers, generate"
BASELINE, OURS, PEER = "torch.nn.Transformer", "transformer_lib", "transformers MarianMT"  # as stored rows are called
READABLE = f"{OURS}, readable path"
ENGINE, ENGINE_INT8 = "CTranslate2, float32", "CTranslate2, int8"
ENGINE_ALONE, ENGINE_INT8_ALONE = (f"{name}, one thread" for name in (ENGINE, ENGINE_INT8))
ENGINE_SHARED = f"{ENGINE}, in one process with PyTorch"
PARTS = ("training", "decoding")
KEPT = ("bench", "deployed")  # what the page shows of other processors, too
MIB = 2**20


def store(path: Path, results: dict, elsewhere: Path = ELSEWHERE) -> None:
    """Write what was measured; of `KEPT`, what another processor had measured stays in `elsewhere`, by its name."""
    kept, name = stored.read(elsewhere), path.stem
    if name in KEPT and path.exists():
        before = stored.read(path)
        kept.setdefault(before["machine"]["processor"], {})[name] = before
        kept.get(results["machine"]["processor"], {}).pop(name, None)  # that is this one's again
        save(elsewhere, {processor: found for processor, found in kept.items() if found}, indent=1)
    save(path, results, indent=1)


def load_results(path: Path = RESULTS) -> dict:
    """Return what `make bench` wrote: command, date, machine, work, baseline, training, decoding, memory, gpu."""
    return stored.read(path)


def ratios(results: dict, part: str) -> dict[str, tuple[float, float, float]]:
    """Return {name: (10th percentile, median, 90th percentile)} of "times as fast as the baseline".

    Args:
        part: "training" or "decoding".
    """
    if part not in PARTS:
        raise ValueError(f"part must be 'training' or 'decoding', got {part!r}")
    rows = results[part]["rows"]
    return {row["name"]: (row["ratio"]["low"], row["ratio"]["median"], row["ratio"]["high"]) for row in rows}


def shown(name: str) -> str:
    """Return what tables call the stored row `name`: on a CPU, a row of ours that names no path took the fast one."""
    takes_fast = name.startswith(OURS) and READABLE not in name
    return name.replace(OURS, f"{OURS}, fast path", 1) if takes_fast else name


def report(results: dict) -> str:
    """Return all tables as Markdown, with what they were measured on in front."""
    parts = [_setting(results), _training(results), _decoding(results), _memory(results["memory"])]
    if results["gpu"]:
        parts.append(_gpu(results["gpu"]))
    by_part = (results["training"]["missing"], results["decoding"]["missing"])
    missing = {shown(name): reason for part in by_part for name, reason in part.items()}
    missing |= (results["gpu"] or {}).get("missing", {})
    if missing:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in missing.items())
        parts.append(f"Not measured: {reasons}.")
    return "\n\n".join(parts)


def headline(results: dict) -> str:
    """Return a one-sentence summary for the README: both paths and one other program beside the baseline."""
    (fast, readable, peer), (fast_decoding, readable_decoding, peer_decoding) = (
        [f"{ratios(results, part)[name][1]:.2f}" for name in (OURS, READABLE, PEER)] for part in PARTS
    )
    machine, baseline = results["machine"], f"`{results['baseline']}`"
    return (
        f"[How fast it is](docs/speed.md), measured on {results['date']} ({machine['processor']}, "
        f"{machine['threads']} threads) beside {baseline} out of the box: a training step of "
        f'`tl.train(…, path="fast")` is **{fast}** times as fast ({readable} without `path`), and greedy decoding with '
        f'`path="fast"` **{fast_decoding}** times ({readable_decoding} without). {PEER} reaches {peer} and '
        f"{peer_decoding}; {baseline} decodes without a cache."
    )


def write_pages(results: dict, root: Path = ROOT) -> None:
    """Write the tables into docs/speed.md and the headline into README.md."""
    write_between(root / "docs" / "speed.md", "speed", report(results))
    write_between(root / "README.md", "speed", headline(results))


def tricks_report(results: dict) -> str:
    """Return, as Markdown, how fast the fast path is without each of its tricks, for each kind of work."""
    works = results["work"]
    names = dict.fromkeys(name for rows in works.values() for name in rows)
    head = ["speed without", *works]
    rows = [[name, *(_share(rows.get(name)) for rows in works.values())] for name in names]
    machine = results["machine"]
    setting = (
        f"Measured on {results['date']} by `{results['command']}`: {machine['processor']}, {machine['threads']} "
        "threads. Each number is the speed of the fast path without that trick, as a share of its speed with all of "
        "them: median of interleaved rounds, and in brackets the 10th to 90th percentile. Below 1, the trick gains."
    )
    return f"{setting}\n\n{table(head, rows)}"


def deployed_report(results: dict) -> str:
    """Return, as Markdown, how fast decoding is beside CTranslate2, and how many sentences are the same."""
    works, machine, work = results["decoding"], results["machine"], results["work"]
    names = list(next(iter(works.values())))
    rows = [[shown(name), *(_beside(rows[name]) for rows in works.values())] for name in names]
    threads = f" with one thread or {machine['threads']}, whichever is faster" if ENGINE_ALONE in names else ""
    setting = (
        f"Measured on {results['date']} by `{results['command']}`: {machine['processor']}, {machine['threads']} "
        f"threads, torch {machine['versions']['torch']}, CTranslate2 {machine['ctranslate2']}; {work['rounds']} "
        f"interleaved rounds, {work['new_tokens']} new tokens a sentence. Times as fast as CTranslate2 in "
        f"float32{threads}: median, and in brackets the 10th to 90th percentile; then the milliseconds, and in how "
        f"many of the sentences every word is that of {OURS}."
    )
    return f"{setting}\n\n{table(['decoding', *works], rows)}\n\nA beam is {work['beam_size']} wide."


def elsewhere_report(kept: dict) -> str:
    """Return, as Markdown, what other processors measured: the main ratios, and decoding beside CTranslate2."""
    return "\n\n".join(part for found in kept.values() for part in _elsewhere(found))


def _elsewhere(found: dict) -> list[str]:
    parts = []
    if "bench" in found:
        results, low = found["bench"], f"{OURS}, bfloat16"
        training, decoding = ({row["name"]: _ratio(row["ratio"]) for row in results[part]["rows"]} for part in PARTS)
        parts.append(
            f'{_setting(results)} With path="fast", a training step is {training[OURS]} times as fast in float32 and '
            f"{training[low]} in bfloat16, greedy decoding {decoding[OURS]} times, and a beam "
            f"{decoding[f'{OURS}, beam']} times."
        )
    if "deployed" in found:
        parts.append(deployed_report(found["deployed"]))
    return parts


def shared_report(results: dict) -> str:
    """Return, as Markdown, how many steps several learners on one machine take together."""
    rates = {(row["learners"], row["threads"]): row["steps_a_second"] for row in results["rows"]}
    threads = list(dict.fromkeys(number for _, number in rates))
    alone = rates[1, 1]
    rows = [
        [str(n), *(f"**{rates[n, number] / alone:.2f}** ({rates[n, number]:.1f} a second)" for number in threads)]
        for n in dict.fromkeys(n for n, _ in rates)
    ]
    machine = results["machine"]
    setting = (
        f"Measured on {results['date']} by `{results['command']}`: {machine['processor']}, {machine['processors']} "
        f"processors. Training steps of all learners together in {results['seconds']:.0f} seconds, by the recipe of "
        f"notebook 13, as multiples of those of one learner with one thread; medians of {results['rounds']} rounds."
    )
    named = {1: "one thread each", 2: "two threads each"}
    return f"{setting}\n\n{table(['learners at once', *(named[number] for number in threads)], rows)}"


def held_report(results: dict) -> str:
    """Return, as Markdown, the ratios of a processor held to older instructions."""
    found = [{row["name"]: row for row in results[part]["rows"]} for part in PARTS]
    names = [name for name in dict.fromkeys(name for rows in found for name in rows) if name != BASELINE]
    rows = [[shown(name), *(_timed(part.get(name)) for part in found)] for name in [BASELINE, *names]]
    machine, training = results["machine"], results["training"]
    setting = (
        f"Measured on {results['date']} by `{results['command']}`: {machine['processor']}, held to "
        f"{machine['instructions']}, {machine['threads']} threads, torch {machine['versions']['torch']}. Times as fast "
        f"as {BASELINE}, of {results['rounds']} interleaved rounds: median, and in brackets the 10th to 90th "
        "percentile; then the milliseconds. The fastest product of the training step reaches "
        f"{training['best_gigaflops']:,.0f} GFLOP/s in float32 and {training['best_bfloat16_gigaflops']:,.0f} in "
        "bfloat16."
    )
    return f"{setting}\n\n{table(['held to older instructions', 'training step', 'decoding'], rows)}"


def real_report(results: dict) -> str:
    """Return, as Markdown, how fast a real model runs in each way, and how far memory would let it."""
    machine, work, parts = results["machine"], results["work"], results["decoding"]
    speed = machine["gigabytes_a_second"]
    setting = (
        f"Measured on {results['date']} by `{results['command']}`: {machine['processor']}, {machine['threads']} "
        f"threads, load {machine['load']}, torch {machine['versions']['torch']}, transformers "
        f"{machine['versions']['transformers']}; {work['rounds']} interleaved rounds, greedy, {work['new_tokens']} "
        f"tokens after a prompt of {work['prompt']}. “× as fast” compares the seconds round by round: median, and in "
        f"brackets the 10th to 90th percentile. A step reads all weights at {speed} GB a second at best: "
        "the limit. “Same words” are those of our readable path in float32."
    )
    text = [setting, *(_real_table(rows, int(batch), work, speed) for batch, rows in parts.items())]
    if results["missing"]:
        text.append(f"Not measured: {'; '.join(f'{name} ({why})' for name, why in results['missing'].items())}.")
    return "\n\n".join(text)


def _real_table(rows: list[dict], batch: int, work: dict, speed: float) -> str:
    head = [
        f"{batch} at a time",
        "tokens a second",
        "× as fast",
        "limit",
        "prompt, ms",
        "prompt, × as fast",
        "same words",
    ]
    return table(
        head,
        [
            [
                row["name"],
                f"{row['tokens_a_second']:.1f}",
                _ratio(row["ratio"]),
                f"{batch * speed * 1e9 / row['bytes_read']:.0f}",
                f"{1000 * row['prompt_seconds']['median']:,.0f}",
                _ratio(row["prompt_ratio"]),
                _percent(row["same"]),
            ]
            for row in rows
        ],
    )


def _timed(row: dict | None) -> str:
    return "" if row is None else f"{_ratio(row['ratio'])}, {1000 * row['seconds']['median']:,.0f} ms"


def _beside(row: dict) -> str:
    return f"{_timed(row)}, {row['same']} of {row['sentences']}"


def _share(ratio: dict[str, float] | None) -> str:
    return "" if ratio is None else f"{ratio['median']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; all columns but the first and a last one of words are numbers, set to the right."""
    align = ["---"] + ["---" if name == "what differs" else "---:" for name in head[1:]]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, align, *rows))


def _setting(results: dict) -> str:
    machine, work = results["machine"], results["work"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items() if number)
    units = {True: "has units for bfloat16", False: "has no units for bfloat16", None: "may have units for bfloat16"}
    return (
        f"Measured on {results['date']}: {machine['processor']}, {machine['threads']} threads, {versions}. The "
        f"processor {units[machine['bfloat16_units']]}. {work['rounds']} interleaved rounds; “× as fast” compares the "
        f"seconds of {results['baseline']} with a candidate's own, round by round: median, and in brackets the 10th to "
        "90th percentile."
    )


def _training(results: dict) -> str:
    work, training = results["work"], results["training"]
    head = [
        f"training step, {work['batch']} × {work['length']} tokens",
        "× as fast",
        "ms",
        "of the product rate",
        "what differs",
    ]
    rows = [[*_row_start(row), _percent(row["share_of_product_rate"]), row["note"]] for row in training["rows"]]
    return f"{table(head, rows)}\n\n{_products(training)}"


def _products(training: dict) -> str:
    """Return how fast the products are alone, and how far bfloat16 can get with them."""
    best, low = training["best_gigaflops"], training["best_bfloat16_gigaflops"]
    text = (
        f"The machine's product rate, {best:,.0f} GFLOP/s in float32 and {low:,.0f} in bfloat16, is that of the "
        "fastest matrix product of the step, measured alone in the same rounds. The share is of the rate in float32, "
        "and counts the products that a candidate really computes (without those inside a fused attention)."
    )
    rows = {row["name"]: row for row in training["rows"]}
    full, half = rows.get(OURS), rows.get(f"{OURS}, bfloat16")
    if full is None or half is None:
        return text
    share = full["share_of_product_rate"]
    limit = 1 / (1 - share + share * best / low)  # Amdahl's law
    times = full["seconds"]["median"] / half["seconds"]["median"]
    return (
        f"{text} Products are {share * 100:.0f} % of the fast path's step in float32 and {low / best:.1f} times as "
        f"fast in bfloat16, so that by them alone the step would be {limit:.2f} times as fast. It is {times:.2f} times."
    )


def _decoding(results: dict) -> str:
    work = results["work"]
    head = [f"decoding, {work['decode_batch']} × {work['new_tokens']} new tokens", "× as fast", "ms", "what differs"]
    rows = [[*_row_start(row), row["note"]] for row in results["decoding"]["rows"]]
    return table(head, rows) + f"\n\nA beam is {work['beam_size']} wide; the other rows are greedy."


def _memory(memory: dict) -> str:
    head = [
        "peak memory of one self-attention layer, MiB",
        *(f"{length:,} tokens" for length in memory["lengths"]),
        "grows as",
    ]
    names = {"grid": "with the grid of weights", "fused": "fused, without it"}
    rows = []
    for way, name in names.items():
        peaks = ["—" if peak is None else f"{peak / MIB:,.0f}" for peak in memory[way]["peak_bytes"]]
        exponent = memory[way]["exponent"]
        rows.append([name, *peaks, "—" if exponent is None else f"n^{exponent:.2f}"])
    width, heads = memory["d_model"], memory["n_heads"]
    return table(head, rows) + (
        f"\n\nForward and backward, d_model {width}, {heads} heads, one sentence; bytes by PyTorch's allocator."
    )


def _gpu(gpu: dict) -> str:
    head = [f"training step on {gpu['device']}", "× as fast", "tokens/s", "utilisation"]
    rows = [
        [row["name"], _ratio(row["ratio"]), f"{row['tokens_per_second']:,}", _percent(row["utilisation"])]
        for row in gpu["rows"]
    ]
    rate = f"Base model of the paper, bfloat16, compiled; utilisation is the share of {gpu['best_teraflops']} TFLOP/s."
    return table(head, rows) + "\n\n" + rate


def _ratio(ratio: dict[str, float]) -> str:
    if ratio["low"] == ratio["high"]:
        return f"{ratio['median']:.2f}"
    return f"**{ratio['median']:.2f}** ({ratio['low']:.2f}–{ratio['high']:.2f})"


def _row_start(row: dict) -> tuple[str, str, str]:
    """Return the first cells of a measured row: name, ratio, milliseconds."""
    return shown(row["name"]), _ratio(row["ratio"]), f"{1000 * row['seconds']['median']:,.0f}"


def _percent(share: float | None) -> str:
    return "—" if share is None else f"{100 * share:.0f} %"


def _writer(mark: str, report: Callable[[dict], str]) -> Callable[..., None]:
    """Return a function of results and of the repository that writes their report between these marks of the page."""
    return lambda results, root=ROOT: write_between(root / "docs" / "speed.md", mark, report(results))


write_tricks = _writer("tricks", tricks_report)  # the fast path without each of its tricks
write_deployed = _writer("deployed", deployed_report)  # beside CTranslate2
write_elsewhere = _writer("elsewhere", elsewhere_report)  # on other processors
write_shared = _writer("shared", shared_report)  # several learners on one machine
write_held = _writer("held", held_report)  # a processor held to older instructions
write_real = _writer("real", real_report)  # a real language model
