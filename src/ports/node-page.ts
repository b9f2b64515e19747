import type { ApiRequest } from "./api-server.ts";

/** A file of the node page, e.g. `style.css`. */
export interface PageAsset {
  readonly contentType: string;
  readonly text: string;
}

/** The page's files by name; `index.html` is the page itself. They contain no data of this node. */
export type PageAssets = ReadonlyMap<string, PageAsset>;

/** A request of a browser. */
export interface PageRequest extends ApiRequest {
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}
