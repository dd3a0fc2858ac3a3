// Builds elements. Text goes in as text: nothing here, or anywhere in the console, is parsed as HTML.

/// An element with properties and children; children that are null or false are left out.
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/// The same for SVG.
export function svg(name, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/// Puts children in the place of what an element has. What has the focus keeps it when it comes again under the same id.
export function fill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (focused) document.getElementById(focused)?.focus();
}

/// A table. Columns are { label, number?, tight?, head?, cell(row) }; on a narrow screen each row becomes a card.
export function table(caption, columns, rows, empty) {
  const cells = (row) =>
    columns.map(({ label, number, tight, head, cell }) =>
      h(head ? "th" : "td", { "data-label": label, scope: head ? "row" : null, class: number ? "number" : tight ? "tight" : null }, cell(row)),
    );
  const body = rows.length
    ? rows.map((row) => h("tr", {}, cells(row)))
    : [h("tr", {}, h("td", { class: "empty", colspan: columns.length }, empty))];
  return h(
    "div",
    { class: "table-box", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      { class: "cards" },
      h("thead", {}, h("tr", {}, columns.map(({ label, number }) => h("th", { scope: "col", class: number ? "number" : null }, label)))),
      h("tbody", {}, body),
    ),
  );
}

/// Facts in pairs.
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/// A short word with a colour, which never says more than the word does.
export function badge(word, kind = "") {
  return h("span", { class: `badge ${kind}` }, word);
}
