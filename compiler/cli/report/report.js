"use strict";
// Draws the document that `burin report --json` prints.

const report = pageDocument;
const shapeOf = (shape) => shape.join("x");

const sources = {
  network: "measured in the network (burin bench)",
  layer: "measured by itself (burin bench)",
  tuning: "measured when it was tuned",
  model: "predicted by a cost model",
  "": "not known",
};
const isMeasured = (source) => source !== "model" && source !== "";

// ---- what is shown: the programs of one batch size ------------------------------------------------------------------

// A step with all that the table says of it.
function rowOf(program, step, index) {
  const kernel = report.kernels[step.kernel];
  const code = kernel.code_bytes ?? null;
  return {
    program, step, index, kernel,
    us: step.us,
    // Null: there is nothing to compare with, or the kernel itself is the best dense one.
    ratio: step.dense && !step.dense.itself ? step.dense.ratio : null,
    size: code === null && !kernel.weight_bytes ? null : (code ?? 0) + kernel.weight_bytes,
    text: `${step.name} ${step.kind} ${kernel.provider}`.toLowerCase(),
  };
}

function viewOf(batch) {
  const programs = report.programs.filter((program) => program.batch === batch);
  const rows = [];
  for (const program of programs) {
    for (const step of program.steps) rows.push(rowOf(program, step, rows.length));
  }
  return {
    batch, programs, rows,
    // Layers by themselves have no tensors in common.
    whole: report.package.whole_network && programs.length === 1 ? programs[0] : null,
    us: sum(rows.map((row) => row.us ?? 0)),
    clocks: [...new Set(rows.filter((row) => row.us !== null).map(clockOf))],
    slowest: most(rows.map((row) => Math.max(row.us ?? 0, denseOn(row)))),
  };
}

const clockOf = (row) => (isMeasured(row.step.source) ? "measured" : "predicted");

// The dense kernel's time on the scale of the row's own: both have been taken by the same clock, which need not be the
// one that the row shows.
function denseOn(row) {
  return row.ratio !== null && row.us !== null ? row.ratio * row.us : 0;
}

// ---- summary --------------------------------------------------------------------------------------------------------

function figure(title, value, more) {
  return make("div", {}, make("dt", {}, title), make("dd", { class: "value" }, ...value),
    make("dd", { class: "more" }, more));
}

function clockText(view) {
  const counts = new Map();
  for (const row of view.rows) counts.set(row.step.source, (counts.get(row.step.source) ?? 0) + 1);
  const parts = [...counts].map(([source, number]) =>
    `${number} of ${count(view.rows.length, "step")} ${sources[source]}`);
  const where = report.measured_on.length > 0 ? ` Measured on ${report.measured_on.join(", ")}.` : "";
  const help = [...counts.keys()].some(isMeasured) ? ""
    : " Nothing was measured: burin report --bench takes what burin bench --json has written.";
  return `Times: ${parts.join(", ")}.${where}${help}`;
}

function zeros(view) {
  const kernels = new Set(view.rows.map((row) => row.kernel).filter((kernel) => kernel.layer));
  let nonzeros = 0, weights = 0, dense = 0, csr = 0;
  for (const { layer } of kernels) {
    nonzeros += layer.nonzeros;
    weights += layer.weights;
    dense += layer.dense_bytes;
    csr += layer.csr_bytes;
  }
  return { nonzeros, weights, dense, csr, layers: kernels.size };
}

