// Lists of which only the rows that can be seen are in the page: a queue of 100,000 tasks has as many
// elements as one of thirty.

import { el, setAttribute } from "./dom.js";

const SPARE = 6;

export class VirtualList {
  /**
   * A list in `box`, an element that scrolls. `make()` gives an empty row, `fill(row, item)` shows an
   * item in it; all rows have the height `--row` of the style sheet.
   */
  constructor(box, { make, fill, empty, nearEnd }) {
    Object.assign(this, { box, make, fill, nearEnd, items: [], rows: [], first: -1 });
    this.isTable = box.getAttribute("role") === "table";
    this.inner = el("div", { class: "inner", role: this.isTable ? "rowgroup" : "presentation" });
    this.empty = el("p", { class: "empty" }, empty);
    box.append(this.inner, this.empty);
    box.addEventListener("scroll", () => this.show(), { passive: true });
    new ResizeObserver(() => {
      this.rowHeight = parseFloat(getComputedStyle(box).getPropertyValue("--row")) || 30;
      this.roomFor = Math.ceil(box.clientHeight / this.rowHeight) + SPARE;
      this.show(true);
    }).observe(box);
    this.rowHeight = 30;
    this.roomFor = 20;
  }

  /** Shows other items; `kept` of them have come before those that were there. */
  set(items, before = 0) {
    this.items = items;
    if (before && this.box.scrollTop > this.rowHeight) this.box.scrollTop += before * this.rowHeight;
    this.show(true);
  }

  /** Says which of all rows this one is, as its role has it. */
  place(row, index) {
    if (this.isTable) setAttribute(row, "aria-rowindex", index + 2);
    else {
      setAttribute(row, "aria-posinset", index + 1);
      setAttribute(row, "aria-setsize", this.items.length);
    }
  }

  show(isNew = false) {
    const { items, rowHeight } = this;
    const first = Math.max(0, Math.floor(this.box.scrollTop / rowHeight) - SPARE / 2);
    if (!isNew && first === this.first) return;
    this.first = first;
    const height = `${items.length * rowHeight}px`;
    if (this.inner.style.height !== height) this.inner.style.height = height;
    if (this.empty.hidden === (items.length === 0)) this.empty.hidden = items.length > 0;
    const wanted = Math.min(this.roomFor, Math.max(0, items.length - first));
    while (this.rows.length < wanted) {
      const row = this.make();
      row.classList.add("row");
      this.rows.push(row);
      this.inner.append(row);
    }
    this.rows.forEach((row, n) => {
      const isUsed = n < wanted;
      if (row.hidden === isUsed) row.hidden = !isUsed;
      if (!isUsed) return;
      const top = `translateY(${(first + n) * rowHeight}px)`;
      if (row.style.transform !== top) row.style.transform = top;
      this.place(row, first + n);
      this.fill(row, items[first + n]);
    });
    if (this.nearEnd && first + wanted >= items.length - SPARE) this.nearEnd();
  }
}
