// The picture of what one word reads: arcs above the sentence, as thick as the attention is strong.

const NS = "http://www.w3.org/2000/svg";
const LOUD = 0.3; // from here on a connection is drawn as strong

/**
 * @param {string} kind
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} inside
 */
export function svg(kind, attributes, ...inside) {
  const made = document.createElementNS(NS, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...inside);
  return made;
}

/**
 * Draw the arcs of one reader into an <svg> that lies above the words.
 *
 * @param {SVGSVGElement} picture
 * @param {{middles: number[], width: number, reader: number, weights: number[], isCut: (key: number) => boolean,
 *   toggle: (key: number) => void}} shown middles: of the words, in pixels from the left
 */
export function drawArcs(picture, { middles, width, reader, weights, isCut, toggle }) {
  const height = 96, from = middles[reader], farthest = Math.max(...middles.map((x) => Math.abs(x - from)), 1);
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.style.width = `${width}px`;
  picture.replaceChildren(
    ...middles.flatMap((to, key) => {
      const gone = isCut(key);
      if (key === reader || (weights[key] < 0.02 && !gone)) return [];
      const top = height - 18 - (height - 24) * (Math.abs(to - from) / farthest);
      const d = `M${from} ${height}C${from} ${top} ${to} ${top} ${to} ${height}`;
      const kind = gone ? "gone" : weights[key] >= LOUD ? "loud" : "soft";
      const line = svg("path", { d, class: kind, "stroke-width": gone ? 2 : (1 + 7 * weights[key]).toFixed(1) });
      const wide = svg("path", { d, class: "catch" }); // what a finger or a mouse can hit
      const cross = gone ? [svg("text", { x: (from + to) / 2, y: height - 0.75 * (height - top) + 5 }, "✕")] : [];
      const arc = svg("g", {}, line, ...cross, wide);
      arc.addEventListener("click", () => toggle(key));
      return [arc];
    }),
  );
}
