import type { ApiClient } from "../api-client/client.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { ServingSettings } from "../config/serving.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { type Authenticator, type Authorizer, withAccess } from "../node-api/access.ts";
import { anonymous, byCertificate, byToken, orAnonymous, parseTokenFile } from "../node-api/authenticators.ts";
import { allowEverybody, allowKnown } from "../node-api/authorizers.ts";
import { byAccessReview, byTokenReview, type ReviewDependencies } from "../node-api/reviews.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeHandler } from "../ports/node-server.ts";
import type { Ports } from "../ports/ports.ts";
import type { Health } from "../server/local-api.ts";

/** Sources of authentication and authorization. */
export interface AccessParts {
  readonly ports: Pick<Ports, "clock" | "files">;
  readonly log: Logger;
  readonly nodeName: string;
  /** Client tokens of a node without a cluster; undefined: none. */
  readonly tokenFile: string | undefined;
  /** The API server for reviews; undefined: none. */
  readonly apiClient: Pick<ApiClient, "create"> | undefined;
}

const maxFileBytes = 1024 * 1024;

/** The warning about a node that anyone may control. */
export const openToEverybody = {
  name: "access",
  ok: true,
  warning: true,
  detail:
    "anyone who reaches the kubelet API can run commands in every pod: anonymous access and AlwaysAllow are both enabled",
  remedy: "set authorization.mode to Webhook, or authentication.anonymous.enabled to false",
} as const satisfies Health["checks"][number];

/** Access checks of `podwright doctor`. */
export function accessChecks(served: ServingSettings | undefined): Health["checks"] {
  return served?.everybody === true ? [openToEverybody] : [];
}

/** @throws PodwrightError when authorization is impossible */
export async function guarded(
  parts: AccessParts,
  settings: ServingSettings,
  handler: NodeHandler,
): Promise<NodeHandler> {
  const { ports, apiClient, tokenFile } = parts;
  const reviews = apiClient && { client: apiClient, clock: ports.clock, hashing: systemHashing };
  const authenticators: Authenticator[] = [byCertificate];
  if (tokenFile !== undefined) {
    const text = new TextDecoder().decode(await ports.files.read(tokenFile, maxFileBytes));
    authenticators.push(byToken(systemHashing, parseTokenFile(text, tokenFile), reviews === undefined));
  }
  if (settings.tokenReview && reviews) authenticators.push(byTokenReview(reviews, settings.tokenReview.ttlMs));
  if (settings.everybody) return withAccess(handler, [orAnonymous(authenticators)], allowEverybody, parts.log);
  if (settings.anonymous) authenticators.push(anonymous);
  return withAccess(handler, authenticators, authorizer(parts.nodeName, settings, reviews), parts.log);
}

function authorizer(
  nodeName: string,
  { accessReview }: ServingSettings,
  reviews: ReviewDependencies | undefined,
): Authorizer {
  if (accessReview === undefined) return allowKnown;
  if (reviews !== undefined) return byAccessReview(reviews, nodeName, accessReview);
  const files = "authentication.x509.clientCAFile or --token-auth-file";
  throw new PodwrightError(ExitCode.badInput, "authorization.mode Webhook requires an API server", {
    remedy: `set authorization.mode to AlwaysAllow, and authenticate clients with ${files}`,
  });
}
