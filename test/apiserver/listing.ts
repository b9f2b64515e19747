import { ApiError, badRequest, expired } from "./api-error.ts";
import type { ApiObject, Fields } from "./objects.ts";
import { apiVersionOf, type Resource } from "./resource.ts";
import type { Selector } from "./selectors.ts";
import type { Store } from "./store.ts";

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

/** Parses a client's revision. @throws ApiError 400 if invalid */
export function parseRevision(text: string): number {
  if (!/^\d+$/.test(text)) {
    throw badRequest(`Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: invalid syntax`);
  }
  return Number(text);
}

/** 504: the client has seen a newer revision than this server (e.g. before a restore from a backup). */
export function tooLargeRevision(asked: number, current: number): ApiError {
  return new ApiError(504, "Timeout", `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

interface Page {
  readonly revision: number;
  /** The last key of the page. */
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

/** The revision that a list shows: the newest unless an exact one is requested. */
function revisionOf(request: ListRequest, current: number): number {
  if (request.resourceVersion === "" || request.resourceVersion === "0") return current;
  const asked = parseRevision(request.resourceVersion);
  if (asked > current) throw tooLargeRevision(asked, current);
  return request.resourceVersionMatch === "Exact" ? asked : current;
}

/**
 * A list, in pages if limited. All pages of a list show the same revision.
 * @param shown the revision to show instead of the newest, like a lagging cache
 * @throws ApiError 410 if the revision is no longer kept
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
    // The list has the kind and version of its items.
    items: items.map(([, { kind: _kind, apiVersion: _apiVersion, ...item }]) => item),
  };
}
