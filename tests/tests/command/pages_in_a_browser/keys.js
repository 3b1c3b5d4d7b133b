// What can be acted on, and whether Tab comes to it with a focus that is seen. `begin` watches; `end` tells [kind, what]s.
const isSeen = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
const named = (element) => `${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ""}.${element.className} “${(element.ariaLabel || element.textContent).trim().slice(0, 40)}”`;
const acts = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0'], [role=button]")]
  .filter((element) => isSeen(element) && !element.disabled && !element.closest("dialog:not([open])"));
if (arguments[0] === "begin") {
  document.activeElement?.blur();
  window.reachedByTab = new Map();
  addEventListener("focusin", ({ target }) => {
    const style = getComputedStyle(target);
    // The browser's own ring is "auto", whatever its width.
    const ring = style.outlineStyle === "auto" || (style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) >= 1.5);
    window.reachedByTab.set(target, ring);
  }, true);
  return acts.length;
}
const wrong = [];
const radios = new Set([...window.reachedByTab.keys()].filter((e) => e.type === "radio").map((e) => e.name));
for (const element of acts) {
  if (element.type === "radio" && radios.has(element.name)) continue;
  if (!window.reachedByTab.has(element)) wrong.push(["keyboard", `Tab does not come to ${named(element)}`]);
  else if (!window.reachedByTab.get(element)) wrong.push(["keyboard", `no focus is seen on ${named(element)}`]);
}

// Arrow keys go through the marks of a figure, and say what each is.
const [tip, heard] = [document.querySelector("body > .tip"), document.querySelector("body > .heard")];
for (const figure of document.querySelectorAll("figure[tabindex], figure .view")) {
  const press = (key) => figure.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  figure.focus();
  heard.textContent = "";
  press("ArrowRight");
  if (!heard.textContent || tip.hidden || tip.textContent !== heard.textContent) wrong.push(["keyboard", `arrow keys say nothing in ${named(figure)}`]);
  press("Escape");
  if (!tip.hidden) wrong.push(["keyboard", `Escape does not end what is said of ${named(figure)}`]);
}
return wrong;
