// The page of kzoo's server: asks for a translation, shows it, and has attention.js draw its attention.
"use strict";

const $ = (id) => document.getElementById(id);
let about = null;
let picture = null; // the chosen file as a data: address
let choosing = null; // the reading of that file
let pending = null; // what stops the running request: no other is sent meanwhile
let awaiting = null; // what stops the requests for an attention that is being prepared
const LONGEST = 120_000; // milliseconds that an answer may take
const AGAIN = 2000; // milliseconds until something that is being prepared is asked for again
const PATIENCE = 180_000; // ms in which an attention is asked for again

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

/* ---- requests ---- */

async function ask(address, body, stop) {
  const late = AbortSignal.timeout(LONGEST), cut = new AbortController();
  for (const end of [late, stop]) end?.addEventListener("abort", () => cut.abort()); // any() is of 2024
  const { signal } = cut;
  let answer;
  try {
    answer = await fetch(address, body ? {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal,
    } : { signal });
  } catch {
    throw new Error(late.aborted ? "The server takes too long: try again." : "The server cannot be reached.");
  }
  const content = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(content?.error || `The server answers with status ${answer.status}.`);
  if (!content) throw new Error("The server’s answer is incomplete: try again.");
  return content;
}

// Shows an error, at the field that it is about if there is one; or takes it away.
function showError(text, field) {
  $("error").textContent = text;
  $("error").hidden = !text;
  for (const [id, description] of [["text", "hint"], ["file", ""]]) {
    const wrong = $(id) === field;
    $(id).setAttribute("aria-invalid", wrong);
    $(id).setAttribute("aria-describedby", wrong ? "error" : description);
  }
  if (text) $("error").scrollIntoView({ block: "nearest" });
}

function setPending(stop) {
  const value = Boolean(stop);
  pending = stop;
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
  awaiting?.abort();
  awaiting = null;
  const stop = new AbortController();
  setPending(stop);
  const asked = { text: $("text").value, n: Number($("n").value), split_sentences: $("split").checked };
  if (about.languages) {
    asked.source_language = $("from").value;
    asked.target_language = $("to").value;
  }
  if (picture) asked.image = picture.slice(picture.indexOf(",") + 1);
  const thumb = picture && about.attention.includes("image") ? thumbnail(picture) : null;
  const languages = {
    source: asked.source_language || about.source || "",
    target: asked.target_language || about.target || "",
  };
  try {
    const answer = await ask("page/translate", asked, stop.signal);
    const { hypotheses, sentences, attention, low_score: low, unknown_characters: unknown, characters } = answer;
    const shown = await thumb;
    if (stop.signal.aborted) return;
    showHypotheses(hypotheses, languages.target);
    showUnusual(low === null ? [] : sentences.filter(({ score }) => score < low), low);
    showUnknown(unknown);
    showCharacters(characters || [], languages.source);
    $("result").dataset.source = asked.text;
    const draw = (found) => showAttention(found.map((drawn) => figure(drawn, shown, languages)));
    draw(attention);
    if (attention.some(({ preparing }) => preparing)) awaitAttention(asked, draw, attention);
    $("result").scrollIntoView({ block: "nearest" });
  } catch (error) {
    if (stop.signal.aborted) return;
    clear();
    showError(error.message);
  } finally {
    if (pending === stop) setPending(null);
  }
}

// Asks again until the attention is prepared, for three minutes, and draws it; the translation stays as it is.
async function awaitAttention(asked, draw, notes) {
  const stop = awaiting = new AbortController();
  const end = Date.now() + PATIENCE;
  while (Date.now() < end) {
    await new Promise((done) => setTimeout(done, AGAIN));
    if (stop.signal.aborted) break;
    const answer = await ask("page/translate", asked, stop.signal).catch(() => null); // stopped, or failed once
    if (answer && !answer.attention.some(({ preparing }) => preparing)) return draw(answer.attention);
  }
  if (awaiting === stop) draw(notes.map((drawn) => (drawn.preparing ? { ...drawn, note: "Not drawn yet: translate again to see it." } : drawn)));
}

// Stops the running request, whose answer is then not shown.
function stopPending() {
  pending?.abort();
  setPending(null);
}

