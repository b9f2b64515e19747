import type { EvictionView, GarbageView, PodDetail } from "../src/page/view.ts";
import { Connection } from "./connection.ts";
import { byId, h, show } from "./dom.ts";
import { hasMood, matchesText, type MoodChoice, moodChoices } from "./filter.ts";
import * as format from "./format.ts";
import { footer, gauges, header, notice } from "./head.ts";
import { podList } from "./pods.ts";
import { emptyState, takeGauges, takeHello } from "./state.ts";

/** Changes that come closer together are shown together. */
const frameMs = 100;

const state = emptyState();
const filterText = byId("filter-text") as HTMLInputElement;
const filterNamespace = byId("filter-namespace") as HTMLSelectElement;
const filterMoods = byId("filter-moods");
const podsElement = byId("pods");
let drawing = false;
/** The pod that the address names; unfolded when it is first seen. */
let wanted = podOfHash();

function draw(): void {
  if (drawing) return;
  drawing = true;
  setTimeout(() => {
    drawing = false;
    drawNow();
  }, frameMs);
}

function drawNow(): void {
  document.documentElement.classList.toggle("stale", state.link.state === "lost" && state.node !== undefined);
  show(byId("top"), header(state));
  show(byId("notice"), notice(state));
  show(byId("gauges"), gauges(state));
  drawFilters();
  show(podsElement, podList(state));
  show(byId("bottom"), footer(state));
  const troubled = [...state.pods.values()].filter((pod) => hasMood(pod, "trouble")).length;
  const name = state.node === undefined ? "podwright" : `${state.node.name} – podwright`;
  document.title = troubled === 0 ? name : `(${troubled}) ${name}`;
  tick();
}

function drawFilters(): void {
  const pods = [...state.pods.values()];
  const namespaces = [...new Set(pods.map(({ namespace }) => namespace))].sort();
  // One that was chosen stays, also while it has no pod.
  const { namespace } = state.filter;
  if (namespace !== "" && !namespaces.includes(namespace)) namespaces.push(namespace);
  show(
    filterNamespace,
    h("option", { value: "", "data-key": "" }, "all"),
    namespaces.map((name) => h("option", { value: name, "data-key": `/${name}` }, name)),
  );
  filterNamespace.value = namespace;
  byId("namespace-field").hidden = namespaces.length < 2 && namespace === "";
  const counted = pods.filter((pod) => {
    return matchesText(pod, state.filter.text) && (namespace === "" || pod.namespace === namespace);
  });
  show(
    filterMoods,
    moodChoices.map(({ id, label }) =>
      h(
        "button",
        { type: "button", "data-mood": id, "data-key": id, "aria-pressed": String(state.filter.mood === id) },
        label,
        moodCount(id, counted),
      ),
    ),
  );
}

function moodCount(id: MoodChoice, pods: readonly PodDetail[]): Element {
  const count = pods.filter((pod) => hasMood(pod, id)).length;
  return h("span", { class: id === "trouble" && count > 0 ? "number some" : "number" }, count);
}

/** Updates every relative time: they advance without new data from the node. */
function tick(): void {
  // Without a connection, time stands still: the present durations are unknown.
  const now = (state.link.state === "live" ? Date.now() : (state.lostAt ?? Date.now())) + state.offsetMs;
  for (const element of document.querySelectorAll("time[data-since], time[data-age], time[data-until]")) {
    const text = relative(element, now);
    if (element.textContent !== text) element.textContent = text;
  }
}

function relative(element: Element, now: number): string {
  const since = Number(element.getAttribute("data-since") ?? Number.NaN);
  if (!Number.isNaN(since)) return format.elapsed(now - since);
  const from = Number(element.getAttribute("data-age") ?? Number.NaN);
  if (!Number.isNaN(from)) return format.age(now - from);
  const leftMs = Number(element.getAttribute("data-until")) - now;
  return leftMs > 0 ? `in ${format.elapsed(leftMs + 999)}` : "due";
}

