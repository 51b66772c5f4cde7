"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { bags, instances, labels, content } = data;
  const PAGE = 24;
  const byId = (id) => document.getElementById(id);
  const list = byId("bags"), more = byId("more"), sort = byId("sort"), chip = byId("range");
  const buttons = [...document.querySelectorAll("[data-show]")];
  const bars = [...document.querySelectorAll(".bar")];
  const orders = [...sort.options].map((option) => option.value);
  const state = { show: "all", sort: orders[0], range: null, limit: PAGE };

  let first = 0;
  bags.forEach((bag, i) => {
    bag.place = i;
    bag.first = first;
    first += bag.shown;
    bag.right = String(bag.truth) === String(bag.predicted);
  });

  const FILTERS = {
    all: () => true,
    right: (bag) => bag.right,
    wrong: (bag) => !bag.right,
    unsure: (bag) => bag.unsure === 1,
  };
  labels.forEach((_, code) => (FILTERS["label-" + code] = (bag) => [bag.predicted].flat().includes(code)));
  const ORDERS = {
    best: (a, b) => b.margin - a.margin,
    worst: (a, b) => a.margin - b.margin,
    unsure: (a, b) => Math.abs(a.margin) - Math.abs(b.margin),
    score: (a, b) => b.score - a.score,
    name: (a, b) => a.place - b.place,
  };

  // Every text goes in as text: names come from data and may look like anything.
  function element(tag, kind, text) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function signed(value) {
    const size = Math.abs(value);
    let text = size >= 100 ? size.toFixed(0) : size >= 10 ? size.toFixed(1) : size.toFixed(2);
    if (size > 0 && size < 0.005) text = size < 1e-4 ? size.toExponential(0) : size.toFixed(4);
    return (value < 0 ? "\u2212" : "+") + text;
  }

  function shade(score) {
    const step = Math.max(-4, Math.min(4, Math.round((4 * score) / instances.scale)));
    return (step < 0 ? "sn" : "sp") + Math.abs(step);
  }

  function face(i, description) {
    const score = instances.scores && instances.scores[i];
    const colour = instances.scores ? shade(score) : "plain";
    const made = element("span", "face " + colour);
    if (content.kind === "text") {
      made.classList.add("text");
      made.textContent = content.items[i];
    } else if (content.kind === "svg") {
      const image = element("img");
      image.alt = description;
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(content.items[i]);
      made.append(image);
    } else {
      const picture = element("span", "picture");
      const columns = content.columns;
      picture.style.backgroundPosition =
        -(i % columns) * content.width + "px " + -Math.floor(i / columns) * content.height + "px";
      picture.setAttribute("role", "img");
      picture.setAttribute("aria-label", description);
      if (!content.ink) made.classList.add("photo");
      made.append(picture);
    }
    if (instances.isKey && instances.isKey[i] === "1") made.classList.add("truth");
    return made;
  }

  function instance(bag, j) {
    const i = bag.first + j;
    const place = bag.places ? bag.places[j] : j;
    const facts = ["instance " + place];
    if (instances.names) facts.push(instances.names[i]);
    if (instances.labels) facts.push("label " + instances.labels[i]);
    if (instances.scores) facts.push("score " + signed(instances.scores[i]));
    if (j === bag.key) facts.push("key instance");
    if (instances.isKey && instances.isKey[i] === "1") facts.push("true key instance");
    const description = facts.join(", ");
    const made = element("span", j === bag.key ? "instance key" : "instance");
    made.title = description;
    made.append(face(i, description));
    if (instances.scores) made.append(element("small", "", signed(instances.scores[i])));
    return made;
  }

  function card(bag) {
    const kind = data.judged ? (bag.right ? "" : " bad") : bag.top === undefined ? " open" : " open lists";
    const made = element("li", "bag" + kind);
    const head = element("header");
    head.append(element("h3", "", bag.name));
    const quoted = (code) => "\u201c" + labels[code] + "\u201d";
    const words = (codes) => [codes].flat().map(quoted).join(", ") || "no label";
    let said = words(bag.predicted);
    if (bag.truth !== null && !bag.right) said = "is " + words(bag.truth) + ", was labelled " + said;
    head.append(element("span", "labels", said));
    if (data.judged) head.append(element("span", "verdict", bag.right ? "\u2713 right" : "\u2717 wrong"));
    const measure = bag.top === undefined ? (data.binary ? "score " : "lead ") : quoted(bag.top) + " ";
    head.append(element("span", "score", measure + signed(bag.score)));
    const row = element("div", "instances");
    for (let j = 0; j < bag.shown; j++) row.append(instance(bag, j));
    if (bag.shown < bag.size) row.append(element("small", "", "and " + (bag.size - bag.shown) + " more"));
    made.append(head, row);
    return made;
  }

  const cards = new Map();
  function cardOf(bag) {
    if (!cards.has(bag)) cards.set(bag, card(bag));
    return cards.get(bag);
  }

  function inRange(bag) {
    const range = state.range;
    return !range || (bag.bin === range.bin && (range.side === undefined || bag.truth === Number(range.side)));
  }

  function draw() {
    const found = bags.filter((bag) => FILTERS[state.show](bag) && inRange(bag));
    found.sort((a, b) => ORDERS[state.sort](a, b) || a.place - b.place);
    const shown = found.slice(0, state.limit);
    list.replaceChildren(...shown.map(cardOf));
    byId("count").textContent =
      found.length === 0 ? "No such bags." : "Showing " + shown.length + " of " + found.length + (found.length === 1 ? " bag." : " bags.");
    more.hidden = shown.length === found.length;
    more.textContent = "Show " + Math.min(PAGE, found.length - shown.length) + " more";
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.show === state.show));
    sort.value = state.sort;
    chip.hidden = !state.range;
    if (state.range) chip.textContent = "\u2715 scores " + state.range.text;
    for (const bar of bars) bar.classList.toggle("chosen", state.range !== null && state.range.bar === bar);
  }

  function choose(change) {
    Object.assign(state, { limit: PAGE }, change);
    draw();
    try {
      history.replaceState(null, "", "#show=" + state.show + "&sort=" + state.sort);
    } catch (error) {
      // Some viewers forbid it for files; the page works without.
    }
  }

  function fromAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (buttons.some((button) => button.dataset.show === wanted.get("show"))) state.show = wanted.get("show");
    if (orders.includes(wanted.get("sort"))) state.sort = wanted.get("sort");
  }

  function pick(bar) {
    const side = bar.dataset.class;
    const text = (side === undefined ? "" : "of \u201c" + labels[side] + "\u201d ") + "from " + bar.dataset.range;
    choose({ show: "all", range: { side, bin: Number(bar.dataset.bin), text, bar } });
    byId("gallery").scrollIntoView();
    chip.focus({ preventScroll: true });
  }

  for (const button of buttons) {
    const count = bags.filter(FILTERS[button.dataset.show]).length;
    button.append(" " + count);
    button.addEventListener("click", () => choose({ show: button.dataset.show, range: null }));
  }
  for (const bar of bars) {
    bar.addEventListener("click", () => pick(bar));
    bar.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        pick(bar);
      }
    });
  }
  sort.addEventListener("change", () => choose({ sort: sort.value }));
  chip.addEventListener("click", () => choose({ range: null }));
  more.addEventListener("click", () => {
    const next = list.children.length;
    state.limit += PAGE;
    draw();
    const heading = list.children[next];
    if (heading) {
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
    }
  });
  addEventListener("hashchange", () => {
    fromAddress();
    draw();
  });
  fromAddress();
  draw();
})();