// Takes away a translation that is not of what the form asks for.
function clear() {
  awaiting?.abort();
  awaiting = null;
  showHypotheses([]);
  showUnusual([]);
  showUnknown("");
  showCharacters([]);
  showAttention([]);
}

function missing(text, element) {
  clear();
  showError(text, element);
  element.focus({ preventScroll: true });
}

// Shows drawings; the focus, if it is in an earlier one, goes to the first new cell.
function showAttention(figures) {
  const focused = $("attention").contains(document.activeElement);
  $("attention").replaceChildren(...figures);
  if (focused) ($("attention").querySelector('[tabindex="0"]') || $("translate")).focus({ preventScroll: true });
}

const scored = (score) => score.toFixed(2).replace("-", "−");

// Names the sentences whose translations score below `low`.
function showUnusual(sentences, low) {
  $("unusual").hidden = !sentences.length;
  $("unusual").textContent = sentences.length ? `Check the translation of ${
    sentences.map(({ text, score }) => `“\u2068${text}\u2069” (score ${scored(score)})`).join(", ")
  }: it may be unlike the model’s training data. 95 % of the validation sentences score above ${scored(low)}.` : "";
}

// Names the characters that the vocabulary lacks.
function showUnknown(characters) {
  $("unknown").hidden = !characters;
  $("unknown").textContent = characters ? `The model does not know ${
    [...characters].map((character) => `“\u2068${character}\u2069”`).join(", ")
  }. A sentence mostly of such characters is copied.` : "";
}

// Shows translations, best first.
function showHypotheses(hypotheses, language) {
  $("result").textContent = hypotheses.length ? hypotheses[0].text : "";
  $("copy").hidden = !$("result").textContent;
  $("copy").textContent = "Copy";
  for (const id of ["result", "hypotheses"]) $(id).lang = language || "";
  $("hypotheses").replaceChildren(...hypotheses.map(({ text, score }) =>
    make("li", {}, make("div", {},
      make("span", { dir: "auto" }, text),
      make("data", { value: score, title: "log-probability with a length penalty" }, scored(score))))));
  $("others").hidden = hypotheses.length < 2;
}

async function copy() {
  try {
    await navigator.clipboard.writeText($("result").textContent);
  } catch { // browsers have no clipboard on pages without HTTPS
    getSelection().selectAllChildren($("result"));
    document.execCommand("copy");
  }
  $("copy").textContent = $("status").textContent = "Copied";
}

/* ---- what the model is ---- */

const row = (tag, cells) => make("tr", {}, ...cells.map((content) => make(tag, {}, content)));

function showCard() {
  const { introduction = [], terms = [], size, licence, scores = [] } = about.card;
  const { tokens, characters } = about.limits;
  const languages = about.languages || [about.source, about.target].filter(Boolean);
  const facts = [
    ["Languages", languages.map(languageName).join(about.languages ? ", " : " → ")],
    ["Size", size],
    ["Licence", licence],
    ["Limits", `${tokens.toLocaleString("en")} subwords a sentence, ${characters.toLocaleString("en")} characters a text`],
  ];
  $("lead").textContent = (introduction[0] || "").replace(/\. .*/, "."); // its first sentence
  const table = scores.length ? [make("table", { className: "scores" },
    make("thead", {}, row("th", ["Test set", "Sentences", "BLEU", "chrF2"])),
    make("tbody", {}, ...scores.map(([name, sentences, bleu, chrf]) =>
      row("td", [name, sentences.toLocaleString("en"), bleu.toFixed(1), chrf.toFixed(1)]))))] : [];
  $("card").replaceChildren(
    make("div", {},
      make("dl", {}, ...facts.filter(([, fact]) => fact).flatMap(([name, fact]) => [make("dt", {}, name), make("dd", {}, fact)])),
      ...[...introduction, ...terms].map((text) => make("p", {}, text)),
      ...(introduction.length ? [make("p", {}, make("a", { href: "page/card" }, "The whole card"))] : [])),
    ...table);
  $("about").hidden = false;
}

// Offers the examples in the chosen language.
function showExamples() {
  const offered = about.examples.filter(({ language }) => language === $("text").lang);
  $("examples").hidden = !offered.length;
  $("examples").replaceChildren("Try", ...offered.map(({ text, language, image }) => {
    const address = image && `data:image/png;base64,${image}`;
    const button = make("button", { type: "button", lang: language, dir: "auto" }, ...(image ? [make("img", { src: address, alt: "" })] : []), text);
    button.addEventListener("click", () => tryExample(text, address));
    return button;
  }));
}

