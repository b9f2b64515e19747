import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Network } from "../ports/network.ts";
import { maxManifestBytes } from "./decode.ts";
import type { SourceDependencies, SourcedPod } from "./source.ts";
import {
  equalBytes,
  type ManifestProblem,
  ProblemReporter,
  type RejectedManifest,
  staticPodsOf,
  tellWarnings,
} from "./static-manifests.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";

export interface HttpSourceConfig {
  /** staticPodURL. */
  readonly url: string;
  /** staticPodURLHeader; the values are secrets. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  /** httpCheckFrequency. */
  readonly periodMs: number;
}

/** How long one request may take, as upstream's. */
export const requestTimeoutMs = 10_000;

/**
 * Static pods from staticPodURL: a pod or a list of pods, fetched every httpCheckFrequency. While the URL can't be
 * fetched or gives something with an error, the pods that it gave last stay; an empty answer means no pods, as upstream.
 */
export class HttpSource {
  readonly #deps: SourceDependencies & { readonly network: Pick<Network, "httpGet"> };
  readonly #config: HttpSourceConfig;
  readonly #reporter: ProblemReporter;
  readonly #place: string;
  /** What was fetched last, and what is wrong with it. */
  #bytes: Uint8Array | undefined;
  #errors: readonly ManifestProblem[] = [];
  #pods: readonly SourcedPod[] | undefined;

  constructor(deps: SourceDependencies & { readonly network: Pick<Network, "httpGet"> }, config: HttpSourceConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#reporter = new ProblemReporter(deps);
    this.#place = displayUrl(config.url);
  }

  /** The present problems of the URL, for display. */
  get rejected(): RejectedManifest[] {
    return this.#reporter.rejected;
  }

  /** Fetches until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const wait = new WakeableWait(this.#deps.clock, "the next poll of the manifest URL");
    while (!signal.aborted) {
      await this.refresh(signal);
      await wait.for(this.#config.periodMs, signal);
    }
  }

  /** Fetches once and delivers what changed. Never rejects. */
  async refresh(signal: AbortSignal): Promise<void> {
    const { clock, network, nodeName } = this.#deps;
    const { url, headers } = this.#config;
    let bytes: Uint8Array;
    try {
      const response = await withDeadline(clock, `GET ${this.#place}`, requestTimeoutMs, signal, (deadline) =>
        network.httpGet({ url, headers, maxBytes: maxManifestBytes, signal: deadline }),
      );
      if (response.status !== 200) throw new Error(`the server returned status ${response.status}`);
      bytes = response.body;
    } catch (error) {
      if (!signal.aborted) this.#reporter.set(this.#place, [{ message: `${this.#place}: ${errorMessage(error)}` }]);
      return;
    }
    if (this.#bytes !== undefined && equalBytes(this.#bytes, bytes)) {
      this.#reporter.set(this.#place, this.#errors);
      return;
    }
    const { pods, errors } = staticPodsOf(bytes, this.#place, { kind: "http", url }, nodeName);
    tellWarnings(this.#deps, this.#place, pods);
    this.#bytes = bytes;
    this.#errors = errors;
    this.#reporter.set(this.#place, this.#errors);
    if (errors.length > 0 && this.#pods !== undefined) return;
    this.#pods = pods;
    this.#deps.deliver({ pods, complete: true });
  }
}

/** A URL without what may be secret in it: user, password and query. Nobody can tell where these are in an invalid one. */
export function displayUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return `${/^\w*/u.exec(url)?.[0] ?? ""}:… (invalid URL)`;
  return `${parsed.protocol}//${parsed.host}${parsed.pathname}${parsed.search === "" ? "" : "?…"}`;
}
