"use strict";
// Live SVG charts: axes, curves, and the values at a place chosen by pointer, touch or arrow keys.
const MARGIN = { left: 52, right: 10, top: 8, bottom: 40 };

function draw(name, attributes, parent, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}

function html(name, className, parent, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}

// Two significant digits and no leading zero, as in the text.
function short(value) {
  if (value === null || !isFinite(value)) return "?";
  const digits = value ? Math.max(0, 1 - Math.floor(Math.log10(Math.abs(value)))) : 2;
  return value.toFixed(Math.min(digits, 8)).replace(/^(-?)0\./, "$1.");
}

const percent = (share) => `${(100 * share).toFixed(0)} %`;

function scale([low, high], [from, to], log) {
  const f = log ? Math.log : (x) => x;
  const a = f(low), b = f(high) === a ? a + 1 : f(high);
  const at = (value) => from + ((f(value) - a) / (b - a)) * (to - from);
  at.inverse = (place) => {
    const x = a + ((place - from) / (to - from)) * (b - a);
    return log ? Math.exp(x) : x;
  };
  return Object.assign(at, { low, high, log });
}

const FEWEST_TICKS = 3; // with fewer a reader cannot tell the scale

function ticks(low, high, most, log) {
  if (log && high / low > 3) {
    for (const mantissas of [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
      const found = [];
      for (let d = Math.floor(Math.log10(low)); d <= Math.log10(high); d++)
        for (const m of mantissas) found.push(m * 10 ** d);
      const inside = found.filter((t) => t >= low * 0.9999 && t <= high * 1.0001);
      if (inside.length <= most) return inside;
    }
  }
  const span = high - low, rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  const steps = [1, 2, 2.5, 5, 10].map((m) => m * power);
  const first = steps.findIndex((s) => span / s <= most);
  let found = [];
  for (const step of [...steps.slice(0, first + 1).reverse(), power / 2, power / 5]) {
    found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
    if (found.length >= FEWEST_TICKS) break;
  }
  return found;
}

const plain = (value) => String(parseFloat(value.toPrecision(4)));

// An SVG with axes in `holder`: {svg, x, y, width, height}.
function frame(holder, { height, x, y, xlog, xlabel, ylabel, ytext, label }) {
  if (!(x[1] > x[0])) x = [x[0] - 0.5, x[0] + 0.5];
  if (!(y[1] > y[0])) y = [y[0] - 0.5, y[0] + 0.5];
  const width = Math.max(holder.clientWidth, 180);
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": label }, holder);
  const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
  const sx = scale(x, [MARGIN.left, right], xlog), sy = scale(y, [bottom, MARGIN.top]);
  for (const tick of ticks(...x, Math.max(FEWEST_TICKS, Math.floor(width / 75)), xlog)) {
    draw("line", { class: "grid", x1: sx(tick), x2: sx(tick), y1: MARGIN.top, y2: bottom }, svg);
    draw("text", { x: sx(tick), y: bottom + 15, "text-anchor": "middle" }, svg, plain(tick));
  }
  for (const tick of ticks(...y, Math.max(FEWEST_TICKS, Math.floor(height / 45)))) {
    draw("line", { class: "grid", x1: MARGIN.left, x2: right, y1: sy(tick), y2: sy(tick) }, svg);
    const text = (ytext || plain)(tick);
    draw("text", { x: MARGIN.left - 6, y: sy(tick) + 4, "text-anchor": "end" }, svg, text);
  }
  draw("line", { class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }, svg);
  if (xlabel) draw("text", { x: (MARGIN.left + right) / 2, y: height - 6, "text-anchor": "middle" }, svg, xlabel);
  if (ylabel) draw("text", { x: 0, y: 0, "text-anchor": "middle",
    transform: `translate(12 ${(MARGIN.top + bottom) / 2}) rotate(-90)` }, svg, ylabel);
  return { svg, x: sx, y: sy, right, bottom };
}

const points = (plot, xs, ys) => xs.map((x, i) => `${plot.x(x).toFixed(1)},${plot.y(ys[i]).toFixed(1)}`);

function curve(plot, xs, ys, look) {
  return draw("polyline", { class: "curve", points: points(plot, xs, ys).join(" "),
    style: `--look:${look.color}`, "stroke-width": look.width,
    "stroke-dasharray": look.dash }, plot.svg);
}

function band(plot, upper, lower) {
  draw("polygon", { class: "band", points: [...upper, ...lower.reverse()].join(" ") }, plot.svg);
}

function sample(look) {
  const svg = draw("svg", { width: 22, height: 8, "aria-hidden": "true" });
  draw("line", { class: "line", x1: 0, x2: 22, y1: 4, y2: 4, "stroke-width": look.width,
    "stroke-dasharray": look.dash, style: `--look:${look.color}` }, svg);
  return svg;
}

// Call `show(x)` for the place that pointer, finger or keys choose, `show(null)` when they leave.
function reading(plot, show) {
  const { svg, x } = plot;
  const line = draw("line", { class: "cursor", y1: MARGIN.top, y2: plot.bottom, visibility: "hidden" }, svg);
  let place = null;
  const move = (to) => {
    place = to === null ? null : Math.min(plot.right, Math.max(MARGIN.left, to));
    line.setAttribute("visibility", place === null ? "hidden" : "visible");
    if (place !== null) for (const end of ["x1", "x2"]) line.setAttribute(end, place);
    show(place === null ? null : x.inverse(place));
  };
  const follow = (event) => move(event.clientX - svg.getBoundingClientRect().left);
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && move(null));
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: 5, PageDown: -5 }[event.key];
    const width = (plot.right - MARGIN.left) / 60;
    const middle = (plot.right + MARGIN.left) / 2;
    if (step) move(place === null ? middle : place + step * width);
    else if (event.key === "Home") move(MARGIN.left);
    else if (event.key === "End") move(plot.right);
    else if (event.key === "Escape") move(null);
    else return;
    event.preventDefault();
  });
}