function tryExample(text, address) {
  stopPending();
  $("text").value = text;
  if (address) {
    choosing = null;
    $("file").value = "";
    showPicture(address);
  }
  translate();
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
    showError(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB; the server takes files up to ${(most / 1e6).toFixed(1)} MB.`, $("file"));
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
  const known = read && /,(\/9j\/|iVBORw0KGgo)/.test(read.slice(0, 100)); // how JPEG and PNG files begin
  if (read && shown && !(known && await loaded(read))) wrong = `${file.name} is not a picture that can be shown: choose a JPEG or PNG file.`;
  if ($("file").files[0] !== file) return; // another one was chosen meanwhile
  showError(wrong, wrong ? $("file") : null);
  if (wrong) {
    $("file").value = "";
    return;
  }
  showPicture(read);
}

function showPicture(address) {
  picture = address;
  const shown = about.image === "picture";
  if (shown) $("preview").src = picture;
  $("preview").hidden = !shown;
}

// A picture from an address; null for a file that the browser cannot show.
async function loaded(address) {
  const image = make("img", { src: address });
  return image.decode().then(() => image, () => null);
}

function setLanguages() {
  if (about.languages) {
    for (const [id, own, index] of [["from", about.source, 0], ["to", about.target, 1]]) {
      $(id).replaceChildren(...about.languages.map((code) => make("option", { value: code }, languageName(code))));
      $(id).value = own || about.languages[Math.min(index, about.languages.length - 1)];
      $(id).hidden = false;
    }
    $("swap").hidden = false;
  } else {
    if (about.source) {
      $("from-label").textContent = languageName(about.source);
      $("text").setAttribute("aria-label", `Text, ${languageName(about.source)}`);
    }
    if (about.target) $("to-label").textContent = languageName(about.target);
  }
  nameLanguage();
}

function changeLanguages() {
  stopPending();
  clear();
  nameLanguage();
}

function nameLanguage() {
  $("text").lang = about.languages ? $("from").value : about.source || "";
  showExamples();
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
  showModels();
  $("version").textContent = `version ${about.version} · kzoo`;
  $("score").textContent = about.score;
  showCard();
  setLanguages();
  $("n").replaceChildren();
  for (let n = 1; n <= about.limits.n; n++) $("n").append(make("option", { value: n }, String(n)));
  $("picture").hidden = !about.image;
  const features = about.image === "features";
  $("file-label").textContent = features ? "Features of the picture (.npy)" : "Picture (JPEG or PNG)";
  $("file").accept = features ? ".npy" : "image/jpeg,image/png";
  choosePicture(); // a file that the browser kept over a reload
  showReadiness();
}

// Links to the pages of all models, if there are several.
function showModels() {
  const pages = location.pathname.includes("/pages/") ? "../" : "pages/";
  $("models").hidden = about.models.length < 2;
  $("models").replaceChildren(...about.models.map((name) => name === about.name
    ? make("b", { "aria-current": "page" }, name)
    : make("a", { href: `${pages}${encodeURIComponent(name)}/` }, name)));
}

// Says that the model is being prepared, or cannot be, as long as that is so.
function showReadiness() {
  $("readiness").textContent = about.readiness;
  if (about.readiness) setTimeout(async () => {
    about = await ask("page/about").catch(() => about);
    showReadiness();
  }, AGAIN);
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
  if (event.key === "Escape" && !event.isComposing) stopPending();
});
$("text").addEventListener("input", () => awaiting?.abort());
$("file").addEventListener("change", () => {
  stopPending();
  clear();
  choosePicture();
});
for (const id of ["from", "to"]) $(id).addEventListener("change", changeLanguages);
$("swap").addEventListener("click", () => {
  [$("from").value, $("to").value] = [$("to").value, $("from").value];
  const { textContent, dataset } = $("result");
  // A translation is then translated back, unless something else was written since.
  if (textContent && dataset.source === $("text").value) $("text").value = textContent;
  changeLanguages();
  if (textContent) translate();
});
$("copy").addEventListener("click", copy);
start();