function showSummary(view) {
  const compared = view.rows.filter((row) => row.ratio !== null);
  const own = sum(compared.map((row) => row.us)), dense = sum(compared.map(denseOn));
  const slower = compared.filter((row) => row.ratio < 1).length;
  const slowerText = slower === 0 ? "none is" : `${slower} ${slower === 1 ? "is" : "are"}`;
  const memory = view.programs.map((program) => program.memory);
  const all = (name) => sum(memory.map((part) => part[name] ?? 0));
  const largest = (name) => most(memory.map((part) => part[name] ?? 0));
  const code = all("code_bytes"), weights = all("weight_bytes");
  const arena = largest("arena_bytes"), scratch = largest("scratch_bytes");
  const pruned = zeros(view);
  const latency = view.whole ? view.whole.latency_us : null;
  byId("figures").replaceChildren(
    figure(view.whole ? "All steps, one after the other" : "All layers", quantity(time(view.us)),
      latency !== null ? `the network as one graph: ${inWords(time(latency))}`
        : view.clocks.length === 1 ? view.clocks[0] : "in part measured, in part predicted"),
    figure("Dense kernels for the same steps",
      compared.length > 0 ? [...quantity(times(own > 0 ? dense / own : null)), make("small", {}, " as long")] : ["–"],
      compared.length > 0 ? `${count(compared.length, "step")} compared, ${slowerText} slower than dense`
        : "the package keeps no dense candidate"),
    figure("Zeros in convolutions", pruned.weights > 0 ? quantity(share(1 - pruned.nonzeros / pruned.weights)) : ["–"],
      `${grouped(pruned.nonzeros)} of ${grouped(pruned.weights)} weights are left in ${count(pruned.layers, "layer")}`),
    figure("Memory on the device", quantity(size(code + weights + arena + scratch)),
      [["code", code], ["weights", weights], ["arena", arena], ["scratch", scratch]].filter(([, bytes]) => bytes > 0)
        .map(([name, bytes]) => `${name} ${inWords(size(bytes))}`).join(", ")),
    figure("The same weights otherwise", pruned.weights > 0 ? quantity(size(pruned.dense)) : ["–"],
      pruned.weights > 0 ? `dense, of the convolutions; ${inWords(size(pruned.csr))} as compressed rows`
        : "no convolutions"),
  );
  byId("clock").textContent = clockText(view);
}

// ---- charts over the steps ------------------------------------------------------------------------------------------

function barsOf(row, slowest, along) {
  const bars = [];
  const bar = (name, us) => {
    const element = make("i", { class: name });
    element.style[along] = percent(us, slowest);
    bars.push(element);
  };
  if (denseOn(row) > 0) bar("dense", denseOn(row));
  if (row.us !== null) bar("own", row.us);
  return bars;
}

function rowTitle(row) {
  const dense = row.ratio !== null ? `, dense (${row.step.dense.name}) ${inWords(times(row.ratio))} of that` : "";
  return `${row.index}: ${row.step.name}, ${inWords(time(row.us))}${dense}`;
}

function showTimes(view) {
  byId("time-axis").textContent = `Time of each step; the chart is ${inWords(time(view.slowest))} high`;
  refill(byId("times"), view.rows.map((row) => {
    const place = make("div", { title: rowTitle(row) }, ...barsOf(row, view.slowest, "height"));
    place.addEventListener("click", () => choose(row, true));
    return place;
  }));
  const slowest = [...view.rows].sort(orders.us).slice(0, 3);
  byId("times-text").textContent = `A bar for each of ${count(view.rows.length, "step")}; the table below has the same ` +
    `figures. The slowest: ${slowest.map((row) => `${row.step.name} with ${inWords(time(row.us))}`).join(", ")}.`;
}

// Where each tensor of the arena lies, and from which step to which: blocks of three kinds in turn, so that neighbours
// can be told from each other.
function showArena(view) {
  const program = view.whole;
  const buffers = program ? program.buffers.map((buffer, number) => ({ ...buffer, number })) : [];
  const tensors = buffers.filter((buffer) => buffer.home === "arena" && buffer.first >= 0);
  byId("arena-chart").hidden = tensors.length === 0;
  if (tensors.length === 0) return;
  const steps = program.steps.length, bytes = program.arena_bytes;
  byId("arena-axis").textContent = `Arena: ${inWords(size(bytes))} high; a block is a tensor, as long as it is needed. ` +
    `A buffer for each tensor would take ${inWords(size(program.naive_bytes))}`;
  refill(byId("arena"), tensors.map((tensor, index) => {
    const block = make("i", {
      class: "abc"[index % 3],
      title: `${tensor.tensor}, ${shapeOf(tensor.shape)} ${tensor.format}, ${inWords(size(tensor.bytes))}, ` +
        `steps ${tensor.first} to ${tensor.last}`,
    }, tensor.tensor);
    Object.assign(block.style, {
      left: percent(tensor.first, steps),
      width: percent(tensor.last - tensor.first + 1, steps),
      bottom: percent(tensor.offset, bytes),
      height: percent(tensor.bytes, bytes),
    });
    block.dataset.buffer = tensor.number;
    return block;
  }));
  // All are measured before any is changed, else each would be laid out again.
  const blocks = [...byId("arena").children];
  const low = blocks.map((block) => block.offsetHeight < 13 || block.offsetWidth < 36);
  blocks.forEach((block, index) => block.classList.toggle("low", low[index]));
  byId("arena-text").textContent =
    `${count(tensors.length, "tensor")} in ${inWords(size(bytes))}; the table below says where each lies.`;
  refill(byId("arena-table").tBodies[0], tensors.map((tensor) => make("tr", {},
    make("th", { scope: "row" }, tensor.tensor), make("td", {}, shapeOf(tensor.shape)), make("td", {}, tensor.format),
    ...[tensor.bytes, tensor.offset, tensor.first, tensor.last].map((value) =>
      make("td", { class: "number" }, grouped(value))))));
}

