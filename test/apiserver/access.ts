import type { TLSSocket } from "node:tls";
import { ApiError, type ErrorSubject } from "./api-error.ts";
import { authenticate, type TokenAuthenticator, type User } from "./authn.ts";
import { type AccessRequest, type Authorizer, bootstrappers, everybody, masters, refusal } from "./authz.ts";
import { impersonated } from "./impersonation.ts";
import { NodeAuthorizer } from "./node-authorizer.ts";
import type { Reviewer } from "./reviews.ts";
import type { Store } from "./store.ts";
import { bootstrapTokens } from "./bootstrap-tokens.ts";
import { TokenIssuer } from "./tokens.ts";

/** Authentication and authorization. */
export class Access implements Reviewer {
  readonly issuer: TokenIssuer;
  readonly #authorizers: Authorizer[];
  readonly #tokens: Map<string, User>;
  readonly #bootstrapTokens: TokenAuthenticator;

  /** @param tokens users by bearer token */
  constructor(store: Store, tokens: Readonly<Record<string, User>>) {
    this.issuer = new TokenIssuer(store);
    this.#tokens = new Map(Object.entries(tokens));
    this.#bootstrapTokens = bootstrapTokens(store);
    const nodes = new NodeAuthorizer(store);
    this.#authorizers = [masters, everybody, bootstrappers, nodes.authorize];
  }

  /** Adds a token. */
  addToken(token: string, user: User): void {
    this.#tokens.set(token, user);
  }

  removeToken(token: string): void {
    this.#tokens.delete(token);
  }

  /** Adds an authorizer: a test's stand-in for RBAC. */
  allow(authorizer: Authorizer): void {
    this.#authorizers.push(authorizer);
  }

  /**
   * The acting user of a request.
   * @param headers raw headers: names and values alternate
   * @throws ApiError 401; 400 or 403 for a rejected impersonation
   */
  authenticate(socket: TLSSocket, authorization: string | undefined, headers: readonly string[]): User {
    const user = authenticate(socket, authorization, [
      (token) => this.#tokens.get(token),
      this.issuer.authenticate,
      this.#bootstrapTokens,
    ]);
    return impersonated(user, headers, (request) => this.require(request));
  }

  authorize(request: AccessRequest): string | undefined {
    const reasons: string[] = [];
    for (const authorizer of this.#authorizers) {
      const answer = authorizer(request);
      if (answer === true) return undefined;
      if (typeof answer === "string") reasons.push(answer);
    }
    return refusal(request, reasons);
  }

  /** @throws ApiError 403 */
  require(request: AccessRequest): void {
    const refused = this.authorize(request);
    if (refused === undefined) return;
    const { group, resource, name, path } = request;
    if (path !== undefined) throw new ApiError(403, "Forbidden", `forbidden: ${refused}`);
    const subject: ErrorSubject = { group, resource, name };
    const full = group === "" ? resource : `${resource}.${group}`;
    const what = name === "" ? full : `${full} ${JSON.stringify(name)}`;
    throw new ApiError(403, "Forbidden", `${what} is forbidden: ${refused}`, { subject });
  }

  token(token: string, audiences: readonly string[]): { user: User; audiences: readonly string[] } | undefined {
    const user = this.#tokens.get(token);
    if (user === undefined) {
      const found = this.issuer.review(token, audiences);
      if (found === undefined) return undefined;
      return { ...found, user: { ...found.user, groups: [...found.user.groups, "system:authenticated"] } };
    }
    return { user: { ...user, groups: [...user.groups, "system:authenticated"] }, audiences };
  }
}
