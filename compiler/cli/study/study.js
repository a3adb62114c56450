"use strict";
// Draws the document that `burin study --json` prints.

const study = pageDocument;
const isMeasured = study.source === "measured";
const axisTitles = { batch: "Batch size", channels: "Channels", filter: "Filter", image: "Image", zeros: "Zeros", "input-zeros": "Zeros of the input" };
const hidden = new Set();  // numbers of the algorithms whose curves are switched off

const algorithmOf = (number) => study.algorithms[number];
const memoryOf = (point, ranked) => {
  const { memory } = point.candidates[ranked.candidate];
  return memory === null ? null : memory.total_bytes;
};

// ---- an algorithm's colour and marker -------------------------------------------------------------------------------

const kColours = 8, kReach = 4;  // of a marker, in pixels from its middle
const markers = [
  (r) => `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`,
  (r) => `M${-r} ${-r}H${r}V${r}H${-r}Z`,
  (r) => `M0 ${-r}L${r} ${r}H${-r}Z`,
  (r) => `M0 ${-r}L${r} 0L0 ${r}L${-r} 0Z`,
  (r) => `M0 ${r}L${r} ${-r}H${-r}Z`,
  (r) => `M${-r} ${-r}L${r} ${r}M${-r} ${r}L${r} ${-r}`,
  (r) => `M${-r} 0H${r}M0 ${-r}V${r}`,
];

const seriesClass = (number) => `s${number % kColours}`;
// Colours and markers repeat after unlike numbers of algorithms, so that the two together do not.
function marker(number, x, y) {
  const full = Math.floor(number / markers.length) % 2 === 0 ? "full" : "";
  return draw("path", {
    class: `marker ${full} ${seriesClass(number)}`, d: markers[number % markers.length](kReach),
    transform: `translate(${x} ${y})`,
  });
}
const lineClass = (number) => `series ${seriesClass(number)} ${algorithmOf(number).library ? "library" : ""}`;

function symbol(number, withLine) {
  const width = withLine ? 32 : 12;
  return draw("svg", { class: "symbol", viewBox: `0 0 ${width} 12`, "aria-hidden": "true" },
    withLine ? draw("path", { class: lineClass(number), d: `M0 6H${width}` }) : null, marker(number, width / 2, 6));
}

// ---- summary and rules ----------------------------------------------------------------------------------------------

function figure(title, value, more) {
  return make("div", {}, make("dt", {}, title), make("dd", { class: "value" }, ...value),
    make("dd", { class: "more" }, more));
}

function showSummary() {
  const { base, points } = study;
  const wins = new Map();
  for (const { ranking } of points) {
    if (ranking.length > 0) wins.set(ranking[0].algorithm, (wins.get(ranking[0].algorithm) ?? 0) + 1);
  }
  const [winner, number] = [...wins].sort((a, b) => b[1] - a[1])[0] ?? [null, 0];
  const ofBase = points[0].ranking;
  byId("figures").replaceChildren(
    figure("Layers that were compared", [grouped(study.done)],
      study.done < points.length ? `of ${points.length}: ${study.stopped}` : "around the base layer"),
    figure("Algorithms", [grouped(study.algorithms.length)],
      `${study.algorithms.filter((algorithm) => algorithm.library).length} of them calls of a library`),
    figure("Wins most often", [winner === null ? "–" : algorithmOf(winner).name],
      winner === null ? "nothing was compared" : `for ${number} of ${count(study.done, "layer")}`),
    figure("The base layer", ofBase.length > 0 ? quantity(time(ofBase[0].us)) : ["–"],
      ofBase.length > 0 ? `by ${algorithmOf(ofBase[0].algorithm).name}` : "not compared"),
  );
  const device = isMeasured
    ? `Measured on ${study.device.name} (${study.arch})${study.device.libraries ? `, with ${study.device.libraries}` : ""}. ` +
      "A time is that of a launch in a graph, with code and weights that are cold; candidates of a layer took turns."
    : `Predicted for ${study.arch}.`;
  byId("clock").textContent = `${device} Precision ${study.precision}; ${share(base.zeros).join(" ")} zeros in the base; ` +
    `weights are random, of seed ${study.seed}.`;
  byId("predicted").hidden = isMeasured;
  showNotes(byId("notes"), study.notes);
}

function showRules() {
  const parts = study.curves.map(({ axis }) => {
    const rules = study.rules.filter((rule) => rule.axis === axis);
    if (rules.length === 0) return null;
    return make("div", {}, make("h3", {}, axisTitles[axis]),
      make("ul", {}, ...rules.map((rule) => make("li", { class: "rule" }, rule.text))));
  });
  const shown = parts.filter((part) => part !== null);
  refill(byId("rules"), shown.length > 0 ? shown : [make("p", { class: "muted" }, "There is nothing to read off.")]);
}

// ---- curves ---------------------------------------------------------------------------------------------------------

