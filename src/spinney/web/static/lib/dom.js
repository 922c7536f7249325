// The view layer: h() describes an element, render() changes the page to match. Text is always text, never markup.

/**
 * @typedef {{tag: string, props: Record<string, any>, children: Child[], key: any}} VNode
 * @typedef {VNode | string} Child
 */

const SVG = "http://www.w3.org/2000/svg";

/** Describe an element. Children may be nested arrays; null, undefined and booleans are left out. */
export function h(tag, props, ...children) {
  const given = props || {};
  return { tag, props: given, children: flat(children, []), key: given.key };
}

function flat(children, into) {
  for (const child of children) {
    if (child === null || child === undefined || typeof child === "boolean") continue;
    if (Array.isArray(child)) flat(child, into);
    else into.push(typeof child === "object" ? child : String(child));
  }
  return into;
}

/** Make the content of a container match what is described. */
export function render(container, ...children) {
  patchChildren(container, flat(children, []));
}

function create(child, parent) {
  if (typeof child === "string") return document.createTextNode(child);
  const inSvg = child.tag === "svg" || (parent.namespaceURI === SVG && parent.tagName !== "foreignObject");
  const element = inSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  element.vnode = { tag: child.tag, props: {}, children: [], key: child.key };
  update(element, child);
  return element;
}

function update(element, next) {
  const before = element.vnode;
  for (const name in before.props) if (!(name in next.props)) setProp(element, name, before.props[name], undefined);
  for (const name in next.props) {
    const old = before.props[name];
    if (name !== "value" && (old !== next.props[name] || name === "checked")) setProp(element, name, old, next.props[name]);
  }
  if (!next.props.unmanaged) patchChildren(element, next.children);
  // After the children: a select takes only values that it has options for.
  if ("value" in next.props) setProp(element, "value", undefined, next.props.value);
  element.vnode = next;
  if (!before.mounted && next.props.mounted) next.props.mounted(element);
  element.vnode.mounted = true;
  if (next.props.updated) next.props.updated(element);
}

function matches(node, child) {
  if (typeof child === "string") return node.nodeType === 3;
  return node.nodeType === 1 && node.vnode !== undefined && node.vnode.tag === child.tag && node.vnode.key === child.key;
}

function patchChildren(element, children) {
  const keyed = new Map();
  for (const node of element.childNodes) {
    if (node.vnode && node.vnode.key !== undefined) keyed.set(node.vnode.key, node);
  }
  let node = element.firstChild;
  for (const child of children) {
    let match = null;
    if (typeof child === "object" && child.key !== undefined) {
      match = keyed.get(child.key) || null;
      if (match && match.vnode.tag !== child.tag) match = null;
    } else if (node && matches(node, child)) match = node;
    if (match === null) {
      match = create(child, element);
      element.insertBefore(match, node);
    } else {
      if (match === node) node = node.nextSibling;
      else element.insertBefore(match, node);
      if (typeof child === "string") {
        if (match.data !== child) match.data = child;
      } else update(match, child);
    }
  }
  while (node) {
    const gone = node;
    node = node.nextSibling;
    removed(gone);
    element.removeChild(gone);
  }
}

// Tells parts that draw by themselves that they are gone.
function removed(node) {
  if (node.vnode && node.vnode.props.unmounted) node.vnode.props.unmounted(node);
  for (const child of node.childNodes) removed(child);
}

function setProp(element, name, old, value) {
  if (name === "key" || name === "mounted" || name === "updated" || name === "unmounted" || name === "unmanaged") return;
  if (name.startsWith("on")) {
    const type = name.slice(2).toLowerCase();
    if (old) element.removeEventListener(type, old);
    if (value) element.addEventListener(type, value);
  } else if (name === "style") {
    for (const part in old) if (!value || !(part in value)) element.style.removeProperty(part);
    for (const part in value) if (!old || old[part] !== value[part]) element.style.setProperty(part, value[part]);
  } else if (name === "value" || name === "checked") {
    if (element[name] !== (value ?? "")) element[name] = value ?? "";
  } else if (value === undefined || value === null || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}
