"""Record the front page's translator: the loop of the README, and the card that others show beside a link.

`python docs/record_front.py` after `make site`; it drives an installed Chromium, CHROMIUM or one on the PATH. What is
shown is what the page answers: nothing is drawn but the mouse's pointer, which a screenshot leaves out.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import io
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent)]

from transformer_lib._streams import run_command  # noqa: E402

LOOP, CARD = DOCS / "bank.gif", DOCS / "_static" / "card.png"
WIDTH, SCALE = 620, 2  # of the loop: CSS pixels, as the README shows it, and the screen's pixels for each
CARD_SIZE = (600, 315)  # in twice as many pixels, 1200 by 630: what sites that show cards ask for
COLOURS = 64  # of the loop; a page of text has few
PAPER = 248  # from here on white is white
KEY, GLANCE, READ = 120, 700, 1500  # milliseconds: between two keys, to see a change, to read a sentence
STEP, STEPS = 50, 10  # milliseconds and pictures of the pointer's way

POINTER = """() => {
    const pointer = document.createElement("div");
    pointer.id = "pointer";
    pointer.style.cssText = "position:fixed;left:0;top:0;z-index:9999;pointer-events:none;width:24px;height:24px";
    pointer.innerHTML = '<svg viewBox="0 0 24 24" width="24"><path d="M4 2v17l4.5-4 3 7 3-1.3-3-6.9 6.2-.3z"'
        + ' fill="#fff" stroke="#111" stroke-width="1.4" style="stroke:#111;fill:#fff"/></svg>';
    document.body.append(pointer);
}"""
MOVE = "([x, y]) => { pointer.style.transform = `translate(${x - 4}px, ${y - 2}px)`; }"
TOP_OF_THE_ARC = """() => {
    const arc = document.querySelector("svg[data-front='arcs'] path.loud + path.catch");
    const at = arc.getPointAtLength(arc.getTotalLength() / 2), place = arc.getScreenCTM();
    return [at.x + place.e, at.y + place.f];
}"""
SAYS = """() => {
    const shown = document.querySelector("[data-front='german']").cloneNode(true);
    shown.querySelectorAll("del").forEach(gone => gone.remove());
    return shown.textContent.replace(/\\s+/g, " ").trim();
}"""
# The page without what lies around the translator; the README tells the rest.
ALONE = """
header, aside, footer, .bd-sidebar, .bd-header-article, .prev-next-footer { display: none !important; }
#pst-back-to-top, .front details.more { display: none !important; }
html, body { overflow: hidden !important; }
.front .reading { max-width: none !important; }
"""
FOR_THE_LOOP = (
    ALONE
    + """
.front { margin: 0 !important; position: fixed; inset: 0 0 auto 0; z-index: 99; border-radius: 0; border: none; }
.front { background: var(--pst-color-background); }
"""
)


FOR_THE_CARD = (
    ALONE
    + """
