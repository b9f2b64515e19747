import { z } from "zod";
import type { ApiClient } from "../api-client/client.ts";
import type { ApiObject, Resource } from "../api-client/resource.ts";
import { ApiDecodeError } from "../api-client/api-error.ts";
import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodRef, Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import { podRef } from "../runtime/pod-ref.ts";

type Projection = NonNullable<NonNullable<Volume["projected"]>["sources"]>[number];
/** What a projected volume asks for. */
export type TokenSource = NonNullable<Projection["serviceAccountToken"]>;

interface Token {
  readonly token: string;
  readonly expiresAtMs: number;
  readonly renewAtMs: number;
}

interface TokenAnswer extends ApiObject {
  readonly token: string;
  readonly expiresAtMs: number;
}

const Answer = z.looseObject({ status: z.looseObject({ token: z.string(), expirationTimestamp: z.string() }) });

/** TokenRequests are made below a service account (authentication.k8s.io/v1, KEP-1205). */
const tokenRequests: Resource<TokenAnswer> = {
  base: "/api/v1",
  plural: "serviceaccounts",
  decode: (value) => {
    const answer = Answer.safeParse(value);
    const expiresAtMs = Date.parse(answer.data?.status.expirationTimestamp ?? "");
    if (!answer.success || Number.isNaN(expiresAtMs)) throw new ApiDecodeError("TokenRequest: the answer has no token");
    return { metadata: { name: "" }, token: answer.data.status.token, expiresAtMs };
  },
};

const defaultExpirationSeconds = 3600;
/** As upstream: a token is renewed after 80 % of its life or a day, a little earlier or later than others. */
const usedPart = 0.8;
const longestUseMs = 24 * 3_600_000;
const jitterMs = 10_000;
const retryMs = 10_000;

export interface TokenDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Recorder;
}

/** Tokens of pods' service accounts, each bound to its pod, asked for when they are needed and renewed in time. */
export class ServiceAccountTokens {
  readonly #deps: TokenDependencies;
  readonly #tokens = new Map<string, Token>();
  readonly #problems = new Map<string, string>();
  readonly #failedAtMs = new Map<string, number>();

  constructor(deps: TokenDependencies) {
    this.#deps = deps;
  }

  /** The token, or why there is none. Never throws. */
  get(pod: Pod, source: TokenSource): { readonly token: string } | { readonly problem: string } {
    const key = keyOf(pod, source);
    const found = this.#tokens.get(key);
    if (found !== undefined && found.expiresAtMs > this.#deps.clock.now()) return { token: found.token };
    return { problem: this.#problems.get(key) ?? "the token was not asked for yet" };
  }

  /** Asks for those of the pod's tokens that it has not, or that have to be renewed. Rejects only for the signal. */
  async refresh(pod: Pod, signal: AbortSignal): Promise<void> {
    const sources = (pod.spec.volumes ?? [])
      .flatMap((volume) => volume.projected?.sources ?? [])
      .flatMap(({ serviceAccountToken }) => serviceAccountToken ?? []);
    await Promise.all(sources.map((source) => this.#refresh(pod, source, signal)));
  }

  /** The pod is gone, and its tokens with it. */
  remove(uid: string): void {
    for (const map of [this.#tokens, this.#problems, this.#failedAtMs]) {
      for (const key of map.keys()) if (key.startsWith(`${uid} `)) map.delete(key);
    }
  }

  async #refresh(pod: Pod, source: TokenSource, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    const key = keyOf(pod, source);
    const found = this.#tokens.get(key);
    if (found !== undefined && found.renewAtMs > clock.now()) return;
    // One that is still good can wait for a server that is away.
    const failedAtMs = this.#failedAtMs.get(key);
    if (found !== undefined && failedAtMs !== undefined && clock.monotonic() - failedAtMs < retryMs) return;
    try {
      const { token, expiresAtMs } = await this.#request(pod, source, found !== undefined, signal);
      const useMs = Math.min((expiresAtMs - clock.now()) * usedPart, longestUseMs);
      const renewAtMs = clock.now() + useMs - random.uniform() * jitterMs;
      this.#tokens.set(key, { token, expiresAtMs, renewAtMs });
      this.#problems.delete(key);
      this.#failedAtMs.delete(key);
    } catch (error) {
      signal.throwIfAborted();
      // A token that is still good is used on.
      this.#failedAtMs.set(key, clock.monotonic());
      this.#problems.set(key, `failed to fetch token: ${errorMessage(error)}`);
    }
  }

  async #request(pod: Pod, source: TokenSource, renews: boolean, signal: AbortSignal): Promise<TokenAnswer> {
    const { client, clock, journal } = this.#deps;
    const { namespace } = pod.metadata;
    const account = pod.spec.serviceAccountName || "default";
    const ref: PodRef = podRef(pod);
    const body = {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {
        audiences: source.audience ? [source.audience] : [],
        expirationSeconds: source.expirationSeconds ?? defaultExpirationSeconds,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name: ref.name, uid: ref.uid },
      },
    };
    const cause = renews
      ? { code: "TokenExpires", message: "the token that the pod has expires soon" }
      : { code: "TokenWanted", message: "a projected volume of the pod asks for a token" };
    const action = {
      what: "RequestToken",
      message: `asking for a token of service account ${account}`,
      pod: ref,
      cause,
    };
    const place = { namespace, name: account, subresource: "token" };
    return await perform(journal, clock, action, () =>
      client.create({ lane: "objects", resource: tokenRequests, place, signal }, body),
    );
  }
}

function keyOf(pod: Pod, { audience = "", expirationSeconds = defaultExpirationSeconds }: TokenSource): string {
  return [pod.metadata.uid, pod.spec.serviceAccountName ?? "", expirationSeconds, audience].join(" ");
}
