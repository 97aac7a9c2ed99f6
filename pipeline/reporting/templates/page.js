"use strict";
// A click on a heading sorts its table by that column; another click turns the order.
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