.front .chips, .front .note { display: none !important; }
.front { position: fixed; inset: 0; z-index: 99; margin: 0 !important; padding: 22px 28px !important; }
.front { border: none; border-radius: 0; background: var(--pst-color-background); }
.front::before { content: "The Transformer, from one lookup to a translator"; display: block; margin-bottom: 12px; }
.front::before { font: 700 19px/1.3 var(--pst-font-family-heading); }
"""
)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a word about each."""

    def log_message(self, *said: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve the site's folder on this machine; yields its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Moment:
    """A picture of the loop: how long it is shown, and the German that stands in it."""

    picture: bytes
    milliseconds: int
    german: str


class Recorder:
    """Takes pictures of the translator while somebody uses it."""

    def __init__(self, page) -> None:
        self.page, self.moments = page, []
        self.at = (WIDTH * 0.86, 190.0)  # where nothing is
        page.evaluate(POINTER)
        page.evaluate(MOVE, self.at)
        self.box = page.locator("[data-front='box']").bounding_box()

    def look(self, milliseconds: int) -> None:
        """Take a picture that is shown this long."""
        picture = self.page.screenshot(clip=self.box)
        self.moments.append(Moment(picture, milliseconds, self.page.evaluate(SAYS)))

    def move(self, to: tuple[float, float]) -> None:
        """Move the pointer there, slowly at both ends."""
        start = self.at
        for step in range(1, STEPS + 1):
            part = step / STEPS
            part = part * part * (3 - 2 * part)
            self.at = tuple(a + (b - a) * part for a, b in zip(start, to, strict=True))
            self.page.evaluate(MOVE, self.at)
            self.look(STEP)

    def middle(self, selector: str) -> tuple[float, float]:
        """Return the middle of what the page shows there."""
        box = self.page.locator(selector).bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def click(self) -> None:
        """Click where the pointer is."""
        self.page.mouse.click(*self.at)


def opened(browser, address: str, size: tuple[int, int], scale: int, style: str):
    """Return the front page, its translator ready, without what lies around it."""
    page = browser.new_page(
        viewport=dict(zip(("width", "height"), size, strict=True)), device_scale_factor=scale, color_scheme="light"
    )
    page.set_default_timeout(60_000)
    page.goto(address)
    page.wait_for_selector("[data-ready]")
    page.add_style_tag(content=style)
    return page


def loop(browser, address: str) -> list[Moment]:
    """Record the story: with *river* the man sees a bank's shore; *money* is typed; the arc that tells it is cut."""
    page = opened(browser, address, (WIDTH, 900), SCALE, FOR_THE_LOOP)
    cue = page.locator("[data-front='cue']")
    cue.fill("river")
    cue.blur()
    page.wait_for_timeout(300)
    recorder = Recorder(page)
    recorder.look(READ)
    recorder.move(recorder.middle("[data-front='cue']"))
    cue.select_text()
    recorder.look(GLANCE // 2)
    for letter in "money":
        page.keyboard.type(letter)
        recorder.look(KEY)
    recorder.look(READ)
    cue.blur()
    recorder.move(tuple(page.evaluate(TOP_OF_THE_ARC)))
    recorder.look(GLANCE // 2)
    recorder.click()
    recorder.look(GLANCE)
    recorder.move((recorder.at[0] + 90, recorder.at[1] + 150))
    recorder.look(READ)
    page.close()
    return recorder.moments


def written(moments: Sequence[Moment], path: Path) -> None:
    """Write the pictures as one that moves: a GIF, which every page that shows a README knows."""
    pictures = [Image.open(io.BytesIO(moment.picture)).convert("RGB") for moment in moments]
    palette = pictures[-1].quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
    palette.putpalette([255 if value >= PAPER else value for value in palette.getpalette()])
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    durations = [moment.milliseconds for moment in moments]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=False)


def card(browser, address: str) -> Image.Image:
    """Return the card: the name of the course and its translator, in the size that others show."""
    page = opened(browser, address, CARD_SIZE, SCALE, FOR_THE_CARD)
    page.wait_for_timeout(300)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.close()
    return picture.quantize(128, dither=Image.Dither.NONE)


def chromium() -> str:
    """Return the browser to drive.

    Raises:
        FileNotFoundError: if none is installed.
    """
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise FileNotFoundError("no Chromium found: install one, or name it in CHROMIUM")
    return found


@contextlib.contextmanager
def browser() -> Iterator:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and record."""
    parser = argparse.ArgumentParser(description="Record the front page: docs/bank.gif and the card.")
    parser.add_argument("--site", type=Path, default=DOCS.parent / "build" / "site", help="the built site")
    options = parser.parse_args(arguments)
    if not (options.site / "index.html").is_file():
        parser.error(f"--site must be a built site, got {options.site}: make site builds one")
    with served(options.site) as address, browser() as driven:
        moments = loop(driven, address)
        written(moments, LOOP)
        card(driven, address).save(CARD, optimize=True)
    seconds = sum(moment.milliseconds for moment in moments) / 1000
    print(f"{LOOP.name}: {len(moments)} pictures, {seconds:.1f} s, {LOOP.stat().st_size / 1000:.0f} kB")
    print(f"{CARD.name}: {CARD.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    run_command(main)
