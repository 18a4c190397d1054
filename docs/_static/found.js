// What the search has found, on a served site: under each page the sections that have the words, with some words around
// them. A page that was opened from a file may not read others, so there the list of pages is all.
{
  const SECTIONS = 3; // of one page
  const AROUND = 80; // characters on either side of a word
  // Answers stay folded, and what code prints is no sentence.
  const LEFT_OUT = "details, script, style, .headerlink, .cell, div.math, svg, .notebook-links, .course-strip";

  const asked = new URLSearchParams(location.search).get("q") ?? "";
  const patterns = splitQuery(asked)
    .filter((word) => !stopwords.has(word.toLowerCase()))
    .map((word) => new Stemmer().stemWord(word.toLowerCase()).replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/[iy]$/, "[iy]"));
  const anyWord = () => new RegExp(`(?<![\\p{L}\\d])(?:${patterns.join("|")})[\\p{L}\\d]*`, "giu");

  const read = new Map(); // each page once
  const documentOf = (address) => {
    if (!read.has(address))
      read.set(address, fetch(address).then((answer) => answer.text()).then((text) => new DOMParser().parseFromString(text, "text/html")));
    return read.get(address);
  };

  // A section's own text: what stands under its heading, before the next one.
  function textOf(part) {
    const own = part.cloneNode(true);
    for (const gone of own.querySelectorAll(`section, h1, h2, h3, h4, h5, h6, ${LEFT_OUT}`)) gone.remove();
    for (const block of own.querySelectorAll("p, li, td, th, dt, dd")) block.append(" ");
    return plain(own);
  }

  // Without the signs around formulas; a formula that is more than letters is left out.
  function plain(part) {
    for (const formula of part.querySelectorAll("span.math")) {
      const inside = formula.textContent.replace(/^\\\(|\\\)$/g, "");
      formula.textContent = inside.includes("\\") ? "…" : inside;
    }
    return part.textContent.replace(/\s+/g, " ").trim();
  }

  function headingOf(part) {
    const heading = part.querySelector("h1, h2, h3, h4, h5, h6")?.cloneNode(true);
    heading?.querySelector(".headerlink")?.remove();
    return heading ? plain(heading) : "";
  }

  const asTyped = (text) => text.toLowerCase().indexOf(asked.trim().toLowerCase());
  const distinct = (text) => patterns.filter((pattern) => new RegExp(`(?<![\\p{L}\\d])${pattern}`, "iu").test(text)).length;

  // Where in a text most of the words are: as they were typed, or at least near each other.
  function best(text) {
    const places = [...text.matchAll(anyWord())].map((found) => found.index);
    const near = (at) => distinct(text.slice(at, at + 2 * AROUND));
    return asTyped(text) >= 0 ? asTyped(text) : places.reduce((one, other) => (near(other) > near(one) ? other : one), places[0] ?? 0);
  }

  // Some words around a place, those asked for marked.
  function excerpt(text, best) {
    let from = Math.max(0, best - AROUND), to = Math.min(text.length, best + 2 * AROUND);
    if (from) from = text.indexOf(" ", from) + 1;
    if (to < text.length) to = Math.max(text.lastIndexOf(" ", to), best);
    const shown = text.slice(from, to), line = document.createElement("p");
    if (from) line.append("… ");
    let last = 0;
    for (const found of shown.matchAll(anyWord())) {
      const mark = document.createElement("mark");
      mark.textContent = found[0];
      line.append(shown.slice(last, found.index), mark);
      last = found.index + found[0].length;
    }
    line.append(shown.slice(last), to < text.length ? " …" : "");
    return line;
  }

  // The sections with the most of the words, in the order of the page; a definition for an entry of the glossary.
  function sectionsOf(page, fragment) {
    const named = fragment && page.getElementById(decodeURIComponent(fragment));
    if (named?.localName === "dt") return [{ part: named.nextElementSibling, heading: named.firstChild.textContent.trim(), id: fragment }];
    const parts = named ? [named] : [...page.querySelectorAll("article section[id]")];
    const rated = parts.map((part) => {
      const heading = headingOf(part), text = textOf(part);
      return { part, heading, id: part.id, text, words: distinct(`${heading} ${text}`), much: 5 * distinct(heading) + 10 * Number(asTyped(`${heading} ${text}`) >= 0) + [...text.matchAll(anyWord())].length };
    }).filter(({ words, text }) => words && anyWord().test(text));
    const most = Math.max(...rated.map(({ words }) => words));
    const chosen = rated.filter(({ words }) => words === most).sort((a, b) => b.much - a.much).slice(0, SECTIONS);
    return rated.filter((each) => chosen.includes(each));
  }

  async function tell(item) {
    const link = item.querySelector("a"), [address, fragment] = link.href.split("#");
    const page = await documentOf(address.split("?")[0]);
    const list = document.createElement("ul");
    list.className = "found-sections";
    for (const { part, heading, id } of sectionsOf(page, fragment)) {
      const row = document.createElement("li"), to = document.createElement("a");
      to.href = `${address}#${id}`;
      to.textContent = heading;
      const text = textOf(part);
      row.append(to, excerpt(text, part.localName === "dd" ? 0 : best(text)));
      list.append(row);
    }
    if (list.children.length) item.append(list);
  }

  // Pages are read when their place in the list comes into sight.
  if (location.protocol !== "file:" && patterns.length) {
    const seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        tell(target);
      }
    }, { rootMargin: "300px" });
    const watch = () => {
      for (const item of document.querySelectorAll("ul.search > li:not(.kind-object, [data-watched])")) {
        item.dataset.watched = "";
        seen.observe(item);
      }
    };
    watch();
    new MutationObserver(watch).observe(document.querySelector("#search-results"), { childList: true, subtree: true });
  }
}
