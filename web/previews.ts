import type { EvictionView, GarbageView } from "../src/page/view.ts";
import type { Preview } from "./connection.ts";
import { type Child, h } from "./dom.ts";
import * as format from "./format.ts";

/** Whom the node would evict first, as in `podwright evict --preview`. */
export function evictionPreview(preview: Preview<EvictionView> | undefined): Child {
  return folded("evictions", "Which pods would be evicted first", preview, ({ standing, pods }) => [
    h("p", {}, standing),
    pods.length === 0
      ? h("p", {}, "No pod runs.")
      : h(
          "ol",
          { class: "preview" },
          pods.map(({ namespace, name, place, evictable }) =>
            h(
              "li",
              {},
              h("strong", {}, `${namespace}/${name}`),
              ` ${place}`,
              !evictable && h("span", { class: "kept" }, " critical: never evicted"),
            ),
          ),
        ),
  ]);
}

/** What garbage collection would remove, as in `podwright gc --preview`. */
export function garbagePreview(preview: Preview<GarbageView> | undefined): Child {
  return folded("garbage", "What garbage collection would remove", preview, ({ items, imagesStay }) => [
    imagesStay !== undefined && h("p", {}, imagesStay),
    items.length === 0
      ? h("p", {}, "Nothing: every image and container is in use.")
      : h(
          "ul",
          { class: "preview" },
          items.map(({ kind, name, pod, bytes, stays }) =>
            h(
              "li",
              {},
              h("strong", {}, kind),
              ` ${pod === undefined ? "" : `${pod} `}${name}`,
              bytes !== undefined && h("span", { class: "size" }, ` ${format.bytes(bytes)}`),
              h(
                "span",
                { class: stays === undefined ? "goes" : "kept" },
                stays === undefined ? " would go" : ` ${stays}`,
              ),
            ),
          ),
        ),
  ]);
}

function folded<T>(key: string, title: string, preview: Preview<T> | undefined, shown: (view: T) => Child): Element {
  return h(
    "details",
    { "data-key": key },
    h("summary", {}, title),
    preview === undefined && h("p", {}, "Asking the node …"),
    preview !== undefined && "problem" in preview && h("p", { class: "bad" }, preview.problem),
    preview !== undefined && "view" in preview && shown(preview.view),
    preview !== undefined && h("p", { class: "asked" }, `As of ${format.time(preview.at)}. Unfold again to ask anew.`),
  );
}
