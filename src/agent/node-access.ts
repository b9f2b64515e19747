import { resolve } from "node:path/posix";
import type { ApiClient } from "../api-client/client.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import type { ServingSettings } from "../config/serving.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { type Authenticator, type Authorizer, withAccess } from "../node-api/access.ts";
import { anonymous, byAny, byCertificate, byToken, orAnonymous, parseTokenFile } from "../node-api/authenticators.ts";
import { allowEverybody, allowKnown } from "../node-api/authorizers.ts";
import { byAccessReview, byTokenReview, type ReviewDependencies } from "../node-api/reviews.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeHandler } from "../ports/node-server.ts";
import type { Ports } from "../ports/ports.ts";
import type { Health } from "../server/local-api.ts";

/** Sources of authentication and authorization. */
export interface AccessParts {
  readonly ports: Pick<Ports, "clock" | "random" | "files">;
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

/** `--token-auth-file`; undefined: none. */
export function tokenFileOf({ tokenAuthFile = "" }: NodeFlagValues): string | undefined {
  return tokenAuthFile === "" ? undefined : resolve(process.cwd(), tokenAuthFile);
}

/**
 * Checks what {@link guarded} will need, before anything is waited for.
 * @throws PodwrightError (bad input)
 */
export async function checkAccess(
  files: Pick<Files, "read">,
  settings: ServingSettings,
  flags: NodeFlagValues,
): Promise<void> {
  const tokenFile = tokenFileOf(flags);
  if (tokenFile !== undefined) await readTokens(files, tokenFile);
  const isInCluster = (flags.kubeconfig ?? "") !== "";
  if (!isInCluster && !settings.everybody && settings.accessReview !== undefined) throw nobodyToAsk();
}

async function readTokens(files: Pick<Files, "read">, path: string): Promise<ReturnType<typeof parseTokenFile>> {
  const bytes = await files.read(path, maxFileBytes).catch((error: unknown) => {
    throw new PodwrightError(ExitCode.badInput, `cannot read --token-auth-file ${path}: ${errorMessage(error)}`, {
      cause: error,
    });
  });
  return parseTokenFile(new TextDecoder().decode(bytes), path);
}

/** @throws PodwrightError when authorization is impossible */
export async function guarded(
  parts: AccessParts,
  settings: ServingSettings,
  handler: NodeHandler,
): Promise<NodeHandler> {
  const { ports, apiClient, tokenFile } = parts;
  const { clock, random } = ports;
  const reviews = apiClient && { client: apiClient, clock, random, hashing: systemHashing };
  const authenticators: Authenticator[] = [byCertificate];
  if (tokenFile !== undefined) {
    const tokens = await readTokens(ports.files, tokenFile);
    authenticators.push(byToken(systemHashing, tokens, reviews === undefined));
  }
  if (settings.tokenReview && reviews) authenticators.push(byTokenReview(reviews, settings.tokenReview.ttlMs));
  if (settings.everybody) return withAccess(handler, [orAnonymous(authenticators)], allowEverybody, parts.log);
  // Not for a client whose credentials caused an error.
  const methods = [byAny(authenticators), ...(settings.anonymous ? [anonymous] : [])];
  return withAccess(handler, methods, authorizer(parts.nodeName, settings, reviews), parts.log);
}

function authorizer(
  nodeName: string,
  { accessReview }: ServingSettings,
  reviews: ReviewDependencies | undefined,
): Authorizer {
  if (accessReview === undefined) return allowKnown;
  if (reviews !== undefined) return byAccessReview(reviews, nodeName, accessReview);
  throw nobodyToAsk();
}

function nobodyToAsk(): PodwrightError {
  const files = "authentication.x509.clientCAFile or --token-auth-file";
  return new PodwrightError(ExitCode.badInput, "authorization.mode Webhook requires an API server", {
    remedy: `set authorization.mode to AlwaysAllow, and authenticate clients with ${files}`,
  });
}
