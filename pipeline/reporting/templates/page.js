"use strict";
// Sorting, the switch of what stands beside the means, the choice of curves; all charts of the page.
const data = JSON.parse(document.getElementById("data").textContent);

function sortBy(table, column, direction) {
  const body = table.tBodies[0];
  const value = (row) => {
    const number = parseFloat(row.cells[column].dataset.value);
    return isNaN(number) ? Infinity : direction * number;
  };
  [...body.rows].sort((a, b) => value(a) - value(b)).forEach((row) => body.append(row));
  table.querySelectorAll("thead th").forEach((th, i) => th.setAttribute("aria-sort",
    i !== column ? "none" : direction > 0 ? "ascending" : "descending"));
}

for (const table of document.querySelectorAll("table")) {
  table.querySelectorAll("thead th[aria-sort]").forEach((th, column) => {
    th.querySelector("button").addEventListener("click", () => {
      const sorted = th.getAttribute("aria-sort");
      const first = th.dataset.larger === "yes" ? -1 : 1;
      const direction = sorted === "none" ? first : sorted === "ascending" ? -1 : 1;
      sortBy(table, column, direction);
    });
  });
}

for (const radio of document.querySelectorAll("input[name=beside]")) {
  const choose = () => { if (radio.checked) document.body.dataset.beside = radio.value; };
  radio.addEventListener("change", choose);
  choose();
}

function sectionOf(node) {
  const content = data[node.dataset.section];
  const shown = new Set(content.looks.map((look) => look.key));
  const ecdf = node.querySelector("[data-chart=ecdf]");
  const worst = node.querySelector("[data-chart=worst]");
  const select = node.querySelector("[data-worst]");
  const redraw = () => {
    if (ecdf) fill(ecdf, content.families, (panel, family) => ecdfPanel(panel, family, content.looks, shown));
    if (worst) {
      const group = content.worst[select.value];
      const looks = content.looks.filter((look) => shown.has(look.key) && look.key in group);
      fill(worst, looks, (panel, look) => worstPanel(panel, group[look.key], look));
    }
  };
  if (select) select.addEventListener("change", redraw);
  node.querySelectorAll(".pick").forEach((button) => button.addEventListener("click", () => {
    const method = button.closest("tr").dataset.method;
    if (!shown.delete(method)) shown.add(method);
    node.querySelectorAll(`tr[data-method="${CSS.escape(method)}"] .pick`).forEach((other) =>
      other.setAttribute("aria-pressed", shown.has(method)));
    redraw();
  }));
  return redraw;
}

const redraws = [...document.querySelectorAll("[data-section]")].map((node) => ({ node, redraw: sectionOf(node), near: false, drawn: 0 }));

// A section's charts are drawn when it comes near the window, and again when its width changes; not
// while it has none, as in a tab that opens in the background.
const near = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((e) => e.isIntersecting))
    redraws.find((one) => one.node === entry.target).near = true;
  fit();
}, { rootMargin: "600px" });
redraws.forEach((one) => near.observe(one.node));

function fit() {
  for (const one of redraws) {
    const width = one.node.clientWidth;
    if (one.near && width && one.drawn !== width) { one.redraw(); one.drawn = width; }
  }
  for (const part of document.querySelectorAll(".scroll"))
    part.classList.toggle("wide", part.scrollWidth > part.clientWidth + 1);
}
window.addEventListener("resize", fit);
window.addEventListener("beforeprint", () => {
  document.querySelectorAll(".where details").forEach((part) => { part.open = true; });
  redraws.forEach((one) => { one.redraw(); one.drawn = one.node.clientWidth; });
});
fit();