// ---- the network: steps below each other, tensors as lines beside them ----------------------------------------------

// The buffers that steps read and write, each with the rows where that is: from the one that writes it first, or from
// above where it is an input, to the last that needs it.
function linesOf(program) {
  const lines = new Map();
  const use = (place, row, writes) => {
    const line = lines.get(place.buffer) ?? { buffer: place.buffer, from: null, to: 0, lane: 0 };
    if (line.from === null) line.from = writes ? row : -1;
    line.to = row;
    lines.set(place.buffer, line);
  };
  program.steps.forEach((step, row) => {
    for (const place of step.reads) use(place, row, false);
    use(step.writes, row, true);
  });
  return lines;
}

// A tensor goes on where one ends that its step reads, so that a chain is one straight line; else where there is room.
function assignLanes(program, lines) {
  const endOfLane = [];  // the row in which the last line of each lane ends
  const inOrder = [...lines.values()].sort((a, b) => a.from - b.from || a.buffer - b.buffer);
  for (const line of inOrder) {
    const reads = line.from >= 0 ? program.steps[line.from].reads.map((place) => lines.get(place.buffer)) : [];
    const before = reads.find((read) => read.to === line.from && endOfLane[read.lane] === line.from);
    let lane = before ? before.lane : endOfLane.findIndex((end) => end < line.from);
    if (lane < 0) lane = endOfLane.length;
    line.lane = lane;
    endOfLane[lane] = line.to;
  }
  return endOfLane.length;
}

const kPitch = 14, kCurve = 18;  // pixels from a line to the next; from where a curve begins to its step

function showLanes(view) {
  const svg = byId("lanes"), table = byId("steps");
  const inOrder = byId("order").value === "run" && byId("find").value.trim() === "";
  const program = inOrder ? view.whole : null;
  const column = table.tHead.rows[0].cells[0];
  refill(svg, [byId("lanes-text")]);
  svg.toggleAttribute("hidden", !program);
  svg.style.display = program ? "" : "none";
  byId("lanes-hint").hidden = !program;
  column.style.width = column.style.minWidth = program ? "" : "0.5rem";
  if (!program) return;
  const lines = linesOf(program), lanes = assignLanes(program, lines);
  const width = kPitch * (lanes + 1);
  column.style.width = column.style.minWidth = `${width + 6}px`;
  const rows = [...table.tBodies[0].rows].map((row) => ({ top: row.offsetTop, height: row.offsetHeight }));
  const top = rows.length > 0 ? rows[0].top : 0;
  const middle = (row) => (row < 0 ? 4 : rows[row].top - top + rows[row].height / 2);
  svg.style.top = `${top}px`;
  svg.setAttribute("width", width);
  svg.setAttribute("height", rows.length > 0 ? rows.at(-1).top + rows.at(-1).height - top : 0);
  const drawn = [];
  const x = (line) => kPitch * (line.lane + 1);
  for (const line of lines.values()) {
    // A line ends in the step that writes it last, or where the curve begins that leads to its last reader.
    const begin = middle(line.from), writes = program.steps[line.to].writes.buffer === line.buffer;
    const end = Math.max(begin, middle(line.to) - (writes ? 0 : kCurve));
    drawn.push(draw("line", { x1: x(line), y1: begin, x2: x(line), y2: end, "data-buffer": line.buffer }));
  }
  program.steps.forEach((step, row) => {
    const node = x(lines.get(step.writes.buffer));
    for (const place of step.reads) {
      if (place.buffer === step.writes.buffer) continue;
      const from = x(lines.get(place.buffer)), y = middle(row);
      const curve = `M${from} ${y - kCurve}C${from} ${y - 6} ${node} ${y - 14} ${node} ${y}`;
      drawn.push(draw("path", { d: curve, "data-buffer": place.buffer, "data-step": row }));
    }
  });
  program.steps.forEach((step, row) => {
    drawn.push(draw("circle", { cx: x(lines.get(step.writes.buffer)), cy: middle(row), r: 4, "data-step": row }));
  });
  for (const part of drawn) svg.append(part);
  byId("lanes-text").textContent = `${count(program.steps.length, "step")} in the order of a run, and ` +
    `${count(lines.size, "tensor")} between them, in ${count(lanes, "line")} side by side. The details ` +
    "of a step name the tensors that it reads and writes.";
}