const connection = new Connection({
  hello: (event) => {
    state.offsetMs = event.now - Date.now();
    takeHello(state, event);
    openWanted();
    for (const uid of state.open) void loadLife(uid);
    draw();
  },
  change: ({ now, node, pods = [], gone = [] }) => {
    state.offsetMs = now - Date.now();
    if (node !== undefined) state.node = node;
    for (const pod of pods) {
      const before = state.pods.get(pod.uid);
      state.pods.set(pod.uid, pod);
      if (state.open.has(pod.uid) && before?.entries !== pod.entries) void loadLife(pod.uid);
    }
    for (const uid of gone) {
      state.pods.delete(uid);
      state.lives.delete(uid);
      state.open.delete(uid);
    }
    openWanted();
    draw();
  },
  gauges: (event) => {
    takeGauges(state, event);
    draw();
  },
  link: (link) => {
    if (link.state === "lost" && state.link.state === "live") state.lostAt = Date.now();
    if (link.state === "live") state.lostAt = undefined;
    state.link = link;
    draw();
  },
});

const loading = new Map<string, "once" | "again">();

/** One request at a time for each pod; changes meanwhile are requested afterwards. */
async function loadLife(uid: string): Promise<void> {
  if (loading.has(uid)) {
    loading.set(uid, "again");
    return;
  }
  do {
    loading.set(uid, "once");
    const life = await connection.life(uid);
    if (life !== undefined && state.open.has(uid)) state.lives.set(uid, life);
    draw();
  } while (loading.get(uid) === "again");
  loading.delete(uid);
}

function toggle(uid: string): void {
  if (state.open.delete(uid)) {
    state.lives.delete(uid);
  } else {
    state.open.add(uid);
    void loadLife(uid);
  }
  wanted = undefined;
  const newest = state.pods.get([...state.open].at(-1) ?? "");
  const hash =
    newest === undefined ? "" : `#${encodeURIComponent(newest.namespace)}/${encodeURIComponent(newest.name)}`;
  history.replaceState(undefined, "", `${location.pathname}${hash}`);
  drawNow();
}

/** A preview at the page's end is requested when it is unfolded, and shown as of that moment. */
async function loadPreview(name: string | null): Promise<void> {
  if (name === "evictions") state.previews.evictions = await connection.preview<EvictionView>(name);
  else if (name === "garbage") state.previews.garbage = await connection.preview<GarbageView>(name);
  draw();
}

function podOfHash(): string | undefined {
  try {
    return /^#[^=/]+\/[^=/]+$/.test(location.hash) ? decodeURIComponent(location.hash.slice(1)) : undefined;
  } catch {
    return undefined;
  }
}

function openWanted(): void {
  const pod = [...state.pods.values()].find(({ namespace, name }) => `${namespace}/${name}` === wanted);
  if (pod === undefined) return;
  wanted = undefined;
  state.open.add(pod.uid);
  void loadLife(pod.uid);
}

function clearFilter(): void {
  filterText.value = "";
  state.filter = { text: "", namespace: "", mood: "all" };
  drawNow();
}

document.addEventListener("click", ({ target }) => {
  const button = target instanceof Element ? target.closest("button") : null;
  const uid = button?.getAttribute("data-pod");
  const mood = button?.getAttribute("data-mood");
  if (uid !== null && uid !== undefined) toggle(uid);
  else if (mood !== null && mood !== undefined) {
    state.filter = { ...state.filter, mood: mood as MoodChoice };
    drawNow();
  } else if (button?.hasAttribute("data-clear") === true) {
    clearFilter();
    filterText.focus();
  }
});
document.addEventListener(
  "toggle",
  ({ target }) => {
    if (target instanceof HTMLDetailsElement && target.open) void loadPreview(target.getAttribute("data-key"));
  },
  // The event does not bubble.
  { capture: true },
);
filterText.addEventListener("input", () => {
  state.filter = { ...state.filter, text: filterText.value };
  draw();
});
filterNamespace.addEventListener("change", () => {
  state.filter = { ...state.filter, namespace: filterNamespace.value };
  drawNow();
});
document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const typing = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
  if (key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    filterText.focus();
  } else if (key === "Escape" && target === filterText && filterText.value !== "") {
    clearFilter();
  } else if ((key === "ArrowDown" || key === "ArrowUp") && target instanceof Element && target.matches("button.row")) {
    const rows = [...podsElement.querySelectorAll<HTMLElement>("button.row")];
    rows[rows.findIndex((row) => row === target) + (key === "ArrowDown" ? 1 : -1)]?.focus();
    event.preventDefault();
  }
});
addEventListener("hashchange", () => {
  wanted = podOfHash();
  openWanted();
  draw();
});
setInterval(tick, 1000);
drawNow();
void connection.run();
