import type { NodeObject } from "../api/node.ts";
import { isNewer } from "../api-client/resource-version.ts";

/** The Node's last version. Responses and the watch use different connections, so older versions may arrive later. */
export class KnownNode {
  #node: NodeObject | undefined;
  /** The last version, also of its deletion. */
  #version: string | undefined;

  get node(): NodeObject | undefined {
    return this.#node;
  }

  /** A response, or a watch event; false when something newer is known. */
  take(node: NodeObject): boolean {
    if (!this.#isNews(node)) return false;
    this.#node = node;
    return true;
  }

  /** The server's version, whatever was known: its store may have been restored. */
  listed(node: NodeObject | undefined): void {
    this.#version = node?.metadata.resourceVersion;
    this.#node = node;
  }

  /** It was deleted, which may be reported with an earlier version of it; false when it was recreated since. */
  gone(node: NodeObject): boolean {
    const isNews = this.#isNews(node);
    if (!isNews && node.metadata.uid !== this.#node?.metadata.uid) return false;
    this.#node = undefined;
    return true;
  }

  /** resourceVersions of a kind grow, also from a deleted Node to its successor (KEP-5504). */
  #isNews({ metadata: { resourceVersion } }: NodeObject): boolean {
    const isNews = resourceVersion === this.#version || isNewer(resourceVersion, this.#version);
    if (isNews) this.#version = resourceVersion;
    return isNews;
  }
}