// Of each algorithm on the curve: its figure at each value; null where it has none.
function seriesOf(curve, figureOf) {
  const all = new Map();
  curve.points.forEach((number, place) => {
    const point = study.points[number];
    for (const ranked of point.ranking) {
      const values = all.get(ranked.algorithm) ?? curve.points.map(() => null);
      values[place] = figureOf(point, ranked);
      all.set(ranked.algorithm, values);
    }
  });
  return new Map([...all].sort((a, b) => a[0] - b[0]));
}

// These steps of each power of ten between the two, which are above 0.
function stepsBetween(low, high, steps) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const step of steps) {
      const tick = step * 10 ** power;
      if (tick >= low && tick <= high) found.push(tick);
    }
  }
  return found;
}

// As many ticks as a reader can use, and no more.
function ticksBetween(low, high) {
  const kFewest = 3, kMost = 9;
  const choices = [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9]].map((steps) => stepsBetween(low, high, steps));
  return choices.find((ticks) => ticks.length >= kFewest && ticks.length <= kMost) ??
    choices.findLast((ticks) => ticks.length <= kMost) ?? choices[0];
}

function drawCurve(svg, curve, series, unitOf) {
  const shown = [...series].filter(([number]) => !hidden.has(number));
  const width = Math.max(260, svg.clientWidth), height = svg.clientHeight;
  const left = 58, right = 14, top = 10, bottom = 26;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const figures = shown.flatMap(([, values]) => values).filter((value) => value !== null && value > 0);
  const title = svg.querySelector("title");
  refill(svg, [title]);
  if (figures.length === 0) {
    svg.append(draw("text", { x: left, y: height / 2 }, "nothing to show"));
    return;
  }
  const low = Math.min(...figures) / 1.15, high = most(figures) * 1.15;
  const y = (value) => top + (height - top - bottom) * (1 - Math.log(value / low) / Math.log(high / low));
  const step = (width - left - right) / curve.points.length;
  const x = (place) => left + step * (place + 0.5);
  for (const tick of ticksBetween(low, high)) {
    svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
      draw("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, inWords(unitOf(tick))));
  }
  curve.points.forEach((number, place) => {
    if (number === 0) svg.append(draw("line", { class: "base", x1: x(place), x2: x(place), y1: top, y2: height - bottom }));
    const value = curve.axis.endsWith("zeros") ? `${Number((100 * curve.values[place]).toFixed(4))} %` : curve.values[place];
    svg.append(draw("text", { x: x(place), y: height - 8, "text-anchor": "middle" }, String(value)));
  });
  for (const [number, values] of shown) {
    let path = "", begun = false;
    values.forEach((value, place) => {
      if (value === null || value <= 0) {
        begun = false;
        return;
      }
      path += `${begun ? "L" : "M"}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
      begun = true;
    });
    svg.append(draw("path", { class: lineClass(number), d: path }));
    values.forEach((value, place) => {
      if (value !== null && value > 0) svg.append(marker(number, x(place), y(value)));
    });
  }
}

function curveText(curve, series, what, unitOf) {
  const parts = [...series].map(([number, values]) => {
    const known = values.filter((value) => value !== null);
    return `${algorithmOf(number).name} from ${inWords(unitOf(Math.min(...known)))} to ${inWords(unitOf(most(known)))}`;
  });
  return `${what} of ${count(series.size, "algorithm")} at ${count(curve.points.length, "value")}: ${parts.join("; ")}. ` +
    "The table below has every figure.";
}

function tableOf(curve, algorithms) {
  const head = make("tr", {}, make("th", { scope: "col" }, axisTitles[curve.axis]),
    ...algorithms.map((number) => make("th", { scope: "col", class: "number" }, symbol(number, false), algorithmOf(number).name)));
  const body = curve.points.map((number, place) => {
    const point = study.points[number];
    const cells = algorithms.map((algorithm) => {
      const rank = point.ranking.findIndex((ranked) => ranked.algorithm === algorithm);
      if (rank < 0) return make("td", { class: "number muted" }, "–");
      const ranked = point.ranking[rank];
      return make("td", { class: rank === 0 ? "number best" : "number" }, ...quantity(time(ranked.us)),
        make("small", {}, inWords(size(memoryOf(point, ranked)))), rank === 0 ? make("small", {}, "fastest") : null);
    });
    const why = point.done ? point.fault : "not measured";
    return make("tr", {}, make("th", { scope: "row" }, curve.texts[place], number === 0 ? " (base)" : null,
      why ? make("small", {}, ` ${why}`) : null), ...cells);
  });
  return make("table", {}, make("caption", { class: "unseen" }, `Time and memory by ${axisTitles[curve.axis].toLowerCase()}`),
    make("thead", {}, head), make("tbody", {}, ...body));
}

const drawings = [];  // what is drawn again when the window or the choice of algorithms changes

function chartOf(curve, kind, figureOf, unitOf) {
  const series = seriesOf(curve, figureOf), id = `${curve.axis}-${kind}`;
  const what = `${isMeasured ? "" : "Predicted "}${kind}`.replace(/^./, (letter) => letter.toUpperCase());
  const svg = draw("svg", { class: "curve", role: "img", "aria-labelledby": id },
    draw("title", { id }, curveText(curve, series, what, unitOf)));
  drawings.push(() => drawCurve(svg, curve, series, unitOf));
  return make("div", { class: "chart" }, make("p", { class: "axis" }, what), svg);
}

function curvePart(curve) {
  const id = `${curve.axis}-title`, title = axisTitles[curve.axis];
  const algorithms = [...seriesOf(curve, (point, ranked) => ranked.us).keys()];
  return make("section", { class: "axis-part", "aria-labelledby": id }, make("h3", { id }, title),
    make("div", { class: "pair" },
      chartOf(curve, "time", (point, ranked) => ranked.us, time),
      chartOf(curve, "memory", memoryOf, size)),
    make("details", {}, make("summary", {}, `${title} as a table`),
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `${title}: every algorithm` },
        tableOf(curve, algorithms))));
}

function redraw() {
  for (const drawing of drawings) drawing();
}

function showCurves() {
  const entries = study.algorithms.map((algorithm, number) => {
    const box = make("input", { type: "checkbox", checked: "" });
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(number);
      else hidden.add(number);
      redraw();
    });
    return make("label", {}, box, symbol(number, true), algorithm.name);
  });
  byId("legend").append(...entries);
  refill(byId("curves"), study.curves.map(curvePart));
  redraw();
}

// ---- maps of winners ------------------------------------------------------------------------------------------------

function mapCell(number) {
  const point = study.points[number], [first, second] = point.ranking;
  if (!first) return make("td", { class: "muted" }, point.done ? point.fault || "no candidate is right" : "not measured");
  const lead = second ? `, the next ${inWords(times(second.us / first.us))}` : ", the only one";
  return make("td", { class: `cell ${seriesClass(first.algorithm)}` }, symbol(first.algorithm, false),
    algorithmOf(first.algorithm).name, make("small", {}, `${inWords(time(first.us))}${lead}`));
}

function showMaps() {
  byId("maps-section").hidden = study.maps.length === 0;
  refill(byId("maps"), study.maps.map((map) => {
    const name = `${axisTitles[map.rows]} by ${axisTitles[map.columns].toLowerCase()}`;
    const head = make("tr", {}, make("th", { scope: "col" }, name),
      ...map.column_texts.map((text) => make("th", { scope: "col" }, text)));
    const body = map.points.map((row, place) =>
      make("tr", {}, make("th", { scope: "row" }, map.row_texts[place]), ...row.map(mapCell)));
    return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Map of winners: ${name}` },
      make("table", { class: "map" }, make("caption", {}, name), make("thead", {}, head), make("tbody", {}, ...body)));
  }));
}

