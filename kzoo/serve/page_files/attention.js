// The drawing of attention: tables of weights, and pictures under the words that their regions attend to.
"use strict";

const percent = (share) =>
  (share >= 0.0995 || share < 0.0005 ? Math.round(share * 100) : (share * 100).toFixed(1)) + "\u00a0%";

// Scripts whose characters stand upright in vertical text.
const UPRIGHT = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

const FEW = 8; // columns, whose names are written horizontally where there is room
const JOINED = "A “·” joins a piece to the one before it, with no space between them.";

// How rows and columns are named, and the side of the translation whose language they are in.
const numbered = (title) => (names) => names.map((name) => ({ text: name, label: `${title} ${name}` }));
const pieces = (side) => (names) => subwords(names).map((name) => ({ ...name, side }));
const KINDS = {
  encoder_decoder: () => ({
    title: about.attention.includes("bridge") ? "Translation over the bridge’s heads" : "Translation over text",
    note: "One row per piece of the translation: where the decoder looked while it wrote that piece.",
    rows: pieces("target"),
    columns: about.attention.includes("bridge") ? numbered("head") : pieces("source"),
  }),
  bridge: () => ({
    title: "Bridge heads over text",
    note: "One row per head of the bridge: the pieces of the text that it reads.",
    rows: numbered("head"),
    columns: pieces("source"),
  }),
  image: () => ({
    title: "Picture over text",
    note: "One row per region of the picture: the pieces of the text that it attends to.",
    rows: numbered("region"),
    columns: pieces("source"),
  }),
};

// Subwords as they are shown and spoken; those inside a word, and special ones, look different. One that occurs
// again is spoken with its number.
function subwords(pieces) {
  const marked = pieces.some((piece) => piece.startsWith("▁"));
  return pieces.map((piece, i) => {
    if (/^<.+>$/.test(piece)) {
      const text = piece === "</s>" ? "end" : piece.slice(1, -1);
      return { text, label: piece === "</s>" ? "the end" : text, style: "special" };
    }
    const text = piece.replaceAll("▁", "");
    const inner = marked && !piece.startsWith("▁");
    const before = pieces.slice(0, i).filter((other) => other === piece).length;
    // Isolated: a word written from right to left would take the marks and the number after it along.
    const label = `“\u2068${text || "space"}\u2069”` + (before ? ` number ${before + 1}` : "");
    return { text: (inner ? "·" : "") + (text || "▁"), label, style: inner ? "inner" : "" };
  });
}

// The mean of chosen layers and heads: rows × columns.
function chosen(weights, layer, head) {
  const layers = layer === "" ? weights : [weights[layer]];
  const maps = layers.flatMap((heads) => (head === "" ? heads : [heads[head]]));
  return maps[0].map((row, i) => row.map((_, j) => maps.reduce((sum, map) => sum + map[i][j], 0) / maps.length));
}

function range(weights) {
  const all = weights.flat();
  const [least, most] = [Math.min(...all), Math.max(...all)].map(percent);
  return `Weights range from ${least} to ${most}; uniform weights would be ${percent(1 / weights[0].length)}.`;
}

function choice(title, count, redraw) {
  const select = make("select", {}, make("option", { value: "" }, "mean"));
  if (count > 1) for (let i = 0; i < count; i++) select.append(make("option", { value: i }, String(i + 1)));
  select.addEventListener("change", redraw);
  return { select, label: make("label", { hidden: count < 2 }, title, select) };
}

// Draws one kind of attention; `languages` has the codes of the source and the target.
function figure(drawn, shown, languages) {
  const kind = KINDS[drawn.kind]();
  const title = make("h2", {}, kind.title);
  if (!drawn.weights) return make("figure", { "aria-label": kind.title }, make("figcaption", {}, title, make("p", {}, drawn.note)));
  const pictured = Boolean(drawn.grid && shown);
  if (pictured) kind.note = "The clearer a region, the more it attends to the word; the others are dimmed. Below, the word’s share of all attention.";
  const note = make("p");
  const reading = make("p", { className: "reading" });
  const place = make("div", { className: "scroll" });
  const more = make("p", { className: "more", hidden: true, "aria-hidden": true }, "Scroll sideways for the rest →");
  // A fade and a line of text show that a table goes on at the right.
  const fade = () => {
    const rest = place.scrollWidth - place.clientWidth - place.scrollLeft > 4;
    place.classList.toggle("fading", rest);
    more.hidden = place.scrollWidth - place.clientWidth <= 4;
  };
  place.addEventListener("scroll", fade);
  new ResizeObserver(fade).observe(place);
  const layer = choice("Layer", drawn.weights.length, redraw);
  const head = choice("Head", drawn.weights[0].length, redraw);
  const inLanguage = (names) => names.map((name) => ({ ...name, lang: name.side ? languages[name.side] : "en" }));
  const names = { rows: inLanguage(kind.rows(drawn.rows)), columns: inLanguage(kind.columns(drawn.columns)) };
  const joined = [...names.rows, ...names.columns].some(({ style }) => style === "inner");
  function redraw() {
    const weights = chosen(drawn.weights, layer.select.value, head.select.value);
    const read = (text) => { reading.textContent = text; };
    const touch = matchMedia("(pointer: coarse)").matches;
    read(`${touch ? "Touch" : "Point at"} a ${pictured ? "word" : "cell"}${touch ? "" : ", or move with the arrow keys"}.`);
    note.textContent = [kind.note, joined ? JOINED : "", drawn.note, range(weights)].filter(Boolean).join(" ");
    place.replaceChildren(pictured ? wordsOver(weights, names, drawn.grid, shown, read) : heatMap(weights, names, kind, read));
  }
  redraw();
  return make("figure", { "aria-label": kind.title },
    make("figcaption", {}, title, layer.label, head.label, note),
    make("div", { className: "below" }, reading, ...(pictured ? [] : [legend()]), more), place);
}

