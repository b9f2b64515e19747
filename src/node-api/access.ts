import { errorMessage } from "../base/errors.ts";
import type { ApiResponse } from "../ports/api-server.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeHandler, NodeRequest } from "../ports/node-server.ts";
import { type Attributes, attributesOf } from "./attributes.ts";
import { plain } from "./answers.ts";

/** The client. */
export interface Identity {
  readonly name: string;
  readonly groups: readonly string[];
  readonly uid?: string;
  /** What its authenticator adds for authorizers, such as the scopes that restrict a token. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/**
 * Authenticates the client. Undefined: no credentials for this method; `invalid`: invalid credentials, so no other
 * method may be tried.
 */
export type Authenticator = (request: NodeRequest) => Promise<Identity | "invalid" | undefined>;

/**
 * Authorizes one of the subresources ({@link Attributes.subresources}), while the client waits.
 * @throws when that is impossible; the response is then 500, never success
 */
export type Authorizer = (who: Identity, what: Attributes, signal: AbortSignal) => Promise<boolean>;

/** Passes authenticated and authorized requests on; 401 and 403 as upstream's. */
export function withAccess(
  handler: NodeHandler,
  authenticators: readonly Authenticator[],
  authorize: Authorizer,
  log: Logger,
): NodeHandler {
  return async (request) => {
    const who = await identify(request, authenticators, log);
    if (who === undefined) return plain(401, "Unauthorized", { "WWW-Authenticate": "Bearer" });
    const path = decodedPath(request.path);
    if (path === undefined) return plain(400, "the path's percent-encoding is broken\n");
    const what = attributesOf(request.method, path);
    const refused = await refusal(who, what, async () => await authorize(who, what, request.signal), log);
    return refused ?? (await handler(request));
  };
}

async function identify(
  request: NodeRequest,
  authenticators: readonly Authenticator[],
  log: Logger,
): Promise<Identity | undefined> {
  for (const authenticate of authenticators) {
    try {
      const found = await authenticate(request);
      if (found === "invalid") return undefined;
      if (found !== undefined) return found;
    } catch (error) {
      log.error("unable to authenticate a request", { path: request.path, error: errorMessage(error) });
      return undefined;
    }
  }
  return undefined;
}

async function refusal(
  who: Identity,
  what: Attributes,
  isAllowed: () => Promise<boolean>,
  log: Logger,
): Promise<ApiResponse | undefined> {
  const { verb, subresources } = what;
  try {
    if (await isAllowed()) return undefined;
  } catch (error) {
    log.error("unable to authorize a request", { user: who.name, verb, error: errorMessage(error) });
    return plain(500, `Authorization error (user=${who.name}, verb=${verb}, resource=nodes)`);
  }
  const wanted = `resource=nodes, subresource(s)=[${subresources.join(" ")}]`;
  return plain(403, `Forbidden (user=${who.name}, verb=${verb}, ${wanted})`);
}

/** Undefined if it cannot be decoded. */
export function decodedPath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
