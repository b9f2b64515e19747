import * as z from "zod";
import { isApiError, isExpired } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import { decoder, type Resource } from "../api-client/resource.ts";
import { watchEvents } from "../api-client/watch-stream.ts";
import { DeadlineError, withDeadline } from "../base/deadline.ts";
import type { Clock } from "../ports/clock.ts";

const Condition = z.object({
  type: z.string(),
  reason: z.string().nullish(),
  message: z.string().nullish(),
});
const SigningRequest = z.object({
  metadata: z.object({ name: z.string(), uid: z.string().optional(), resourceVersion: z.string().optional() }),
  spec: z.object({ signerName: z.string().nullish() }),
  status: z.object({ conditions: z.array(Condition).nullish(), certificate: z.string().nullish() }).nullish(),
});
/** certificates.k8s.io/v1 CertificateSigningRequest, as far as the requester reads it. */
export type SigningRequest = z.infer<typeof SigningRequest>;

const signingRequests: Resource<SigningRequest> = {
  base: "/apis/certificates.k8s.io/v1",
  plural: "certificatesigningrequests",
  kind: "CertificateSigningRequest",
  decode: decoder(SigningRequest, "CertificateSigningRequest"),
};

/** What was made of a request. */
export type Decision =
  | { readonly kind: "issued"; readonly certificate: string }
  /** The request was denied or failed. */
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "approved" }
  | { readonly kind: "pending" };

/** What was made of a request so far. Pure. */
export function decisionOf({ status }: SigningRequest): Decision {
  const conditions = status?.conditions ?? [];
  const no = conditions.find(({ type }) => type === "Denied" || type === "Failed");
  if (no !== undefined) {
    const words = [no.reason, no.message].filter(Boolean).join(": ");
    return { kind: "refused", why: `${no.type === "Denied" ? "was denied" : "failed"}${words && ` (${words})`}` };
  }
  if (conditions.every(({ type }) => type !== "Approved")) return { kind: "pending" };
  const { certificate } = status ?? {};
  return certificate
    ? { kind: "issued", certificate: Buffer.from(certificate, "base64").toString() }
    : { kind: "approved" };
}

export interface RequestSpec {
  readonly name: string;
  readonly signerName: string;
  /** PEM (PKCS #10). */
  readonly request: string;
  readonly usages: readonly string[];
  /** What follows when it is refused, for people. */
  readonly afterRefusal: string;
}

/** The request was denied or failed: it is final. */
export class RequestRefusedError extends Error {
  /** Without the request's name: `was denied (…)`. */
  readonly why: string;

  constructor({ name, afterRefusal }: Pick<RequestSpec, "name" | "afterRefusal">, why: string) {
    super(`request ${name} ${why}; ${afterRefusal}`);
    this.name = "RequestRefusedError";
    this.why = why;
  }
}

export interface RequestDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  /** The request waits for others; called again when the reason changes. */
  readonly onWaiting: (decision: Decision) => void;
}

/** How long one wait for a decision lasts, as upstream's. */
const decisionLimitMs = 15 * 60_000;
/** How long a watch runs before the request is read again. */
const watchSeconds = 60;
const watchLimitMs = 75_000;
/** Pause between a closed watch and the next read. */
const restMs = 1000;

/**
 * Requests a certificate and waits until it is issued. An existing request of that name is reused.
 * @returns the certificate, PEM
 * @throws RequestRefusedError, Error for any other end of the request, and as {@link ApiClient}
 */
export async function requestCertificate(
  deps: RequestDependencies,
  spec: RequestSpec,
  signal: AbortSignal,
): Promise<string> {
  const { clock } = deps;
  let last: Decision = { kind: "pending" };
  const wait = `the request for a certificate ${spec.name} to be decided`;
  try {
    const made = await createOrFind(deps, spec, signal);
    return await withDeadline(clock, wait, decisionLimitMs, signal, async (deadline) => {
      const onWaiting = (decision: Decision): void => {
        last = decision;
        deps.onWaiting(decision);
      };
      return await untilDecided({ ...deps, onWaiting }, spec, made, deadline);
    });
  } catch (error) {
    signal.throwIfAborted();
    if (!isDeadlineOf(wait, error)) throw error;
    const minutes = decisionLimitMs / 60_000;
    throw new Error(`${waitsFor(spec.name, last, spec.signerName)}, for ${minutes} minutes already`, {
      cause: error,
    });
  }
}

