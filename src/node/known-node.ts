import type { NodeObject } from "../api/node.ts";
import { isNewer } from "../api-client/resource-version.ts";

/**
 * The Node as the server had it last. Answers and the watch come by connections of their own, so that what is older may
 * come later.
 */
export class KnownNode {
  #node: NodeObject | undefined;
  /** Of what is known of it, also that it is gone. */
  #version: string | undefined;

  get node(): NodeObject | undefined {
    return this.#node;
  }

  /** An answer, or news of the watch; false when something newer is known. */
  take(node: NodeObject): boolean {
    if (!this.#isNews(node)) return false;
    this.#node = node;
    return true;
  }

  /** What the server has, whatever was known: its store may have an earlier state than it had. */
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

  /** Versions of a kind grow, also from a Node that is gone to the next one of its name (KEP-5504). */
  #isNews({ metadata: { resourceVersion } }: NodeObject): boolean {
    const isNews = resourceVersion === this.#version || isNewer(resourceVersion, this.#version);
    if (isNews) this.#version = resourceVersion;
    return isNews;
  }
}
