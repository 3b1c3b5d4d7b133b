"use strict";
// Tables are sorted by a click on a heading; and a link into a folded section opens it. Without scripts a table stays in
// the order in which it was written.
(() => {
  const words = new Intl.Collator("en", { numeric: true });
  const number = (text) => {
    const digits = text.replace(/[$,\s]/g, "").match(/^[+-]?\d*\.?\d+(e[+-]?\d+)?/i);
    return digits ? Number(digits[0]) : undefined;
  };
  // Words that begin with a number, such as dates, are compared as words.
  const before = (a, b, isNumeric) => {
    const [x, y] = isNumeric ? [number(a), number(b)] : [];
    return x === undefined || y === undefined ? words.compare(a, b) : x - y;
  };

  const sort = (table, column, heading) => {
    const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const text = (row) => row.cells[column].textContent.trim();
    // Rows without a value stay below those with one, whichever way the others are sorted.
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [text(a), text(b)];
      return !x || !y ? Number(!x) - Number(!y) : sign * before(x, y, heading.classList.contains("n"));
    });
    body.append(...rows);
  };

  for (const table of document.querySelectorAll(".scroll table")) {
    const all = [...table.tBodies[0].rows];
    // A table with a row of totals stays as it is.
    if (all.length < 3 || all.some((row) => row.cells[0].textContent.trim() === "all")) continue;
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      if (heading.tagName !== "TH") return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, column, heading));
      heading.append(button);
    });
  }

  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
})();