// ---- one layer ------------------------------------------------------------------------------------------------------

function verdictOn(point, index) {
  const candidate = point.candidates[index], fastest = point.ranking[0];
  const us = isMeasured ? candidate.us : candidate.predicted_us;
  if (candidate.fault) return candidate.fault;
  if (index === fastest.candidate) return "the fastest";
  return us === null ? "" : `${(us / fastest.us).toFixed(2)} times the fastest's time`;
}

function showPoint() {
  const point = study.points[Number(byId("point").value)];
  const number = (value) => make("td", { class: "number" }, ...quantity(value));
  const order = point.candidates.map((_, index) => index).sort((a, b) => {
    const us = (index) => point.candidates[index].us ?? (isMeasured ? Infinity : point.candidates[index].predicted_us);
    return us(a) === us(b) ? a - b : us(a) - us(b);
  });
  const rows = order.map((index) => {
    const candidate = point.candidates[index], { memory } = candidate;
    return make("tr", {}, make("th", { scope: "row" }, symbol(candidate.algorithm, false), algorithmOf(candidate.algorithm).name),
      make("td", {}, candidate.plan), number(time(candidate.predicted_us)), number(time(candidate.us)),
      number(size(memory && memory.code_bytes)), number(size(memory && memory.weight_bytes + memory.library_bytes)),
      number(size(memory && memory.workspace_bytes)), make("td", {}, verdictOn(point, index)));
  });
  const why = point.done ? point.fault : "This layer was not measured.";
  refill(byId("candidates").tBodies[0], rows.length > 0 ? rows
    : [make("tr", {}, make("th", { scope: "row" }, "none"), make("td", { colspan: 7 }, why))]);
}

function showPoints() {
  byId("point").replaceChildren(...study.points.map((point, number) =>
    make("option", { value: number }, number === 0 ? `${point.layer.text} (base)` : point.layer.text)));
  byId("point").addEventListener("change", showPoint);
  showPoint();
}

document.title = `${study.base.text} – burin study`;
byId("title").textContent = study.base.text;
byId("about").textContent = `${study.precision}, by burin ${study.tool}`;
showSummary();
showRules();
showCurves();
showMaps();
showPoints();
addEventListener("resize", redraw);
drawn();
