// Answers questions to the engine of docs/web: JSON on standard input, JSON on standard output.

import { readFileSync } from "node:fs";
import { beamSearch, drawing, grow, likeliest, shaped, uniforms } from "../../docs/web/engine/decoding.js";
import { Run } from "../../docs/web/engine/run.js";
import { Translator } from "../../docs/web/engine/translator.js";
import { fromHalf } from "../../docs/web/engine/weights.js";

const { file, questions } = JSON.parse(readFileSync(0, "utf-8"));

function opened() {
  const { buffer, byteOffset, byteLength } = readFileSync(file);
  return Translator.from(buffer.slice(byteOffset, byteOffset + byteLength));
}

const translator = file && opened();

// Each kind of question: what it is asked with -> what is answered.
const ANSWERS = {
  texts: ({ texts }) => texts.map((text) => translator.translate(text).text),
  beams: ({ texts, ...options }) => texts.map((text) => translator.beam(text, options).ranked[0]),
  look: ({ text, cuts, patches, limit }) => {
    const { logits, memory, run } = translator.translate(text, { cuts, patches, limit });
    return { logits: logits.map((row) => [...row]), memory: memory.map((row) => [...row]), weights: Object.fromEntries(run.weights), outputs: Object.keys(Object.fromEntries(run.outputs)) };
  },
  memory: ({ text }) => translator.model.encode(translator.src.encode(text), new Run()).map((row) => [...row]),
  shaped: ({ logits, temperature, topK, topP }) => [...shaped(Float32Array.from(logits), temperature, topK ?? Infinity, topP)],
  draw: ({ text, seed, ...options }) => {
    const memory = translator.model.encode(translator.src.encode(text));
    return grow(translator.model, memory, drawing({ ...options, uniform: uniforms(seed) }), {}).ids;
  },
  uniforms: ({ seed, count }) => Array.from({ length: count }, uniforms(seed)),
  halves: ({ bits }) => bits.map((each) => String(fromHalf(each))),
  split: ({ texts }) => texts.map((text) => translator.src.split(text)),
};

const answered = questions.map(({ kind, ...asked }) => {
  try {
    return ANSWERS[kind](asked);
  } catch (error) {
    return { error: error.message };
  }
});
process.stdout.write(JSON.stringify(answered, (_, value) => (value instanceof Float32Array ? [...value] : value)));
