"use strict";
// What all pages have in common: faults that show, elements that are made of a document's texts, figures as a person
// reads them. Texts of the document become text nodes, and attributes that hold text, never HTML.

const root = document.documentElement;

function fail(what) {
  root.dataset.state = "failed";
  const place = document.getElementById("failure");
  place.hidden = false;
  place.textContent = `This page could not be drawn: ${what}`;
}
addEventListener("error", (event) => fail(event.message));
addEventListener("securitypolicyviolation", (event) => fail(`its own policy forbids ${event.violatedDirective}`));

const pageDocument = JSON.parse(document.getElementById("document").textContent);
const byId = (id) => document.getElementById(id);

// ---- elements -------------------------------------------------------------------------------------------------------

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}
const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
// One by one: a package may have more steps than a call can have arguments.
function refill(element, children) {
  element.replaceChildren();
  for (const child of children) element.append(child);
}
const percent = (part, whole) => `${whole > 0 ? (100 * part) / whole : 0}%`;

// A number and its unit, which is quieter.
function quantity([number, unit]) {
  return [number, unit ? make("span", { class: "unit" }, unit) : ""];
}
const inWords = ([number, unit]) => (unit ? `${number} ${unit}` : number);

// ---- figures as a person reads them ---------------------------------------------------------------------------------

const unknown = ["–", ""];
const grouped = (value) => value.toLocaleString("en-US");
const short = (value) => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);

function time(us) {
  if (us === null || us === undefined) return unknown;
  return us < 10000 ? [short(us), "µs"] : [short(us / 1000), "ms"];
}
function size(bytes) {
  if (bytes === null || bytes === undefined || bytes < 0) return unknown;
  return bytes < 1e6 ? [(bytes / 1e3).toFixed(1), "kB"] : [(bytes / 1e6).toFixed(2), "MB"];
}
const share = (part) => (part === null || part === undefined ? unknown : [(100 * part).toFixed(1), "%"]);
const times = (ratio) => (ratio === null || ratio === undefined ? unknown : [`${ratio.toFixed(2)}×`, ""]);
const count = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
const sum = (values) => values.reduce((all, value) => all + value, 0);
const most = (values) => values.reduce((largest, value) => Math.max(largest, value), 0);

// ---- what every page has --------------------------------------------------------------------------------------------

function showNotes(place, notes) {
  place.hidden = notes.length === 0;
  place.replaceChildren(...notes.map((note) => make("li", {}, note)));
}

byId("theme").addEventListener("change", () => {
  const theme = byId("theme").value;
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
});

// A page's own script ends with this.
function drawn() {
  if (root.dataset.state === "loading") root.dataset.state = "ready";
}
