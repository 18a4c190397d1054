// The attention explorer: one weight is cut, and the translator, which runs here, tells what this does to its translation.

import { logSoftmax } from "../engine/arrays.js";
import { grow } from "../engine/decoding.js";
import { Run } from "../engine/run.js";
import { load } from "../engine/translator.js";

/** @typedef {import("../engine/translator.js").Translator} Translator */
/** @typedef {import("../engine/run.js").Cut} Cut */
/** @typedef {"encoder" | "decoder" | "cross"} Part */
/** @typedef {{sentence: number, part: Part, layer: string, head: string, token: number, cut: number, everywhere: boolean}} Values */
/** @typedef {{text: string, target: number[], writes: string[], names: Record<Part, [string[], string[]]>}} Told */

const WHOLE = "Nothing is cut.";

/** @returns {import("./panels.js").Script} */
export function cutting() {
  /** @type {Promise<Translator> | undefined} */
  let translator;
  return {
    async finish(shown, values, { data }) {
      const chosen = /** @type {Values} */ (values);
      if (!chosen.cut) return shown;
      translator ??= load(new URL("../weights.safetensors", import.meta.url));
      const said = effect(await translator, data.sentences[chosen.sentence - 1], chosen);
      const says = shown.says.replace(WHOLE, () => said);
      return { ...shown, says, alt: shown.alt.replace(WHOLE, () => said) };
    },
  };
}

/**
 * Read a translation as it was written, with connections cut.
 *
 * @param {Translator} translator @param {Told} told @param {Cut[]} cuts
 */
function read(translator, { text, target }, cuts) {
  const run = new Run({ cuts }), memory = translator.model.encode(translator.src.encode(text), run);
  let n = 0;
  const { logits } = grow(translator.model, memory, () => target[n++], { run });
  return { logs: logits.map((row) => logSoftmax(row)), run };
}

/**
 * @param {Translator} translator
 * @param {Told} told
 * @param {Values} values
 */
function effect(translator, told, { part, layer, head, token, cut, everywhere }) {
  const [readers, labels] = told.names[part], query = Math.min(token, readers.length) - 1, key = Math.min(cut, labels.length) - 1;
  const whole = read(translator, told, []);
  const name = part === "encoder" ? `encoder.layers.${Number(layer) - 1}.self_attention` : `decoder.layers.${Number(layer) - 1}.${part === "cross" ? "cross" : "self"}_attention`;
  const grids = /** @type {import("../engine/arrays.js").Row[][]} */ (whole.run.weights.get(name));
  const heads = head === "all" ? grids : [grids[Number(head) - 1]];
  const weight = heads.reduce((sum, rows) => sum + (rows[query][key] ?? 0), 0) / heads.length;
  if (weight === 0) return `It may not read “${labels[key]}” anyway.`;
  const one = { layer: Number(layer) - 1, ...(head === "all" ? {} : { head: Number(head) - 1 }) };
  const gone = read(translator, told, [{ attention: part, query, key, ...(everywhere ? {} : one) }]);
  const change = told.target.reduce((sum, id, t) => sum + gone.logs[t][id] - whole.logs[t][id], 0);
  const lost = told.target.flatMap((id, t) => (gone.logs[t].indexOf(Math.max(...gone.logs[t])) === id ? [] : [`“${told.writes[t]}”`]));
  const share = weight.toFixed(2), where = everywhere ? " in all layers and heads" : "";
  const by = `${change < -0.005 ? "-" : "+"}${Math.abs(change).toFixed(2)}`;
  return `Cut “${labels[key]}” (${share})${where}: ln P of the translation changes by ${by}; no longer the likeliest: ${lost.join(", ") || "no word"}.`;
}
