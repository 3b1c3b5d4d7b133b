"use strict";
// Two buttons at each figure save it as a file: SVG, which is light or dark as its reader prefers, or PNG, as it looks now.
(() => {
  const style = document.querySelector("style").textContent;
  const patterns = document.querySelector("svg[aria-hidden] defs");

  // The figure's file: with the rules of the page and its patterns, and without what the page has done to it.
  const fileOf = (svg) => {
    const copy = svg.cloneNode(true);
    copy.removeAttribute("style");
    const rules = document.createElementNS("http://www.w3.org/2000/svg", "style");
    rules.textContent = style;
    copy.prepend(rules, patterns.cloneNode(true));
    return new XMLSerializer().serializeToString(copy);
  };
  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };
  const kinds = {
    SVG: async (svg) => new Blob([fileOf(svg)], { type: "image/svg+xml" }),
    PNG: async (svg) => {
      const image = new Image();
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(fileOf(svg));
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      return new Promise((done) => canvas.toBlob(done, "image/png"));
    },
  };

  for (const svg of document.querySelectorAll("figure svg")) {
    if (svg.closest(".on-narrow, .on-sheet")) continue;
    const about = svg.getAttribute("aria-label") ?? "figure";
    const name = about.split(";")[0].toLowerCase().replace(/[^\p{L}\d]+/gu, "-").replace(/^-|-$/g, "");
    const figure = svg.closest("figure");
    const box = document.createElement("span");
    box.className = "save";
    for (const [kind, made] of Object.entries(kinds)) {
      const button = document.createElement("button");
      button.textContent = kind;
      button.title = `save this figure as ${kind}`;
      button.setAttribute("aria-label", `save as ${kind}: ${about.split(";")[0]}`);
      button.addEventListener("click", async () => {
        const blob = await made(svg);
        if (blob) save(blob, `${name || "figure"}.${kind.toLowerCase()}`);
      });
      box.append(button);
    }
    (figure.querySelector(".tools") ?? figure).append(box);
  }
})();
