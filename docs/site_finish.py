"""What Sphinx's pages still lack: a description and a face for whoever links to them, and less to load.

A site that is told its address, SITE_URL, also gets full addresses in what it says of its pages, and a sitemap.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from pathlib import Path
from urllib.parse import urljoin

VIEWPORT = re.compile(r'\s*<meta name="viewport"[^>]*>')
ICONS = re.compile(r"\s*<!-- So that users can add custom icons -->\s*<script[^>]*fontawesome\.js[^>]*></script>")
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
ARTICLE = re.compile(r"<article\b.*?</article>", re.DOTALL)
PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
FORMULA = re.compile(r'<span class="math[^>]*>.*?</span>', re.DOTALL)
PICTURE = re.compile(r'<img\b(?:[^>"]|"[^"]*")*?\ssrc="data:image/(png|jpeg);base64,[^"]*"(?:[^>"]|"[^"]*")*>')
DATA = re.compile(r'src="data:image/\w+;base64,([^"]*)"')
NOTEBOOK = re.compile(r"notebooks/(\d\d|A)_")
PICTURES = "_images"  # the folder of what was inside of pages
LONGEST = 200  # characters of a description
CARD = "_static/card.png"  # the picture that others show beside a link

NOT_FOUND = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>No such page</title>
<style>:root {{ color-scheme: light dark; }}
body {{ font: 18px/1.6 system-ui, sans-serif; max-width: 34rem; margin: 15vh auto; padding: 0 1rem; }}</style>
</head><body><h1>Nothing attends to this address</h1>
<p>There is no such page here, or no longer. <a href="{home}">The course begins here</a>, and
<a href="{search}">the search</a> knows its words.</p></body></html>
"""


def finish(pages: Path, address: str = "") -> None:
    """Mend every page of a built site, and add the page for addresses that lead nowhere.

    Args:
        pages: the site's folder. address: where it will be, such as "https://example.org/course/"; may be unknown.
    """
    address = address and address.rstrip("/") + "/"
    names = sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.html") if "_static" not in path.parts)
    for name in names:
        path = pages / name
        page = finished(path.read_text("utf-8"), name, address)
        path.write_text(with_pictures_beside(page, name, pages), encoding="utf-8")
    home, search = (urljoin(address, name) if address else name for name in ("index.html", "search.html"))
    (pages / "404.html").write_text(NOT_FOUND.format(home=home, search=search), encoding="utf-8")
    if address:
        urls = "\n".join(f"<url><loc>{html.escape(urljoin(address, name))}</loc></url>" for name in names)
        (pages / "sitemap.xml").write_text(SITEMAP.format(urls=urls), encoding="utf-8")
    index = pages / "searchindex.js"
    if index.is_file():
        index.write_text(numbered(index.read_text("utf-8")), encoding="utf-8")
    for unused in {*pages.glob("_static/**/*.map"), *pages.glob("_static/scripts/fontawesome.js*")}:
        unused.unlink()


SITEMAP = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{urls}
</urlset>
"""


def numbered(index: str) -> str:
    """Return the search's index with the number of each notebook before its title, as in "04 · Why divide …"."""
    head, tail = "Search.setIndex(", ")"
    made = json.loads(index.removeprefix(head).removesuffix(tail))
    numbers = {at: found[1] for at, name in enumerate(made["docnames"]) if (found := NOTEBOOK.match(name))}
    made["titles"] = [f"{numbers[at]} · {title}" if at in numbers else title for at, title in enumerate(made["titles"])]
    titles: dict[str, list] = {}
    for title, places in made["alltitles"].items():
        for page, place in places:  # without a place: the title of a page
            name = f"{numbers[page]} · {title}" if place is None and page in numbers else title
            titles.setdefault(name, []).append([page, place])
    made["alltitles"] = titles
    return head + json.dumps(made, ensure_ascii=False, separators=(",", ":")) + tail


def finished(page: str, name: str, address: str) -> str:
    """Return a page with one viewport, without the script of all icons, and with what is said of it elsewhere."""
    page = ICONS.sub("", VIEWPORT.sub("", page))
    said = ['<meta name="viewport" content="width=device-width, initial-scale=1">', *described(page, name, address)]
    return page.replace("</title>", "</title>\n    " + "\n    ".join(said), 1)


def with_pictures_beside(page: str, name: str, pages: Path) -> str:
    """Return a page whose pictures are files of their own, which load when they come into sight; write these files."""
    (pages / PICTURES).mkdir(exist_ok=True)

    def beside(found: re.Match) -> str:
        content = base64.b64decode(DATA.search(found[0])[1])
        file = pages / PICTURES / f"{hashlib.sha256(content).hexdigest()[:20]}.{found[1]}"
        file.write_bytes(content)
        source = os.path.relpath(file, (pages / name).parent).replace(os.sep, "/")
        return DATA.sub(f'src="{source}" loading="lazy"', found[0])

    return PICTURE.sub(beside, page)


def described(page: str, name: str, address: str) -> list[str]:
    """Return the tags that tell others what a page is about."""
    title = html.unescape(TITLE.search(page)[1]).replace(" \N{EM DASH} The Transformer", "")
    told = {"og:title": title, "og:type": "website", "twitter:card": "summary"}
    if about := description(page):
        told |= {"description": about, "og:description": about}
    if address:
        told |= {"og:url": urljoin(address, name), "og:image": urljoin(address, CARD)}
        told["twitter:card"] = "summary_large_image"
    kinds = {key: "property" if key.startswith("og:") else "name" for key in told}
    return [f'<meta {kinds[key]}="{key}" content="{html.escape(value)}">' for key, value in told.items()]


def description(page: str) -> str:
    """Return the first paragraph of a page that is a sentence, up to LONGEST characters; "" without one."""
    article = ARTICLE.search(page)
    for paragraph in PARAGRAPH.finditer(article[0]) if article else ():
        if FORMULA.search(paragraph[1]):
            continue
        text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", paragraph[1])).split())
        if len(text) > 60:
            return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"
    return ""