const orders = {
  run: (a, b) => a.index - b.index,
  us: (a, b) => (b.us ?? -1) - (a.us ?? -1),
  ratio: (a, b) => (a.ratio ?? Infinity) - (b.ratio ?? Infinity),
  size: (a, b) => (b.size ?? -1) - (a.size ?? -1),
};

const zerosOf = (kernel) => (kernel.layer ? kernel.layer.sparsity : null);
const shareOf = (view, us) => (view.us > 0 && us !== null ? us / view.us : null);

function denseCell(row) {
  if (row.ratio === null) return row.step.dense ? [make("span", { class: "muted" }, "is dense")] : ["–"];
  return [...quantity(times(row.ratio)), row.ratio < 1 ? make("small", {}, "dense wins") : ""];
}

function stepRow(view, row) {
  const { step, kernel } = row;
  const button = make("button", { type: "button", "aria-controls": "details", title: step.name }, step.name);
  button.addEventListener("click", () => choose(row, true));
  const shape = kernel.layer ? kernel.layer.short : `to ${shapeOf(row.program.buffers[step.writes.buffer].shape)}`;
  const about = `${step.kind} ${shape}`;
  const slower = row.ratio !== null && row.ratio < 1;
  return make("tr", { "data-step": row.index },
    make("td", { class: "lanes" }),
    make("td", { class: "number small muted" }, String(row.index)),
    make("th", { scope: "row" }, button, make("small", { title: about }, about)),
    make("td", { class: "number small" }, ...quantity(share(zerosOf(kernel)))),
    make("td", { class: "medium" }, kernel.provider,
      kernel.precision === "fp32" ? "" : make("small", {}, kernel.precision)),
    make("td", { class: "number" }, ...quantity(time(row.us)),
      view.clocks.length > 1 && row.us !== null ? make("small", {}, clockOf(row)) : ""),
    make("td", { class: "bars" }, make("div", { class: "bar" }, ...barsOf(row, view.slowest, "width"))),
    make("td", { class: "number medium" }, ...quantity(share(shareOf(view, row.us)))),
    make("td", { class: slower ? "number small slower" : "number small" }, ...denseCell(row)),
    make("td", { class: "number wide" }, ...quantity(size(row.size))));
}

function showSteps(view) {
  const wanted = byId("find").value.trim().toLowerCase();
  const rows = view.rows.filter((row) => row.text.includes(wanted)).sort(orders[byId("order").value]);
  const table = byId("steps");
  refill(table.tBodies[0], rows.map((row) => stepRow(view, row)));
  byId("found").textContent = wanted === "" ? "" : `${count(rows.length, "step")} of ${view.rows.length} found`;
  byId("time-head").textContent = view.clocks.length === 1 ? `Time, ${view.clocks[0]}` : "Time";
  const us = sum(rows.map((row) => row.us ?? 0));
  const cells = (name, ...children) => make("td", { class: name }, ...children);
  const kernels = [...new Set(rows.map((row) => row.kernel))];
  const bytes = sum(kernels.map((kernel) => (kernel.code_bytes ?? 0) + kernel.weight_bytes));
  table.tFoot.replaceChildren(make("tr", {},
    cells("lanes"), cells("number small"), cells("", count(rows.length, view.whole ? "step" : "layer")),
    cells("number small"), cells("medium"), cells("number", ...quantity(time(us))), cells("bars"),
    cells("number medium", ...quantity(share(shareOf(view, us)))), cells("number small"),
    cells("number wide", ...quantity(size(bytes)))));
  showLanes(view);
  markChosen();
}

// ---- details of a step ----------------------------------------------------------------------------------------------

function facts(pairs) {
  const list = make("dl");
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value.length === 0) continue;
    list.append(make("dt", {}, name), make("dd", {}, ...(Array.isArray(value) ? value : [value])));
  }
  return list;
}

function tensorText(row, place) {
  const tensor = row.program.buffers[place.buffer];
  return `${tensor.tensor} (${shapeOf(tensor.shape)}, ${tensor.format})`;
}

