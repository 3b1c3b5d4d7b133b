"use strict";
// Figures: what an item is, shown where the pointer is; and those to look around in: zoom, move,
// and a filter by text. Without scripts they are still whole, with the browser's own tooltips.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  // A title becomes our tooltip, so that the browser doesn't show it a second time.
  const texts = new WeakMap();
  for (const title of document.querySelectorAll("figure svg title")) {
    texts.set(title.parentNode, title.textContent);
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  }

  const textAt = (target, root) => {
    for (let node = target; node && node !== root; node = node.parentNode) {
      if (texts.has(node)) return texts.get(node);
    }
    return null;
  };

  for (const figure of document.querySelectorAll("figure")) {
    figure.addEventListener("pointermove", (event) => {
      const text = textAt(event.target, figure);
      tip.hidden = !text;
      if (!text) return;
      tip.textContent = text;
      const { width, height } = tip.getBoundingClientRect();
      const left = Math.min(event.clientX + 14, innerWidth - width - 6);
      const below = event.clientY + 16;
      tip.style.left = Math.max(4, left) + "px";
      tip.style.top = (below + height < innerHeight ? below : event.clientY - height - 12) + "px";
    });
    figure.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  const explore = (figure) => {
    const svg = figure.querySelector("svg");
    if (!svg) return;
    const whole = svg.viewBox.baseVal;
    const all = { x: whole.x, y: whole.y, w: whole.width, h: whole.height };
    let now = { ...all };

    const show = (to) => {
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
      show({ w, x: now.x + (now.w - w) * px, y: now.y + (now.h - h) * py });
    };
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
      show({ w: now.w, x: from.x - (px - from.at[0]) * now.w, y: from.y - (py - from.at[1]) * now.h });
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
    input.placeholder = "show only: a VM, a task or a job";
    input.setAttribute("aria-label", input.placeholder);
    input.addEventListener("input", () => filter(input.value));
    tools.append(input);
    for (const [name, about, act] of [
      ["+", "zoom in", () => zoom(0.7)],
      ["−", "zoom out", () => zoom(1 / 0.7)],
      ["all", "show all of it", () => { input.value = ""; filter(""); show(all); }],
    ]) {
      const button = document.createElement("button");
      button.textContent = name;
      button.title = about;
      button.addEventListener("click", act);
      tools.append(button);
    }
    tools.append("Ctrl and the wheel zoom, dragging moves");
    figure.prepend(tools);
  };
  document.querySelectorAll("figure.explore").forEach(explore);
})();
