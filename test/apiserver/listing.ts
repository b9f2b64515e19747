import { ApiError, badRequest, expired } from "./api-error.ts";
import type { ApiObject, Fields } from "./objects.ts";
import { apiVersionOf, type Resource } from "./resource.ts";
import type { Selector } from "./selectors.ts";
import type { Store } from "./store.ts";

/** What a list is to hold. */
export interface ListRequest {
  readonly resource: Resource;
  /** `""` for all namespaces. */
  readonly namespace: string;
  readonly selects: Selector;
  readonly selectsAll: boolean;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  /** 0: no limit. */
  readonly limit: number;
  readonly continueToken: string;
}

/** A revision as clients send it. @throws ApiError 400 for what is none */
export function parseRevision(text: string): number {
  if (!/^\d+$/.test(text)) {
    throw badRequest(`Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: invalid syntax`);
  }
  return Number(text);
}

/** 504: the client has seen a revision that this server has not (as after a restore from a backup). */
export function tooLargeRevision(asked: number, current: number): ApiError {
  return new ApiError(504, "Timeout", `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

interface Page {
  readonly revision: number;
  /** The key after which the next page begins. */
  readonly after: string;
}

function readToken(token: string): Page {
  try {
    const [revision, after] = JSON.parse(Buffer.from(token, "base64url").toString()) as [number, string];
    return { revision, after };
  } catch {
    throw badRequest("continue key is not valid");
  }
}

/** The revision that a list shows. Without a wish, or with "at least", it is the newest. */
function revisionOf(request: ListRequest, current: number): number {
  if (request.resourceVersion === "" || request.resourceVersion === "0") return current;
  const asked = parseRevision(request.resourceVersion);
  if (asked > current) throw tooLargeRevision(asked, current);
  return request.resourceVersionMatch === "Exact" ? asked : current;
}

/**
 * A list, page by page if it is limited; all pages of one list show one revision.
 * @param shown the revision to show instead of the newest, as a cache that lags would
 * @throws ApiError 410 when the revision is no longer known
 */
export function listObjects(store: Store, request: ListRequest, shown?: number): Fields {
  const { resource, namespace, limit } = request;
  const page = request.continueToken === "" ? undefined : readToken(request.continueToken);
  const newest = shown ?? store.revision;
  const revision = page?.revision ?? revisionOf(request, newest);
  let objects: Map<string, ApiObject>;
  try {
    objects = store.at(resource.storage, revision);
  } catch (error) {
    if (page === undefined || !(error instanceof ApiError)) throw error;
    throw expired(
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
    );
  }
  const converted = [...objects]
    .filter(
      ([key, { metadata }]) => key > (page?.after ?? "") && (namespace === "" || metadata.namespace === namespace),
    )
    .map(([key, object]) => [key, resource.conversion?.fromStored(object) ?? object] as const)
    .filter(([, object]) => request.selects(object))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  const isCut = limit > 0 && converted.length > limit;
  const items = isCut ? converted.slice(0, limit) : converted;
  const next = isCut ? Buffer.from(JSON.stringify([revision, items.at(-1)?.[0]])).toString("base64url") : undefined;
  const remaining = isCut && request.selectsAll ? converted.length - limit : undefined;
  return {
    kind: `${resource.kind}List`,
    apiVersion: apiVersionOf(resource),
    metadata: {
      resourceVersion: String(revision),
      ...(next === undefined ? {} : { continue: next }),
      ...(remaining === undefined ? {} : { remainingItemCount: remaining }),
    },
    // The list says of what kind and version its items are.
    items: items.map(([, { kind: _kind, apiVersion: _apiVersion, ...item }]) => item),
  };
}