// The share of utilities with an error of at most `error`, between the kept places of the curve.
function shareAt(errors, levels, error) {
  if (error < errors[0]) return 0;
  const next = errors.findIndex((e) => e > error);
  if (next < 0) return 1;
  const part = (error - errors[next - 1]) / (errors[next] - errors[next - 1] || 1);
  return levels[next - 1] + part * (levels[next] - levels[next - 1]);
}

// Panels for `parts` in a grid, all there before the first is drawn: each then has its width.
function fill(grid, parts, drawPart) {
  grid.replaceChildren();
  const panels = parts.map(() => html("div", "panel", grid));
  parts.forEach((part, i) => drawPart(panels[i], part));
}

function ecdfPanel(panel, family, looks, shown) {
  html("h4", "", panel, family.title);
  const chosen = looks.filter((look) => look.key in family.curves && shown.has(look.key));
  const drawn = Object.values(family.curves).concat(family.floor ? [family.floor.low, family.floor.high] : []);
  const foot = Math.min(...drawn.map((c) => c[Math.ceil(c.length / 100)] || c[c.length - 1]).filter((e) => e > 0));
  const head = Math.max(...drawn.map((c) => c[c.length - 1])) * 1.05;
  const plot = frame(panel, { height: 300, x: [foot / 1.15, head], y: [0, 1], xlog: true,
    xlabel: "utility calibration error e", ylabel: "share with error ≤ e", ytext: percent,
    label: `${family.title}: share of utilities by error, ${chosen.length} methods` });
  if (!isFinite(foot)) return;
  const inside = (errors) => errors.map((e) => Math.max(e, plot.x.low));
  if (family.floor) band(plot, points(plot, inside(family.floor.low), family.levels),
    points(plot, inside(family.floor.high), family.levels));
  for (const look of chosen) curve(plot, inside(family.curves[look.key]), family.levels, look).dataset.method = look.key;
  const out = html("div", "readout", panel);
  out.setAttribute("aria-live", "polite");
  reading(plot, (error) => {
    out.replaceChildren();
    if (error === null) return;
    html("span", "", out, `e = ${short(error)}:`);
    for (const look of chosen) {
      const text = `${look.name} ${percent(shareAt(family.curves[look.key], family.levels, error))}`;
      html("span", "", out, text).prepend(sample(look));
    }
  });
}

function worstPanel(panel, one, look) {
  html("h4", "", panel, look.name);
  html("div", "note", panel, one.heading);
  const x = [Math.min(...one.at), Math.max(...one.at)];
  const all = one.bins.flatMap((b) => b.slice(1)).filter((v) => v !== null).concat(x);
  const upper = frame(panel, { height: 190, x, y: [Math.min(...all), Math.max(...all)],
    ylabel: "realized", label: `${look.name}: realized by predicted utility` });
  const most = 1.05 * Math.max(...one.curve.concat(one.low, one.high).map((v) => Math.abs(v || 0)), 1e-9);
  const lower = frame(panel, { height: 170, x, y: [-most, most], xlabel: "predicted utility",
    ylabel: "difference", label: `${look.name}: running difference` });
  for (const plot of [upper, lower]) {
    const shade = draw("rect", { class: "shade", x: plot.x(one.worst[0]), y: MARGIN.top,
      width: Math.max(1, plot.x(one.worst[1]) - plot.x(one.worst[0])), height: plot.bottom - MARGIN.top });
    plot.svg.prepend(shade);
  }
  for (const [v, , lo, hi] of one.bins)
    if (lo !== null) draw("line", { class: "noise", "stroke-width": 6, x1: upper.x(v), x2: upper.x(v), y1: upper.y(lo), y2: upper.y(hi) }, upper.svg);
  draw("line", { class: "diagonal", x1: upper.x(x[0]), x2: upper.x(x[1]), y1: upper.y(x[0]), y2: upper.y(x[1]) }, upper.svg);
  for (const [v, u] of one.bins) draw("circle", { class: "dot", r: 3.5, cx: upper.x(v), cy: upper.y(u),
    style: `--look:${look.color}` }, upper.svg);
  if (one.low[0] !== null) band(lower, points(lower, one.at, one.high), points(lower, one.at, one.low));
  draw("line", { class: "diagonal", x1: lower.x(x[0]), x2: lower.x(x[1]), y1: lower.y(0), y2: lower.y(0) }, lower.svg);
  curve(lower, one.at, one.curve, { ...look, width: 1.6, dash: "" });
  const out = html("div", "readout", panel);
  out.setAttribute("aria-live", "polite");
  const nearest = (places, at) => places.reduce((best, v, i) => Math.abs(v - at) < Math.abs(places[best] - at) ? i : best, 0);
  const show = (at) => {
    out.replaceChildren();
    if (at === null) return;
    const [v, u, lo, hi] = one.bins[nearest(one.bins.map((b) => b[0]), at)];
    html("span", "", out, `predicted ${short(v)}, realized ${short(u)}` + (lo === null ? "" : ` (noise ${short(lo)} to ${short(hi)})`));
    html("span", "", out, `difference up to ${short(at)}: ${short(one.curve[nearest(one.at, at)])}`);
  };
  for (const plot of [upper, lower]) reading(plot, show);
}