function occupancyText(kernel) {
  const { occupancy } = kernel;
  if (!occupancy) return null;
  return `${inWords(share(occupancy.share))}: ${occupancy.warps} of ${occupancy.most_warps} warps, ` +
    `${count(occupancy.blocks, "block")} of ${count(kernel.threads, "thread")}`;
}

function candidatesTable(row) {
  const { list, tuned, device } = report.candidates[row.step.candidates];
  if (list.length < 2) {
    return make("p", { class: "muted" }, "The package keeps no other candidate.");
  }
  const measured = list.some((candidate) => candidate.measured_us !== null);
  const column = (name, kind = "") => make("th", { scope: "col", class: kind }, name);
  const head = make("tr", {}, column("Candidate"), column("Model", "number"),
    measured ? column("Measured", "number") : "", column("Why"));
  const body = list.map((candidate) => make("tr", {},
    make("th", { scope: "row" }, candidate.provider, candidate.dense ? " (dense)" : "",
      candidate.plan ? make("small", { class: "muted" }, ` ${candidate.plan}`) : ""),
    make("td", { class: "number" }, ...quantity(time(candidate.predicted_us))),
    measured ? make("td", { class: "number" }, ...quantity(time(candidate.measured_us))) : "",
    make("td", {}, candidate.verdict)));
  return make("table", {},
    make("caption", { class: "unseen" }, tuned ? `Measured on ${device}` : "As the cost models compared them"),
    make("thead", {}, head), make("tbody", {}, ...body));
}

function denseText(row) {
  const { dense } = row.step;
  if (!dense) return null;
  if (dense.itself) return "it is the fastest dense kernel among the candidates";
  return `${dense.name}: ${inWords(time(dense.us))} against ${inWords(time(dense.own_us))}, ` +
    `${inWords(times(dense.ratio))}; ${sources[dense.source]}`;
}

// From which share of zero weights on the models expect them to pay.
function weightZerosText(row) {
  const zeros = row.step.weight_zeros;
  if (!zeros) return null;
  return zeros.pays_from === null ? "at no share, by the models" : `${inWords(share(zeros.pays_from))}, by the models`;
}

function detailsOf(view, row) {
  const { step, kernel, program } = row, { layer } = kernel;
  const parts = [
    facts([
      ["Time", `${inWords(time(row.us))}, ${sources[step.source]}`],
      ["Share", row.us === null ? null : inWords(share(shareOf(view, row.us)))],
      ["Against dense", denseText(row)],
      ["cuDNN", step.cudnn.map((figure) =>
        make("div", {}, `${figure.mode} ${inWords(time(figure.us))} (${figure.algorithm})`))],
    ]),
    make("h4", {}, "What it computes"),
    facts([
      ["Operator", step.kind],
      ["Shape", layer ? layer.shape : null],
      ["Zeros", layer ? `${inWords(share(layer.sparsity))}: ${grouped(layer.nonzeros)} of ` +
        `${grouped(layer.weights)} weights are left` : null],
      ["Zeros pay from", weightZerosText(row)],
      ["Dead channels", layer && (layer.dead_inputs || layer.dead_outputs)
        ? `${layer.dead_inputs} of the input, ${layer.dead_outputs} of the output` : null],
      ["Reads", step.reads.map((place) => make("div", {}, tensorText(row, place)))],
      ["Writes", tensorText(row, step.writes)],
      ["Waits for", step.after.length > 0 ? step.after.map((index) => program.steps[index].name).join(", ") : null],
    ]),
    make("h4", {}, "The kernel"),
    facts([
      ["Provider", kernel.provider],
      ["Plan", kernel.plan === kernel.provider ? null : kernel.plan],
      ["Precision", kernel.precision + (kernel.kept_in_fp32 ? `: ${kernel.kept_in_fp32}` : "")],
      ["Symbol", make("span", { class: "code" }, kernel.symbol)],
      ["Edited", kernel.edited ? "a person changed its code" : null],
      ["Code", kernel.code_bytes === undefined ? "not assembled: the package has PTX only"
        : inWords(size(kernel.code_bytes))],
      ["Weights as data", kernel.weight_bytes > 0 ? inWords(size(kernel.weight_bytes))
        : layer ? "none: they are in the code" : null],
      ["Weights otherwise", layer
        ? `${inWords(size(layer.dense_bytes))} dense, ${inWords(size(layer.csr_bytes))} as compressed rows` : null],
      ["Registers", kernel.registers === undefined || kernel.registers < 0 ? null : `${kernel.registers} of a thread, ` +
        (kernel.spill_bytes > 0 ? `${kernel.spill_bytes} bytes spilled` : "none spilled")],
      ["Shared memory", kernel.shared_bytes > 0 ? `${inWords(size(kernel.shared_bytes))} of a block` : null],
      ["Occupancy", occupancyText(kernel)],
      ["Live columns", kernel.live_columns === null ? null : inWords(share(kernel.live_columns))],
      ["Nonzeros among products", kernel.fill === null ? null : inWords(share(kernel.fill))],
    ]),
    make("h4", {}, "Why this one"),
    candidatesTable(row),
  ];
  if (kernel.dumps.length > 0) {
    parts.push(make("h4", {}, "Its stages"),
      make("ul", { class: "files" }, ...kernel.dumps.map((file) =>
        make("li", {}, make("a", { href: file.href }, file.name)))));
  }
  return parts;
}

