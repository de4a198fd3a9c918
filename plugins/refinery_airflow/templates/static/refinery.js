/* Follows the theme of Airflow's web UI, which keeps `light`, `dark` or `system` in localStorage, and draws plots. */

"use strict";

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function themeOfAirflow() {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* storage is closed to this page: the system's theme */ }
  if (chosen === "light" || chosen === "dark") return chosen;
  return systemIsDark.matches ? "dark" : "light";
}

function applyTheme() {
  const theme = themeOfAirflow();
  if (document.documentElement.dataset.theme !== theme) document.documentElement.dataset.theme = theme;
}

/* Airflow's frame lets no page in it open another window: links out of Refinery are followed by the page around it. */
function followOutside(event) {
  const link = event.target.closest("a[data-airflow]");
  if (!link || window.parent === window || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const twin = window.parent.document.createElement("a");
  twin.href = link.href;
  twin.click();
}

applyTheme();
addEventListener("storage", applyTheme);
systemIsDark.addEventListener("change", applyTheme);
document.addEventListener("click", followOutside);

/* --- Waiting: a page that was asked for and is still being made shows nothing in Airflow's frame --- */

function sayWaiting(text) {
  document.querySelector(".waits").textContent = text;
}

addEventListener("beforeunload", () => sayWaiting("The next page is being made ..."));
addEventListener("pageshow", () => sayWaiting("")); // also where the browser goes back to this page as it was left

/* --- Plots: Vega-Lite specs in `data-spec`, drawn in the theme's colors --- */

/* A color of the stylesheet as the browser computes it in this theme; other values as they are. */
function colorOf(value) {
  if (typeof value !== "string" || !value.startsWith("--")) return value;
  const probe = document.body.appendChild(document.createElement("i"));
  probe.hidden = true;
  probe.style.color = `var(${value})`;
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

/* Specs name colors of the stylesheet where a color is due, and nowhere else: data stays as it is. */
function themed(name, value) {
  if (name === "range" && Array.isArray(value)) return value.map(colorOf);
  return name === "color" || name === "fill" || name === "stroke" ? colorOf(value) : value;
}

function configOfTheme() {
  const text = colorOf("--text"), quiet = colorOf("--quiet"), grid = colorOf("--grid");
  const font = getComputedStyle(document.body).fontFamily;
  return {
    background: null, font, padding: 2, view: { stroke: null },
    axis: { labelColor: quiet, titleColor: quiet, titleFontWeight: 500, gridColor: grid, domainColor: grid, tickColor: grid, labelFontSize: 11, titleFontSize: 11, labelSeparation: 8 },
    legend: { labelColor: text, titleColor: quiet, labelFontSize: 11, titleFontSize: 11, symbolType: "square" },
    header: { labelColor: text, titleColor: quiet },
    text: { color: text },
    line: { color: colorOf("--plot-1") }, bar: { color: colorOf("--plot-1") }, point: { color: colorOf("--plot-1") },
    rule: { color: quiet }, range: { category: [1, 2, 3, 4, 5, 6].map((at) => colorOf(`--plot-${at}`)) },
  };
}

async function draw(place) {
  const options = { ast: true, actions: false, defaultStyle: false, renderer: "svg", tooltip: { disableDefaultStyle: true, theme: "page" } };
  if (place.view) place.view.finalize();
  try {
    const { view } = await vegaEmbed(place, JSON.parse(place.dataset.spec, themed), { ...options, config: configOfTheme() });
    place.view = view;
    place.dataset.drawn = "yes";
  } catch (error) {
    place.textContent = `This plot could not be drawn (${error.message}); the table below has its numbers.`;
    place.dataset.drawn = "no";
  }
}

/* What is folded has no width yet: it is drawn as its part opens. */
function drawAll(within) {
  within.querySelectorAll("[data-spec]").forEach((place) => { if (!place.closest("details:not([open])")) draw(place); });
}

function drawOpened(event) {
  if (event.target.open) drawAll(event.target);
}

/* The library is loaded by pages that have a plot alone. */
function loadPlots() {
  if (!document.querySelector("[data-spec]")) return;
  const library = document.createElement("script");
  library.src = document.querySelector("script[data-vega]").dataset.vega;
  library.addEventListener("load", () => {
    drawAll(document);
    document.querySelectorAll("details.fold").forEach((part) => part.addEventListener("toggle", drawOpened));
    new MutationObserver(() => drawAll(document)).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  });
  document.head.append(library);
}

document.addEventListener("DOMContentLoaded", loadPlots);

/* --- Sliders: the same number as the field above, which is the one that is sent --- */

function addSlider(field) {
  const slider = document.createElement("input");
  Object.assign(slider, { type: "range", min: field.min, max: field.dataset.slider, step: "any", value: field.value || 0 });
  slider.setAttribute("aria-label", `${field.labels[0].textContent}, as a slider`);
  const digits = Number(field.dataset.slider) > 20 ? 0 : 2;
  slider.addEventListener("input", () => { field.value = Number(Number(slider.value).toFixed(digits)); });
  field.addEventListener("input", () => { slider.value = field.value || 0; });
  field.after(slider);
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-slider]").forEach(addSlider));

/* --- Copy: a button before what is pasted elsewhere --- */

/* A page that is no secure context, or whose frame may not write to the clipboard, copies what is selected. */
async function copyText(place) {
  const selection = getSelection();
  selection.selectAllChildren(place);
  try {
    await navigator.clipboard.writeText(place.textContent);
  } catch {
    if (!document.execCommand("copy")) return "Selected: copy it with the keyboard";
  }
  selection.removeAllRanges();
  return "Copied";
}

function addCopy(place) {
  const row = document.createElement("p"), button = document.createElement("button"), said = document.createElement("span");
  button.type = "button";
  button.textContent = place.dataset.copy;
  said.setAttribute("role", "status");
  said.className = "quiet small";
  button.addEventListener("click", async () => { said.textContent = await copyText(place); });
  row.append(button, " ", said);
  place.before(row);
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-copy]").forEach(addCopy));

/* --- Keys of a form that judges: each presses the button, follows the link or enters the field that names it --- */

function judgeByKey(event) {
  const form = document.querySelector("form[data-judge]"), box = form && form.querySelector("[data-keys]");
  if (!form || !box.checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input:not([type=checkbox]), select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const wanted = form.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!wanted) return;
  event.preventDefault();
  if (wanted.matches("input")) wanted.focus(); else wanted.click();
}

/* Who switched the keys off finds them so on the next page. */
function keepKeys() {
  const box = document.querySelector("[data-keys]");
  if (!box) return;
  try { box.checked = sessionStorage.getItem("refinery-keys") !== "off"; } catch { /* storage is closed to this page */ }
  box.addEventListener("change", () => {
    try { sessionStorage.setItem("refinery-keys", box.checked ? "on" : "off"); } catch { /* as above */ }
  });
}

document.addEventListener("DOMContentLoaded", keepKeys);
document.addEventListener("keydown", judgeByKey);
