import { readdir, readFile } from "node:fs/promises";
import { extname, join, resolve } from "node:path";
import type { PageAsset, PageAssets } from "../../ports/node-page.ts";

/** The page's files, embedded by the build; undefined when run from the sources. */
declare const PODWRIGHT_PAGE: Readonly<Record<string, string>> | undefined;

const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".ts": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml; charset=utf-8",
};

let assets: Promise<PageAssets> | undefined;

/** The files of the node page: from the bundle, or from `web/` when podwright runs from its sources. */
export function pageAssets(): Promise<PageAssets> {
  // oxlint-disable-next-line unicorn/no-typeof-undefined -- there is no such name in the sources
  assets ??= typeof PODWRIGHT_PAGE === "undefined" ? fromSources() : Promise.resolve(asAssets(PODWRIGHT_PAGE));
  return assets;
}

/** Module by module, with types stripped: what the build bundles into `main.js` is served unbundled. */
async function fromSources(): Promise<PageAssets> {
  const { stripTypeScriptTypes } = await import("node:module");
  const directory = resolve(import.meta.dirname, "../../../web");
  const names = (await readdir(directory)).filter((name) => extname(name) in contentTypes && !name.includes(".test."));
  const files = await Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(directory, name), "utf8");
      return [name, extname(name) === ".ts" ? stripTypeScriptTypes(text) : text] as const;
    }),
  );
  const texts = Object.fromEntries(files);
  return asAssets({ ...texts, "main.js": texts["main.ts"] ?? "" });
}

function asAssets(texts: Readonly<Record<string, string>>): PageAssets {
  const entries = Object.entries(texts).map(([name, text]): [string, PageAsset] => {
    return [name, { contentType: contentTypes[extname(name)] ?? "application/octet-stream", text }];
  });
  return new Map(entries);
}
