// The page of kzoo's server: asks for a translation, shows it, draws its attention.
"use strict";

const $ = (id) => document.getElementById(id);
let about = null;
let picture = null; // the chosen file as a data: address
let choosing = null; // the reading of that file
let pending = false; // a request is running: no other is sent meanwhile

// An element with properties, and texts or elements in it. Text is never read as HTML.
function make(tag, properties = {}, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...content);
  return element;
}

const languageNames = new Intl.DisplayNames(["en"], { type: "language" });
function languageName(code) {
  try {
    return languageNames.of(code);
  } catch {
    return code; // a code of the preset's own
  }
}

const percent = (share) =>
  (share >= 0.0995 || share < 0.0005 ? Math.round(share * 100) : (share * 100).toFixed(1)) + "\u00a0%";

/* ---- requests ---- */

async function ask(address, body) {
  let answer;
  try {
    answer = await fetch(address, body && {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error("The server cannot be reached.");
  }
  const content = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(content?.error || `The server answers with status ${answer.status}.`);
  if (!content) throw new Error("The server’s answer is incomplete: try again.");
  return content;
}

function showError(text) {
  $("error").textContent = text;
  $("error").hidden = !text;
}

function setPending(value) {
  pending = value;
  $("translate").setAttribute("aria-disabled", value);
  $("translate").textContent = value ? "Translating …" : "Translate";
  $("progress").hidden = !value;
  $("status").textContent = value ? "Translating …" : "";
  $("result").setAttribute("aria-busy", value);
}

async function translate() {
  if (!about) await start(); // the server could not be reached before
  await choosing;
  if (pending || !about) return;
  if (!$("text").value.trim()) return missing("Write a sentence first.", $("text"));
  if (about.image && !picture) return missing("Choose a picture first: this model reads one with every sentence.", $("file"));
  showError("");
  setPending(true);
  const asked = { text: $("text").value, n: Number($("n").value) };
  if (about.languages) {
    asked.source_language = $("from").value;
    asked.target_language = $("to").value;
  }
  if (picture) asked.image = picture.slice(picture.indexOf(",") + 1);
  const thumb = picture && about.attention.includes("image") ? thumbnail(picture) : null;
  try {
    const { hypotheses, attention } = await ask("page/translate", asked);
    showHypotheses(hypotheses, asked.target_language || about.target);
    const shown = await thumb;
    $("attention").replaceChildren(...attention.map((drawn) => figure(drawn, shown)));
  } catch (error) {
    showError(error.message);
    showHypotheses([]);
    $("attention").replaceChildren();
  } finally {
    setPending(false);
  }
}

function missing(text, element) {
  showError(text);
  element.focus();
}

function showHypotheses(hypotheses, language) {
  $("result").textContent = hypotheses.length ? hypotheses[0].text : "";
  for (const id of ["result", "hypotheses"]) $(id).lang = language || "";
  $("hypotheses").replaceChildren(...hypotheses.map(({ text, score }) =>
    make("li", {}, make("div", {},
      make("span", { dir: "auto" }, text),
      make("data", { value: score, title: "log-probability over length" }, score.toFixed(2).replace("-", "−"))))));
  $("others").hidden = hypotheses.length < 2;
}

/* ---- attention ---- */

const ofText = { title: "text", names: subwords };
const numbered = (title) => ({ title, names: (names) => names.map((name) => ({ text: name, said: `${title} ${name}` })) });
const KINDS = {
  encoder_decoder: () => ({
    title: about.attention.includes("bridge") ? "Translation over the bridge’s heads" : "Translation over text",
    note: "One row per piece of the translation: where the decoder looked while it wrote that piece.",
    rows: ofText,
    columns: about.attention.includes("bridge") ? numbered("head") : ofText,
  }),
  bridge: () => ({
    title: "Bridge heads over text",
    note: "One row per head of the bridge: the pieces of the text that it reads.",
    rows: numbered("head"),
    columns: ofText,
  }),
  image: () => ({
    title: "Picture over text",
    note: "One row per region of the picture: the pieces of the text that it attends to.",
    rows: numbered("region"),
    columns: ofText,
  }),
};

// Subwords as they are shown and spoken; those inside a word, and special ones, look different.
function subwords(pieces) {
  const marked = pieces.some((piece) => piece.startsWith("▁"));
  return pieces.map((piece) => {
    if (/^<.+>$/.test(piece)) {
      const text = piece === "</s>" ? "end" : piece.slice(1, -1);
      return { text, said: piece === "</s>" ? "the end" : text, style: "special" };
    }
    const text = piece.replaceAll("▁", "");
    const inner = marked && !piece.startsWith("▁");
    return { text: (inner ? "·" : "") + (text || "▁"), said: `“${text || "space"}”`, style: inner ? "inner" : "" };
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

function figure(drawn, shown) {
  const kind = KINDS[drawn.kind]();
  const title = make("h2", {}, kind.title);
  if (!drawn.weights) return make("figure", {}, make("figcaption", {}, title, make("p", {}, drawn.note)));
  const pictured = Boolean(drawn.grid && shown);
  if (pictured) kind.note = "The lighter a region, the more it attends to the word; the bar is the word’s total share.";
  const note = make("p");
  const reading = make("p", { className: "reading" });
  const place = make("div", { className: "scroll" });
  const layer = choice("Layer", drawn.weights.length, redraw);
  const head = choice("Head", drawn.weights[0].length, redraw);
  const names = { rows: kind.rows.names(drawn.rows), columns: kind.columns.names(drawn.columns) };
  function redraw() {
    const weights = chosen(drawn.weights, layer.select.value, head.select.value);
    const read = (text) => { reading.textContent = text; };
    read(`Point at a ${pictured ? "word" : "cell"}, or move with the arrow keys.`);
    note.textContent = [kind.note, drawn.note, range(weights)].join(" ");
    place.replaceChildren(pictured ? wordsOver(weights, names, drawn.grid, shown, read) : heatMap(weights, names, kind, read));
  }
  redraw();
  return make("figure", {},
    make("figcaption", {}, title, layer.label, head.label, note),
    make("div", { className: "below" }, reading, ...(pictured ? [] : [legend()])), place);
}

function legend() {
  return make("span", { className: "legend", "aria-hidden": true }, "0", make("i"), "100 %");
}

function heatMap(weights, { rows, columns }, kind, read) {
  const title = ({ text, style }, properties) => make("th", { className: style || "", title: text, ...properties }, make("span", {}, text));
  const cells = weights.map((row, i) => row.map((weight, j) => {
    const text = `${rows[i].said} → ${columns[j].said}: ${percent(weight)}`;
    const cell = make("td", { role: "gridcell", "aria-label": text, tabIndex: -1 });
    cell.style.setProperty("--w", weight);
    for (const event of ["focus", "pointerenter"]) cell.addEventListener(event, () => read(text));
    return cell;
  }));
  walk(cells);
  const table = make("table", { role: "grid", "aria-label": kind.title },
    make("thead", {}, make("tr", {}, make("td", { className: "corner" }), ...columns.map((name) => title(name, { scope: "col" })))),
    make("tbody", {}, ...cells.map((row, i) => make("tr", {}, title(rows[i], { scope: "row" }), ...row))));
  table.style.setProperty("--n", columns.length);
  return table;
}

// The picture once per word, dark where it attends to other words.
function wordsOver(weights, { columns }, [down, across], shown, read) {
  const shares = columns.map((_, j) => weights.reduce((sum, row) => sum + row[j], 0) / weights.length);
  const cells = columns.map((name, j) => {
    const regions = weights.map((row) => row[j]);
    const share = shares[j];
    const text = `${name.said}: ${percent(share)} of the picture’s attention`;
    const bar = make("i");
    bar.style.setProperty("--w", share);
    bar.style.setProperty("--most", Math.max(...shares));
    const cell = make("div", { className: "word", role: "gridcell", tabIndex: -1, "aria-label": text },
      shaded(shown, regions, down, across),
      make("div", { className: "bar" }, bar),
      make("span", { className: name.style || "" }, name.text));
    for (const event of ["focus", "pointerenter"]) cell.addEventListener(event, () => read(text));
    return cell;
  });
  walk([cells]);
  return make("div", { role: "grid", "aria-label": "Picture over text" }, make("div", { className: "words", role: "row" }, ...cells));
}

function canvas(width, height) {
  return make("canvas", { width, height });
}

// A picture from an address; null for a file that the browser cannot show.
async function loaded(address) {
  const image = make("img", { src: address });
  return image.decode().then(() => image, () => null);
}

// A picture, small; null for features.
async function thumbnail(address) {
  const image = await loaded(address);
  if (!image) return null;
  const scale = Math.min(1, 320 / image.naturalWidth);
  const small = canvas(Math.ceil(image.naturalWidth * scale), Math.ceil(image.naturalHeight * scale));
  small.getContext("2d").drawImage(image, 0, 0, small.width, small.height);
  return small;
}

function shaded(shown, regions, down, across) {
  const most = Math.max(...regions) || 1;
  const pixels = new ImageData(across, down);
  regions.forEach((weight, i) => pixels.data.set([8, 12, 16, 215 * (1 - weight / most)], 4 * i));
  const shade = canvas(across, down);
  shade.getContext("2d").putImageData(pixels, 0, 0);
  const result = canvas(shown.width, shown.height);
  for (const layer of [shown, shade]) result.getContext("2d").drawImage(layer, 0, 0, shown.width, shown.height);
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

/* ---- the form ---- */

function choosePicture() {
  choosing = readPicture();
}

async function readPicture() {
  const [file] = $("file").files;
  picture = null;
  $("preview").hidden = true;
  if (!file) return;
  const most = Math.floor(about.limits.body * 0.74); // base64 takes four characters for three bytes
  if (file.size > most) {
    $("file").value = "";
    showError(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB; the server takes files up to ${(most / 1e6).toFixed(1)} MB.`);
    return;
  }
  const read = await new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => done(null);
    reader.readAsDataURL(file);
  });
  const shown = about.image === "picture";
  let wrong = read ? "" : `${file.name} cannot be read.`;
  if (read && shown && !(await loaded(read))) wrong = `${file.name} is not a picture that can be shown: choose a JPEG or PNG file.`;
  if ($("file").files[0] !== file) return; // another one was chosen meanwhile
  showError(wrong);
  if (wrong) {
    $("file").value = "";
    return;
  }
  picture = read;
  if (shown) $("preview").src = picture;
  $("preview").hidden = !shown;
}

function setLanguages() {
  if (about.languages) {
    for (const [id, index] of [["from", 0], ["to", 1]]) {
      $(id).replaceChildren(...about.languages.map((code) => make("option", { value: code }, languageName(code))));
      $(id).value = about.languages[Math.min(index, about.languages.length - 1)];
      $(id).hidden = false;
    }
    $("swap").hidden = false;
  } else {
    if (about.source) $("from-label").textContent = languageName(about.source);
    if (about.target) $("to-label").textContent = languageName(about.target);
  }
  nameLanguage();
}

function nameLanguage() {
  $("text").lang = about.languages ? $("from").value : about.source || "";
}

async function start() {
  try {
    about = await ask("page/about");
  } catch (error) {
    showError(error.message);
    return;
  }
  document.title = `${about.name} · kzoo`;
  $("name").setAttribute("aria-label", about.name); // without the places where it may break
  $("name").replaceChildren(...about.name.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]));
  $("version").textContent = `version ${about.version} · kzoo`;
  setLanguages();
  $("n").replaceChildren();
  for (let n = 1; n <= about.limits.n; n++) $("n").append(make("option", { value: n }, String(n)));
  $("picture").hidden = !about.image;
  const features = about.image === "features";
  $("file-label").textContent = features ? "Features of the picture (.npy)" : "Picture (JPEG or PNG)";
  $("file").accept = features ? ".npy" : "image/jpeg,image/png";
  choosePicture(); // a file that the browser kept over a reload
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  translate();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    translate();
  }
});
$("file").addEventListener("change", choosePicture);
$("from").addEventListener("change", nameLanguage);
$("swap").addEventListener("click", () => {
  [$("from").value, $("to").value] = [$("to").value, $("from").value];
  nameLanguage();
});
start();