function legend() {
  return make("span", { className: "legend", "aria-hidden": true }, "0", make("i"), "100 %");
}

function heatMap(weights, { rows, columns }, kind, read) {
  const title = ({ text, style, lang }, properties) =>
    make("th", { className: `${style || ""} ${UPRIGHT.test(text) ? "upright" : ""}`, title: text, lang, ...properties },
      make("span", { dir: "auto" }, text));
  const cells = weights.map((row, i) => row.map((weight, j) => {
    const text = `${rows[i].label} → ${columns[j].label}: ${percent(weight)}`;
    const drawn = cell("td", text, read);
    drawn.style.setProperty("--w", weight);
    return drawn;
  }));
  walk(cells);
  const table = make("table", { role: "grid", "aria-label": kind.title },
    make("thead", {}, make("tr", {}, make("td", { className: "corner" }), ...columns.map((name) => title(name, { scope: "col" })))),
    make("tbody", {}, ...cells.map((row, i) => make("tr", {}, title(rows[i], { scope: "row" }), ...row))));
  table.style.setProperty("--n", columns.length);
  table.classList.toggle("few", columns.length <= FEW);
  return table;
}

// The picture once per word, dimmed where it does not attend to it.
function wordsOver(weights, { columns }, [down, across], shown, read) {
  const shares = columns.map((_, j) => weights.reduce((sum, row) => sum + row[j], 0) / weights.length);
  const most = Math.max(...weights.flat()); // one scale for all words
  const cells = columns.map((name, j) => {
    const regions = weights.map((row) => row[j]);
    const share = shares[j];
    const first = regions.indexOf(Math.max(...regions));
    const text = `${name.label}: ${percent(share)} of the picture’s attention; `
      + `most, ${percent(regions[first])}, from row ${Math.floor(first / across) + 1}, column ${(first % across) + 1}`;
    const bar = make("i");
    bar.style.setProperty("--w", share);
    bar.style.setProperty("--most", Math.max(...shares));
    const word = cell("div", text, read,
      dimmed(shown, regions, most, down, across),
      make("div", { className: "bar" }, bar),
      make("span", { className: name.style || "", lang: name.lang, dir: "auto" }, name.text),
      make("small", {}, percent(share)));
    word.className = "word";
    return word;
  });
  walk([cells]);
  return make("div", { role: "grid", "aria-label": "Picture over text" }, make("div", { className: "words", role: "row" }, ...cells));
}

// A cell to walk to, which reads its text when it is reached.
function cell(tag, text, read, ...content) {
  const made = make(tag, { role: "gridcell", tabIndex: -1, "aria-label": text }, ...content);
  for (const event of ["focus", "pointerenter"]) made.addEventListener(event, () => read(text));
  return made;
}

function canvas(width, height) {
  return make("canvas", { width, height });
}

// A picture, small; null for features.
async function thumbnail(address) {
  const image = await loaded(address);
  if (!image) return null;
  const scale = Math.min(1, 320 / Math.max(image.naturalWidth, image.naturalHeight));
  const small = canvas(Math.ceil(image.naturalWidth * scale), Math.ceil(image.naturalHeight * scale));
  small.getContext("2d").drawImage(image, 0, 0, small.width, small.height);
  return small;
}

function dimmed(shown, regions, most, down, across) {
  const pixels = new ImageData(across, down);
  regions.forEach((weight, i) => pixels.data.set([138, 143, 148, 217 * (1 - weight / most)], 4 * i));
  const veil = canvas(across, down); // a grey that shows on black and on white
  veil.getContext("2d").putImageData(pixels, 0, 0);
  const result = canvas(shown.width, shown.height);
  for (const layer of [shown, veil]) result.getContext("2d").drawImage(layer, 0, 0, shown.width, shown.height);
  return result;
}

// One stop of the Tab key for all cells; the arrow keys move among them.
function walk(cells) {
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -Infinity], End: [0, Infinity] };
  const within = (value, most) => Math.min(Math.max(value, 0), most - 1);
  let stop = cells[0][0];
  stop.tabIndex = 0;
  cells.forEach((row, i) => row.forEach((cell, j) => {
    cell.addEventListener("focus", () => {
      stop.tabIndex = -1;
      stop = cell;
      stop.tabIndex = 0;
    });
    cell.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const next = cells[within(i + step[0], cells.length)];
      next[within(j + step[1], next.length)].focus();
    });
  }));
}

// Shows each character with its bitmap of 22×22 pixels, as the encoder of a glyph model sees it.
function showCharacters(characters, language) {
  $("characters").hidden = !characters.length;
  $("characters").replaceChildren(...(characters.length ? [make("figure", { "aria-label": "Characters" },
    make("figcaption", {}, make("h2", {}, "Characters as the encoder sees them"),
      make("p", {}, "The model reads these bitmaps of 22 × 22 pixels. It has no other knowledge of a character.")),
    make("ul", { className: "glyphs" }, ...characters.map(([name, content]) =>
      make("li", {}, bitmap(atob(content)), make("span", { lang: language }, /^<.+>$/.test(name) ? "unknown" : name)))))] : []));
}

function bitmap(pixels) {
  const side = Math.sqrt(pixels.length);
  const drawn = new ImageData(side, side);
  for (let i = 0; i < pixels.length; i++) drawn.data.fill(pixels.charCodeAt(i) ? 0 : 255, 4 * i, 4 * i + 3).fill(255, 4 * i + 3, 4 * i + 4);
  const result = canvas(side, side);
  result.getContext("2d").putImageData(drawn, 0, 0);
  return result;
}