let view = null, chosen = null;

function markChosen() {
  for (const element of document.querySelectorAll(".chosen")) element.classList.remove("chosen");
  if (chosen === null) return;
  const buffers = new Set([...chosen.step.reads, chosen.step.writes].map((place) => String(place.buffer)));
  for (const element of document.querySelectorAll("#steps [data-step], #lanes circle[data-step]")) {
    element.classList.toggle("chosen", element.dataset.step === String(chosen.index));
  }
  for (const element of document.querySelectorAll("#lanes path")) {
    element.classList.toggle("chosen", element.dataset.step === String(chosen.index));
  }
  if (view.whole) {
    for (const element of document.querySelectorAll("#arena [data-buffer], #lanes line")) {
      element.classList.toggle("chosen", buffers.has(element.dataset.buffer));
    }
  }
  byId("times").children[chosen.index].classList.add("chosen");
}

function choose(row, byPerson) {
  chosen = row;
  const details = byId("details");
  details.hidden = row === null;
  document.querySelector(".network").classList.toggle("open", row !== null);
  if (row !== null) {
    byId("details-title").textContent = `${row.index}: ${row.step.name}`;
    byId("details-body").replaceChildren(...detailsOf(view, row));
    details.scrollTop = 0;
  }
  showLanes(view);  // the table may have become narrower
  markChosen();
  if (byPerson && row !== null) byId("details-title").focus({ preventScroll: true });
}

function closeDetails() {
  if (chosen === null) return;
  const button = document.querySelector(`#steps tr[data-step="${chosen.index}"] button`);
  choose(null);
  if (button) button.focus();
}

// ---- the page -------------------------------------------------------------------------------------------------------

function show(batch) {
  view = viewOf(batch);
  showSummary(view);
  showTimes(view);
  showArena(view);
  byId("network-title").textContent = view.whole ? "The network" : "The layers";
  byId("run-title").textContent = view.whole ? "The run, step by step" : "Layer by layer";
  for (const key of document.querySelectorAll(".dense-key")) key.hidden = view.rows.every((row) => row.ratio === null);
  chosen = null;
  showSteps(view);
  const wide = matchMedia("(min-width: 82rem)").matches;
  const slowest = [...view.rows].sort(orders.us)[0];
  choose(wide && slowest ? slowest : null);
}

function showPackage() {
  const { name, source, tool, bytes } = report.package;
  const archs = [...new Set(report.kernels.map((kernel) => kernel.arch).filter(Boolean))];
  document.title = `${name} – burin report`;
  byId("title").textContent = name;
  byId("about").textContent = `from ${source}, by burin ${tool}; ${inWords(size(bytes))}, ` +
    `${count(report.kernels.length, "kernel")}, ` +
    (archs.length > 0 ? `machine code for ${archs.join(", ")}` : "no machine code");
  showNotes(byId("notes"), report.notes);
}

function showBatches() {
  const batches = [...new Set(report.programs.map((program) => program.batch))].sort((a, b) => a - b);
  const choice = make("select", { id: "batch" },
    ...batches.map((batch) => make("option", { value: batch }, count(batch, "image"))));
  choice.addEventListener("change", () => show(Number(choice.value)));
  byId("page-controls").prepend(make("label", {}, "Batch size ", choice));
  return batches;
}

byId("order").addEventListener("change", () => showSteps(view));
byId("find").addEventListener("input", () => showSteps(view));
byId("close").addEventListener("click", closeDetails);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeDetails();
});
addEventListener("resize", () => showLanes(view));

showPackage();
show(showBatches()[0]);
drawn();
