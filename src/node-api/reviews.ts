import type { ApiClient } from "../api-client/client.ts";
import { type ApiObject, isRecord, type Resource } from "../api-client/resource.ts";
import type { Clock } from "../ports/clock.ts";
import type { Hashing } from "../ports/hashing.ts";
import type { Authenticator, Authorizer, Identity } from "./access.ts";
import { type RetryDependencies, retried } from "./review-retry.ts";

/** What asking the API server about clients needs. */
export interface ReviewDependencies extends RetryDependencies {
  readonly client: Pick<ApiClient, "create">;
  readonly hashing: Pick<Hashing, "sha256">;
}

/** The used fields of a review's response. */
interface Review extends ApiObject {
  readonly status: Readonly<Record<string, unknown>>;
}

/** Maximum number of cached responses: clients that try tokens must not fill the memory. */
const maxRemembered = 4096;

const tokenReviews = reviews("/apis/authentication.k8s.io/v1", "tokenreviews", "TokenReview");
const accessReviews = reviews("/apis/authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview");

function reviews(base: string, plural: string, kind: string): Resource<Review> {
  const decode = (value: unknown): Review => {
    const status = isRecord(value) ? value["status"] : undefined;
    // Reviews have no names.
    return { metadata: { name: "" }, status: isRecord(status) ? status : {} };
  };
  return { base, plural, kind, decode };
}

/**
 * Authenticates bearer tokens by a TokenReview at the API server (authentication.webhook). Responses are cached,
 * rejections too, unless they give an error: the server could perhaps not judge the token. Tokens are stored only as
 * digests.
 */
export function byTokenReview(deps: ReviewDependencies, ttlMs: number): Authenticator {
  const { client, clock, hashing } = deps;
  const remembered = new Remembered<Identity | "invalid">(clock);
  return async ({ headers, signal }) => {
    const token = /^Bearer +(\S+) *$/i.exec(headers["authorization"] ?? "")?.[1];
    if (token === undefined) return undefined;
    const key = hashing.sha256(token);
    const known = remembered.get(key);
    if (known !== undefined) return known;
    const call = { lane: "objects", resource: tokenReviews, place: {}, signal } as const;
    const body = { ...kindOf("authentication.k8s.io/v1", "TokenReview"), spec: { token } };
    const { status } = await retried(deps, signal, () => client.create(call, body));
    const { authenticated, user, error } = status;
    if (authenticated !== true && typeof error === "string" && error !== "") throw new Error(`token review: ${error}`);
    const found = authenticated === true ? identityOf(user) : "invalid";
    remembered.set(key, found, ttlMs);
    return found;
  };
}

/** Authorizes by a SubjectAccessReview at the API server (authorization.mode Webhook). */
export function byAccessReview(
  deps: Omit<ReviewDependencies, "hashing">,
  nodeName: string,
  ttl: { readonly allowedMs: number; readonly deniedMs: number },
): Authorizer {
  const { client, clock } = deps;
  const remembered = new Remembered<boolean>(clock);
  return async (who, { verb, subresources }, waiting) => {
    for (const subresource of subresources) {
      const resourceAttributes = { verb, version: "v1", resource: "nodes", name: nodeName, subresource };
      const { name: user, groups, uid, extra } = who;
      const spec = { user, groups, ...(uid !== undefined && { uid }), ...(extra && { extra }), resourceAttributes };
      const key = JSON.stringify(spec);
      let allowed = remembered.get(key);
      if (allowed === undefined) {
        // Not the client's signal: the response serves later clients too, and the API client has its own deadline. Only
        // further attempts are for the client.
        const { signal } = new AbortController();
        const call = { lane: "objects", resource: accessReviews, place: {}, signal } as const;
        const body = { ...kindOf("authorization.k8s.io/v1", "SubjectAccessReview"), spec };
        const { status } = await retried(deps, waiting, () => client.create(call, body));
        allowed = status["allowed"] === true && status["denied"] !== true;
        remembered.set(key, allowed, allowed ? ttl.allowedMs : ttl.deniedMs);
      }
      if (allowed) return true;
    }
    return false;
  };
}

function kindOf(apiVersion: string, kind: string): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion, kind };
}

/** A user without a name is invalid. */
function identityOf(user: unknown): Identity | "invalid" {
  if (!isRecord(user)) return "invalid";
  const { username: name, uid, groups, extra } = user;
  if (typeof name !== "string" || name === "") return "invalid";
  const more = isRecord(extra) ? Object.entries(extra).map(([key, values]) => [key, textsOf(values)] as const) : [];
  return {
    name,
    groups: textsOf(groups),
    ...(typeof uid === "string" && uid !== "" && { uid }),
    ...(more.length > 0 && { extra: Object.fromEntries(more) }),
  };
}

function textsOf(values: unknown): readonly string[] {
  return Array.isArray(values) ? values.filter((value) => typeof value === "string") : [];
}

/** A cache with expiry; drops the oldest entries when it is full. */
class Remembered<T> {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #answers = new Map<string, { readonly answer: T; readonly untilMs: number }>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  get(key: string): T | undefined {
    const found = this.#answers.get(key);
    return found === undefined || found.untilMs <= this.#clock.monotonic() ? undefined : found.answer;
  }

  set(key: string, answer: T, ttlMs: number): void {
    this.#answers.delete(key);
    this.#answers.set(key, { answer, untilMs: this.#clock.monotonic() + ttlMs });
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= maxRemembered) return;
      this.#answers.delete(oldest);
    }
  }
}