/** The pending action and its actor, in one clause. Pure. */
export function waitsFor(name: string, { kind }: Decision, signerName: string): string {
  return kind === "approved"
    ? `request ${name} was approved and waits for its signer (${signerName}, usually kube-controller-manager)`
    : `request ${name} waits to be approved (kubectl certificate approve ${name})`;
}

async function createOrFind(
  { client }: RequestDependencies,
  { name, signerName, request, usages }: RequestSpec,
  signal: AbortSignal,
): Promise<SigningRequest> {
  const call = { lane: "objects", resource: signingRequests, signal } as const;
  const object = {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name },
    spec: { request: Buffer.from(request).toString("base64"), signerName, usages },
  };
  try {
    return await client.create({ ...call, place: {} }, object);
  } catch (error) {
    if (!isApiError(error, "AlreadyExists")) throw error;
  }
  const found = await client.get({ ...call, place: { name } });
  if (found.spec.signerName === signerName) return found;
  throw new Error(`request ${name} already exists for another signer: delete it (kubectl delete csr ${name})`);
}

async function untilDecided(
  { client, clock, onWaiting }: RequestDependencies,
  spec: RequestSpec,
  made: SigningRequest,
  signal: AbortSignal,
): Promise<string> {
  const { name, uid } = made.metadata;
  const call = { lane: "objects", resource: signingRequests, signal } as const;
  let waiting: Decision["kind"] | undefined;
  const judged = (request: SigningRequest): string | undefined => {
    if (request.metadata.uid !== uid) throw new Error(`request ${name} was replaced`);
    const decision = decisionOf(request);
    if (decision.kind === "issued") return decision.certificate;
    if (decision.kind === "refused") throw new RequestRefusedError(spec, decision.why);
    if (decision.kind !== waiting) onWaiting(decision);
    waiting = decision.kind;
    return undefined;
  };
  const news = `watch events of request ${name}`;
  for (let request = made; ; request = await client.get({ ...call, place: { name } })) {
    const issued = judged(request);
    if (issued !== undefined) return issued;
    const query = {
      watch: true,
      fieldSelector: `metadata.name=${name}`,
      resourceVersion: request.metadata.resourceVersion,
      timeoutSeconds: watchSeconds,
    };
    try {
      const watched = await withDeadline(clock, news, watchLimitMs, signal, async (limit) =>
        watchFor({ client, call: { ...call, signal: limit, place: {}, query }, name }, judged),
      );
      if (watched !== undefined) return watched;
    } catch (error) {
      // A watch is only a hint to read again.
      if (!isDeadlineOf(news, error) && !isExpired(error)) throw error;
    }
    await clock.sleep(`recheck of request ${name}`, restMs, signal);
  }
}

function isDeadlineOf(wait: string, error: unknown): boolean {
  return error instanceof DeadlineError && error.wait === wait;
}

interface WatchCall {
  readonly client: ApiClient;
  readonly call: Parameters<ApiClient["watch"]>[0];
  readonly name: string;
}

/** Undefined when the watch ended without a decision. */
async function watchFor(
  { client, call, name }: WatchCall,
  judged: (request: SigningRequest) => string | undefined,
): Promise<string | undefined> {
  for await (const event of watchEvents(`watch of request ${name}`, await client.watch(call))) {
    if (event.type === "BOOKMARK") continue;
    if (event.type === "DELETED") throw new Error(`request ${name} was deleted before it was decided`);
    const certificate = judged(signingRequests.decode(event.object));
    if (certificate !== undefined) return certificate;
  }
  return undefined;
}
