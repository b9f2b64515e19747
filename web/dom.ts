/** Elements from data. Text stays text: nothing here reads markup, and no attribute that runs anything is set. */

export type Child = Node | string | number | false | null | undefined | readonly Child[];

type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

const svgTags: ReadonlySet<string> = new Set(["svg", "path", "rect", "line", "circle", "title"]);

/** An element with attributes (`false` and undefined: none) and children. */
export function h(tag: string, attributes: Attributes = {}, ...children: readonly Child[]): Element {
  const element = svgTags.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === false || child === null || child === undefined || child === "") continue;
    if (typeof child === "string" || typeof child === "number") element.append(String(child));
    else if (child instanceof Node) element.append(child);
    else append(element, child);
  }
}

/** A part of the page with its heading. */
export function section(title: string, ...children: readonly Child[]): Element {
  return h("section", { "data-key": title }, h("h3", {}, title), children);
}

/**
 * Makes the children of an element like these, changing as little as can be: focus, selection and scrolling stay where
 * they are. Children with a `data-key` are found again by it.
 */
export function show(parent: Element, ...children: readonly Child[]): void {
  const wanted = document.createDocumentFragment();
  const holder = h("div");
  append(holder, children);
  wanted.append(...holder.childNodes);
  morphChildren(parent, wanted);
}

function morphChildren(parent: Node, wanted: Node): void {
  const byKey = new Map<string, Element>();
  for (const child of parent.childNodes) {
    const key = keyOf(child);
    if (key !== undefined && child instanceof Element) byKey.set(key, child);
  }
  let place: ChildNode | null = parent.firstChild;
  for (const next of [...wanted.childNodes]) {
    const key = keyOf(next);
    const known: ChildNode | null | undefined = key === undefined ? place : byKey.get(key);
    if (known !== null && known !== undefined && keyOf(known) === key && isAlike(known, next)) {
      if (known === place) place = place.nextSibling;
      else parent.insertBefore(known, place);
      morph(known, next);
    } else {
      parent.insertBefore(next, place);
    }
  }
  while (place !== null) {
    const rest: ChildNode | null = place.nextSibling;
    place.remove();
    place = rest;
  }
}

function isAlike(a: Node, b: Node): boolean {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName;
}

function morph(known: Node, wanted: Node): void {
  if (known instanceof Element && wanted instanceof Element) {
    for (const { name } of [...known.attributes]) {
      // The viewer unfolds and folds it.
      if (name === "open" && known instanceof HTMLDetailsElement) continue;
      if (!wanted.hasAttribute(name)) known.removeAttribute(name);
    }
    for (const { name, value } of wanted.attributes) {
      if (known.getAttribute(name) !== value) known.setAttribute(name, value);
    }
    morphChildren(known, wanted);
  } else if (known.nodeValue !== wanted.nodeValue) {
    known.nodeValue = wanted.nodeValue;
  }
}

function keyOf(node: Node): string | undefined {
  return node instanceof Element ? (node.getAttribute("data-key") ?? undefined) : undefined;
}

/** The element of the page with this id. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element;
}
