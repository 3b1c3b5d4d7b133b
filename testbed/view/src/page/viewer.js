"use strict";
// Figures: what an item is, shown where the pointer is and by arrow keys; and those to look around in: zoom,
// move, and a filter by text. Without scripts they are still whole, with the browser's own tooltips.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  // What keys come to is read out.
  const heard = document.createElement("div");
  heard.className = "heard";
  heard.setAttribute("role", "status");
  document.body.append(tip, heard);

  // A title becomes our tooltip, so that the browser doesn't show it a second time.
  const texts = new WeakMap();
  for (const title of document.querySelectorAll("figure svg title")) {
    texts.set(title.parentNode, title.textContent);
    title.remove();
  }

  // Of a figure in two shapes the one that is in sight: the wide one, or that of a phone.
  const svgOf = (figure) => {
    const all = [...figure.querySelectorAll("svg")];
    return all.find((svg) => svg.getClientRects().length > 0) ?? all[0];
  };

  const textAt = (target, root) => {
    for (let node = target; node && node !== root; node = node.parentNode) {
      if (texts.has(node)) return texts.get(node);
    }
    return null;
  };

  const show = (text, x, y) => {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    const below = y + 16;
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 6)) + "px";
    tip.style.top = (below + height < innerHeight ? below : y - height - 12) + "px";
  };

  // The item that keys have come to, in any figure.
  let at = null;
  const leave = () => {
    at?.classList.remove("at");
    at = null;
    show("");
  };
  const step = (figure, by) => {
    const items = [...svgOf(figure).querySelectorAll(".item:not(.out)")].filter((item) => texts.has(item));
    if (!items.length) return;
    const from = items.indexOf(at);
    const to = from < 0 ? (by > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, from + by));
    leave();
    at = items[to];
    at.classList.add("at");
    at.scrollIntoView({ block: "nearest", inline: "nearest" });
    const { right, bottom } = at.getBoundingClientRect();
    show(texts.get(at), right, bottom);
    heard.textContent = texts.get(at);
  };

  for (const figure of document.querySelectorAll("figure")) {
    figure.addEventListener("pointermove", (event) => show(textAt(event.target, figure), event.clientX, event.clientY));
    figure.addEventListener("pointerleave", () => show(""));
    const svg = svgOf(figure);
    const box = figure.querySelector(".view") ?? figure;
    if (box === figure && svg?.querySelector(".item")) {
      figure.tabIndex = 0;
      figure.setAttribute("role", "group");
      figure.setAttribute("aria-label", `${svg.getAttribute("aria-label")}; arrow keys go from point to point`);
    }
    box.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) {
        event.preventDefault();
        step(figure, by);
      }
      if (event.key === "Escape") leave();
    });
    box.addEventListener("blur", leave);
  }

  const explore = (figure) => {
    const svg = svgOf(figure);
    if (!svg) return;
    const whole = svg.viewBox.baseVal;
    const all = { x: whole.x, y: whole.y, w: whole.width, h: whole.height };
    let now = { ...all };

    const look = (to) => {
      const w = Math.min(all.w, Math.max(all.w / 64, to.w));
      const h = (w / all.w) * all.h;
      now = {
        w, h,
        x: Math.min(all.x + all.w - w, Math.max(all.x, to.x)),
        y: Math.min(all.y + all.h - h, Math.max(all.y, to.y)),
      };
      svg.setAttribute("viewBox", `${now.x} ${now.y} ${now.w} ${now.h}`);
      svg.style.cursor = now.w < all.w ? "grab" : "";
    };
    // By a factor, with the point at these parts of the width and height staying where it is.
    const zoom = (factor, px = 0.5, py = 0.5) => {
      const w = Math.min(all.w, now.w * factor);
      const h = (w / all.w) * all.h;
      look({ w, x: now.x + (now.w - w) * px, y: now.y + (now.h - h) * py });
    };
    figure.querySelector(".view").addEventListener("keydown", (event) => {
      const move = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "+") zoom(0.7);
      else if (event.key === "-") zoom(1 / 0.7);
      else if (move && event.shiftKey) look({ w: now.w, x: now.x + (move[0] * now.w) / 4, y: now.y + (move[1] * now.h) / 4 });
      else return;
      event.preventDefault();
    });
    const partOf = (event) => {
      const box = svg.getBoundingClientRect();
      return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    };

    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, ...partOf(event));
    }, { passive: false });
    svg.addEventListener("dblclick", (event) => zoom(0.5, ...partOf(event)));

    let from = null;
    svg.addEventListener("pointerdown", (event) => {
      if (now.w >= all.w) return;
      from = { at: partOf(event), x: now.x, y: now.y };
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const [px, py] = partOf(event);
      look({ w: now.w, x: from.x - (px - from.at[0]) * now.w, y: from.y - (py - from.at[1]) * now.h });
    });
    for (const end of ["pointerup", "pointercancel"]) {
      svg.addEventListener(end, () => { from = null; });
    }

    // "vm3" finds vm3 and not vm31.
    const filter = (wanted) => {
      const text = wanted.trim().toLowerCase();
      const end = /\d$/.test(text) ? "(?!\\d)" : "";
      const begin = /^\d/.test(text) ? "(?<!\\d)" : "";
      const pattern = new RegExp(begin + text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + end);
      for (const item of svg.querySelectorAll(".item")) {
        const is = !text || pattern.test((texts.get(item) || "").toLowerCase());
        item.classList.toggle("out", !is);
      }
    };

    const tools = document.createElement("div");
    tools.className = "tools";
    const input = document.createElement("input");
    input.type = "search";
    const names = [...svg.querySelectorAll(".item")].map((item) => texts.get(item) ?? "").join("\n");
    const kinds = [["a VM", /\bvm\d/i], ["a task", /\btask ?\d/i], ["a job", /\bjob ?\d/i]].filter(([, is]) => is.test(names));
    input.placeholder = `show only: ${kinds.map(([kind]) => kind).join(" or ") || "a name"}`;
    input.setAttribute("aria-label", input.placeholder);
    input.addEventListener("input", () => filter(input.value));
    tools.append(input);
    for (const [name, about, act] of [
      ["+", "zoom in", () => zoom(0.7)],
      ["−", "zoom out", () => zoom(1 / 0.7)],
      ["all", "show all of it", () => { input.value = ""; filter(""); look(all); }],
    ]) {
      const button = document.createElement("button");
      button.textContent = name;
      button.title = about;
      button.addEventListener("click", act);
      tools.append(button);
    }
    const hint = document.createElement("span");
    hint.className = "hint";
    hint.textContent = "Ctrl and the wheel or + and − zoom; dragging, or Shift and arrow keys, moves; arrow keys go from item to item";
    tools.append(hint);
    figure.prepend(tools);
  };
  document.querySelectorAll("figure.explore").forEach(explore);
})();
