// The states of a panel: a table of pieces, and for each setting of the controls the pieces that it is made of.

/** @typedef {{pieces: string[], rows: number[][], at: number[], data: any}} Packed with what a script needs */
/** @typedef {{says: string, alt: string, svg: string, foot: string}} State what a panel shows at one setting */

const PARTS = "\x1e", SAYS = "\x01", ALT = "\x02";

/**
 * Return what a file of states holds; a server may have taken it out of its compression on the way.
 *
 * @param {string} address
 * @returns {Promise<Packed>}
 */
export async function load(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const compressed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  if (!compressed) return JSON.parse(new TextDecoder().decode(bytes));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

/** @param {string} text */
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** @param {Packed} packed @param {number} at */
export const text = (packed, at) => packed.rows[packed.at[at]].map((piece) => packed.pieces[piece]).join("");

/**
 * What is shown at a setting; the picture has no words yet.
 *
 * @param {Packed} packed
 * @param {number} at the setting's number
 * @returns {State}
 */
export function state(packed, at) {
  const [says, alt, svg, foot] = text(packed, at).split(PARTS);
  return { says, alt: alt.replaceAll(SAYS, says), svg, foot };
}

/** The picture of a state, which carries its words. @param {State} shown */
export const picture = ({ svg, alt }) => svg.replace(ALT, () => escaped(alt));

/**
 * The number of a setting among all settings, of which the last control changes fastest.
 *
 * @param {number[]} chosen the number of each control's value
 * @param {number[]} counts how many values each control has
 */
export const numbered = (chosen, counts) => chosen.reduce((sum, at, i) => sum * counts[i] + at, 0);
