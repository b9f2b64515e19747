import * as z from "zod";
import type { ApiClient } from "../api-client/client.ts";
import type { ApiObject, Resource } from "../api-client/resource.ts";
import { ApiDecodeError, askedPauseMs } from "../api-client/api-error.ts";
import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { eitherSignal } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import { podRef } from "../runtime/pod-ref.ts";

type Projection = NonNullable<NonNullable<Volume["projected"]>["sources"]>[number];
/** The token request of a projected volume. */
export type TokenSource = NonNullable<Projection["serviceAccountToken"]> & {
  /** Of the account: excludes another one of its name. Only for credential providers. */
  readonly accountUid?: string;
};

/** Times count from the request: the server's clock may differ. */
interface Token {
  readonly token: string;
  /** As the API server says it; empty: it does not. */
  readonly expirationTimestamp: string;
  /** Monotonic ms. */
  readonly expiresAtMs: number;
  /** Monotonic ms. */
  readonly renewAtMs: number;
  /** Wall clock ms: after a suspend only that clock has advanced. */
  readonly renewAtWallMs: number;
}

interface TokenAnswer extends ApiObject {
  readonly token: string;
  readonly expirationTimestamp: string;
  /** Its lifetime; undefined: as requested. */
  readonly lifeSeconds: number | undefined;
}

const Answer = z.looseObject({
  spec: z.looseObject({ expirationSeconds: z.number().positive().nullish() }).nullish(),
  status: z.looseObject({ token: z.string(), expirationTimestamp: z.string().nullish() }),
});

/** TokenRequests are made below a service account (authentication.k8s.io/v1, KEP-1205). */
const tokenRequests: Resource<TokenAnswer> = {
  base: "/api/v1",
  plural: "serviceaccounts",
  kind: "TokenRequest",
  decode: (value) => {
    const answer = Answer.safeParse(value);
    if (!answer.success) throw new ApiDecodeError("TokenRequest: the response has no token");
    const { spec, status } = answer.data;
    const { token, expirationTimestamp } = status;
    const lifeSeconds = spec?.expirationSeconds ?? undefined;
    return { metadata: { name: "" }, token, expirationTimestamp: expirationTimestamp ?? "", lifeSeconds };
  },
};

const defaultExpirationSeconds = 3600;
/** As upstream: a token is renewed after 80 % of its lifetime or a day, with jitter. */
const usedPart = 0.8;
const longestUseMs = 24 * 3_600_000;
const jitterMs = 10_000;
const retryMs = 10_000;

/** A token that is good now. */
export interface KnownToken {
  readonly token: string;
  /** RFC 3339; empty: the API server did not say. */
  readonly expirationTimestamp: string;
}

export interface TokenDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Recorder;
  /** Called with a pod that got a token without waiting for it. */
  readonly renewed: (pod: Pod, cause: Cause) => void;
}

/** Service account tokens of pods, each bound to its pod, requested on demand and renewed in time. */
export class ServiceAccountTokens {
  readonly #deps: TokenDependencies;
  readonly #tokens = new Map<string, Token>();
  readonly #problems = new Map<string, string>();
  readonly #failedAtMs = new Map<string, number>();
  /** Monotonic ms until when the server throttles requests. */
  readonly #pausedUntilMs = new Map<string, number>();
  readonly #renewing = new Set<string>();
  /** By pod: aborts all its requests when the pod is removed. */
  readonly #aborts = new Map<PodUid, AbortController>();
  #stopped = false;

  constructor(deps: TokenDependencies) {
    this.#deps = deps;
  }

  /** The token, or why there is none; undefined: unknown. Never throws. */
  get(pod: Pod, source: TokenSource): { readonly token: string } | { readonly problem: string } | undefined {
    const known = this.known(pod, source);
    return known !== undefined && "token" in known ? { token: known.token } : known;
  }

  /** The same, with its end. */
  known(pod: Pod, source: TokenSource): KnownToken | { readonly problem: string } | undefined {
    const key = keyOf(pod, source);
    const found = this.#tokens.get(key);
    if (found !== undefined && found.expiresAtMs > this.#deps.clock.monotonic()) {
      return { token: found.token, expirationTimestamp: found.expirationTimestamp };
    }
    const problem = this.#problems.get(key);
    return problem === undefined ? undefined : { problem };
  }

