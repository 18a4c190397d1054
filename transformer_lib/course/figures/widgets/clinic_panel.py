"""W22, the patient chart: curves, attention and probes of the clinic's models, beside the healthy control."""

from __future__ import annotations

from dataclasses import replace

from ...._validate import check_choice
from ...clinic import LETTERS, Patient, admit, words
from ...clinic.instruments import EXACT, EXCHANGED, PADDING, changes, summary
from ...clinic.task import PAD_ID
from ..svg import Picture, attention_map
from ..svg import patient as svg
from .controls import choice, number
from .panel import Panel

WARD = ("control", *LETTERS)
MAPS = ("encoder", "decoder", "cross")
PROBES = {
    "repeat": "the same batch once more",
    "future": f"token {EXCHANGED + 1} of the target replaced",
    "padding": f"{PADDING} more padding tokens behind",
    "order": "the source reversed",
}
ROWS = 20
PADDED = words([PAD_ID])[0]


def patient_chart(patient: str = "control", look: str = "curves", row: int = 1) -> Panel:
    """Choose a patient and what to look at: its training curves, an attention map, or a probe by two passes.

    The patients come from the stored ward.

    Args:
        patient: "control" or "A" to "L". look: "curves", one of MAPS or one of PROBES.
        row: which held-out row the maps and the probes show, from 1.

    Raises:
        ValueError: there is no such patient, look or row.
    """
    looks = ("curves", *MAPS, *PROBES)
    controls = {
        "patient": choice("patient", WARD, check_choice("patient", patient, WARD)),
        "look": choice("look at", looks, check_choice("look", look, looks)),
        "row": number("row (maps and probes)", row, 1, ROWS),
    }
    return Panel(draw_chart, controls, widget_id="W22", carried={"row": (1, 2, 5, 10, 17, ROWS)})


def draw_chart(patient: str, look: str, row: int) -> Picture:
    """Draw the picture for one choice; its line gives the measurement, never the diagnosis."""
    admitted = admit(patient)
    if look in MAPS:
        return _map(admitted, look, row)
    return _curves(admitted) if look == "curves" else _probe(admitted, look, row)


def _curves(patient: Patient) -> Picture:
    log, control = vars(patient.log), vars(admit("control").log)
    loss, accuracy = (sum(log[key][-20:]) / 20 for key in ("loss", "accuracy"))
    says = f"{patient.name}: loss {loss:.2f}, accuracy {accuracy:.2f} in the last 20 steps; "
    says += f"of 200 held-out rows it reverses {patient.reverses():.2f}"
    alt = f"Loss and accuracy over {len(log['loss'])} steps, beside the control. {says}."
    return Picture(svg.curves(log, control, patient.name), svg.WIDTH, svg.HEIGHT, alt, says)


def _map(patient: Patient, part: str, row: int) -> Picture:
    src, tgt_in, _ = patient.batch()
    weights = patient.attention(src, tgt_in)[part][row - 1].mean(dim=0).double()
    sources, reads = (_numbered(ids[row - 1]) for ids in (src, tgt_in))
    queries, keys = {"encoder": (sources, sources), "decoder": (reads, reads), "cross": (reads, sources)}[part]
    hidden = (src if part != "decoder" else tgt_in)[row - 1] == PAD_ID
    later = weights.triu(1)
    real = [i for i, word in enumerate(queries) if not word.startswith(PADDED)]
    weights, later, queries = weights[real], later[real], [queries[i] for i in real]
    later = f", to later tokens {later.sum(dim=1).mean():.2f}" if part == "decoder" else ""
    says = f"{patient.name}, row {row}, {part}, mean of both heads: "
    says += f"a query gives to padding {weights[:, hidden].sum(dim=1).mean():.2f}{later}"
    picture = attention_map(weights.numpy(), queries, keys)
    return replace(picture, says=says, alt=f"{picture.alt} {says}.")


def _numbered(ids: object) -> list[str]:
    return [f"{word} {place}" for place, word in enumerate(words(ids), start=1)]


def _moved(probe: str, here: list[float]) -> str:
    """Say in a sentence how far the positions of a row have moved."""
    if probe == "future":
        before, after = max(here[:EXCHANGED]), max(here[EXCHANGED:])
        first = "The positions before it do not move" if before < EXACT else f"Before it, logits move by {before:.2f}"
        return f"{first}; from it on, they move by up to {after:.2f}."
    what = "the memory of a letter moves by" if probe == "order" else "the logits move by"
    return f"At most, {what} {max(here):.2f}."


def _probe(patient: Patient, probe: str, row: int) -> Picture:
    every, healthy = changes(patient, probe), changes(admit("control"), probe)
    here, control = every[row - 1].tolist(), healthy[row - 1].tolist()
    side = "source" if probe == "order" else "target"
    places = [f"{side} {i}" if i == 1 else str(i) for i in range(1, len(here) + 1)]
    says = f"{patient.name}, row {row}, {PROBES[probe]}. {_moved(probe, here)} "
    says += f"In the whole batch, the instrument “{probe}” reads {summary(probe, every):.2f}"
    title = f"{PROBES[probe]}: change of {'each memory row' if probe == 'order' else 'the logits'}"
    body = svg.bars(title, here, control, places, patient.name)
    table = [["position", patient.name, "control"]]
    table += [[str(i), f"{a:.2f}", f"{b:.2f}"] for i, (a, b) in enumerate(zip(here, control, strict=True), 1)]
    alt = f"Bars by position, {len(here)} of them, beside the control's. {says}."
    return Picture(body, svg.WIDTH, svg.HEIGHT, alt, says, table=table)
