// Making and changing elements. All that comes from a run is text: nothing here takes markup.

/** An element with attributes and children; functions among the attributes listen to their event. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Sets an element's text if it is another one, so that nothing is laid out again for nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute if it is another one; removes it for null. */
export function setAttribute(element, name, value) {
  if (value === null) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, String(value));
  }
}

/** A list of names and values. */
export function facts(pairs) {
  const list = el("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(el("dt", {}, name), el("dd", {}, value));
  }
  return list;
}

/** The tooltip, of which there is one. */
const tip = el("div", { class: "tip", hidden: true, role: "tooltip" });
document.body.append(tip);

export function showTip(text, event) {
  tip.hidden = !text;
  if (!text) return;
  setText(tip, text);
  const { width, height } = tip.getBoundingClientRect();
  const below = event.clientY + 16;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 6))}px`;
  tip.style.top = `${below + height < innerHeight ? below : Math.max(4, event.clientY - height - 12)}px`;
}

/** Says something in the corner for a while; screen readers read it. */
export function toast(text, isBad = false) {
  const said = el("p", { class: isBad ? "toast bad" : "toast" }, text);
  byId("toasts").append(said);
  setTimeout(() => said.remove(), 9000);
}