  /** Requests missing tokens of the volumes, and those due for renewal. Rejects only for the signal. */
  async refresh(pod: Pod, volumes: readonly Volume[], signal: AbortSignal): Promise<void> {
    await Promise.all(sourcesOf(volumes).map((source) => this.#refresh(pod, source, signal)));
  }

  /** The same for the whole pod, without waiting. */
  renew(pod: Pod): void {
    for (const source of sourcesOf(pod.spec.volumes ?? [])) {
      const key = keyOf(pod, source);
      const failedAtMs = this.#failedAtMs.get(key) ?? Number.NEGATIVE_INFINITY;
      if (this.#renewing.has(key) || this.#deps.clock.monotonic() - failedAtMs < retryMs) continue;
      this.#renewing.add(key);
      void this.#renew(pod, source).finally(() => this.#renewing.delete(key));
    }
  }

  /** Whether the pod has all tokens of the volumes. */
  has(pod: Pod, volumes: readonly Volume[]): boolean {
    return sourcesOf(volumes).every((source) => "token" in (this.get(pod, source) ?? {}));
  }

  /**
   * One token, requested unless there is a valid one.
   * @throws Error when the API server gives none, or the signal's reason
   */
  async obtain(pod: Pod, source: TokenSource, signal: AbortSignal): Promise<KnownToken> {
    await this.#refresh(pod, source, signal);
    const found = this.known(pod, source);
    if (found !== undefined && "token" in found) return found;
    throw new Error(found?.problem ?? "the pod is gone");
  }

  /** The pod is removed, or has ended for good: its tokens and requests are dropped. */
  remove(uid: PodUid): void {
    this.#aborts.get(uid)?.abort(new Error("the pod is gone"));
    this.#aborts.delete(uid);
    for (const map of [this.#tokens, this.#problems, this.#failedAtMs, this.#pausedUntilMs]) {
      for (const key of map.keys()) if (key.startsWith(`${uid} `)) map.delete(key);
    }
  }

  /** Ends all requests. */
  stop(): void {
    this.#stopped = true;
    for (const abort of this.#aborts.values()) abort.abort(new Error("the node is stopping"));
  }

  async #renew(pod: Pod, source: TokenSource): Promise<void> {
    const key = keyOf(pod, source);
    const before = this.#tokens.get(key);
    const { signal } = this.#abortOf(pod);
    await this.#refresh(pod, source, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    const after = this.#tokens.get(key);
    if (after === undefined || after === before) return;
    this.#deps.renewed(pod, { code: "TokenIssued", message: "a token of the pod's service account was issued" });
  }

  #abortOf({ metadata: { uid } }: Pod): AbortController {
    const known = this.#aborts.get(uid);
    if (known !== undefined) return known;
    const abort = new AbortController();
    if (this.#stopped) abort.abort(new Error("the node is stopping"));
    this.#aborts.set(uid, abort);
    return abort;
  }

  async #refresh(pod: Pod, source: TokenSource, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    const key = keyOf(pod, source);
    const found = this.#tokens.get(key);
    if (found !== undefined && found.renewAtMs > clock.monotonic() && found.renewAtWallMs > clock.now()) return;
    // A valid one can wait for a server that is away.
    const failedAtMs = this.#failedAtMs.get(key);
    if (found !== undefined && failedAtMs !== undefined && clock.monotonic() - failedAtMs < retryMs) return;
    if ((this.#pausedUntilMs.get(key) ?? 0) > clock.monotonic()) return;
    const [askedMs, askedWallMs] = [clock.monotonic(), clock.now()];
    const podEnd = this.#abortOf(pod).signal;
    using either = eitherSignal(signal, podEnd);
    try {
      const { token, expirationTimestamp, lifeSeconds } = await this.#request(
        pod,
        source,
        found !== undefined,
        either.signal,
      );
      // Nothing would remove the entry of a removed pod later.
      if (podEnd.aborted) return;
      const lifeMs = (lifeSeconds ?? source.expirationSeconds ?? defaultExpirationSeconds) * 1000;
      const useMs = Math.min(lifeMs * usedPart, longestUseMs) - random.uniform() * jitterMs;
      // Otherwise pods would use one that is no longer good.
      invariant("a token is renewed before it expires", useMs < lifeMs, () => `${key}: ${useMs} of ${lifeMs} ms`);
      const times = { expiresAtMs: askedMs + lifeMs, renewAtMs: askedMs + useMs, renewAtWallMs: askedWallMs + useMs };
      this.#tokens.set(key, { token, expirationTimestamp, ...times });
      this.#problems.delete(key);
      this.#failedAtMs.delete(key);
      this.#pausedUntilMs.delete(key);
    } catch (error) {
      signal.throwIfAborted();
      if (podEnd.aborted) return;
      // A token that is still valid stays in use.
      const nowMs = clock.monotonic();
      const pauseMs = askedPauseMs(error);
      this.#failedAtMs.set(key, nowMs);
      this.#pausedUntilMs.set(key, nowMs + pauseMs);
      const pause = pauseMs > 0 ? `; the API server requests a pause of ${pauseMs / 1000} s` : "";
      this.#problems.set(key, `failed to fetch token: ${errorMessage(error)}${pause}`);
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
      ...(source.accountUid !== undefined && { metadata: { uid: source.accountUid } }),
      spec: {
        audiences: source.audience ? [source.audience] : [],
        expirationSeconds: source.expirationSeconds ?? defaultExpirationSeconds,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name: ref.name, uid: ref.uid },
      },
    };
    const who =
      source.accountUid === undefined ? "a projected volume of the pod" : "a credential provider for its image";
    const cause: Cause = renews
      ? { code: "TokenExpires", message: "the pod's token expires soon" }
      : { code: "TokenWanted", message: `${who} needs a token` };
    const action: ActionInput = {
      what: "RequestToken",
      message: `request a token for service account ${account}`,
      pod: ref,
      cause,
    };
    const place = { namespace, name: account, subresource: "token" };
    return await perform(journal, clock, action, () =>
      client.create({ lane: "objects", resource: tokenRequests, place, signal }, body),
    );
  }
}

function sourcesOf(volumes: readonly Volume[]): TokenSource[] {
  return volumes
    .flatMap((volume) => volume.projected?.sources ?? [])
    .flatMap(({ serviceAccountToken }) => serviceAccountToken ?? []);
}

function keyOf(pod: Pod, source: TokenSource): string {
  const { audience = "", expirationSeconds = defaultExpirationSeconds, accountUid = "" } = source;
  return [pod.metadata.uid, pod.spec.serviceAccountName ?? "", accountUid, expirationSeconds, audience].join(" ");
}
