import type { TLSSocket } from "node:tls";
import { ApiError } from "./api-error.ts";

/** A request's sender. */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export const anonymous: User = { name: "system:anonymous", groups: ["system:unauthenticated"] };

/** The server itself. */
export const loopbackUser: User = { name: "system:apiserver", groups: ["system:masters", "system:authenticated"] };

function unauthorized(): ApiError {
  return new ApiError(401, "Unauthorized", "Unauthorized");
}

/** The user of a bearer token; undefined if unknown. */
export type TokenAuthenticator = (token: string) => User | undefined;

/** The values of a subject's attribute, which Node.js returns as a text or a list. */
function values(attribute: unknown): string[] {
  if (typeof attribute === "string") return [attribute];
  return Array.isArray(attribute) ? attribute.map(String) : [];
}

/** The user of a client certificate: CN is the name, each O a group. Undefined without a certificate. */
function userOfCertificate(socket: TLSSocket): User | undefined {
  const certificate = socket.getPeerCertificate();
  const subject: unknown = certificate.subject;
  if (typeof subject !== "object" || subject === null) return undefined;
  // From another authority, expired or not yet valid.
  if (!socket.authorized) throw unauthorized();
  const { CN, O } = subject as Readonly<Record<string, unknown>>;
  const fingerprint = certificate.fingerprint256.replaceAll(":", "").toLowerCase();
  const extra = { "authentication.kubernetes.io/credential-id": [`X509SHA256=${fingerprint}`] };
  return { name: values(CN)[0] ?? "", groups: [...values(O), "system:authenticated"], extra };
}

/**
 * The sender: by client certificate, else by bearer token, else anonymous.
 * @throws ApiError 401 for an invalid certificate or token
 */
export function authenticate(
  socket: TLSSocket,
  authorization: string | undefined,
  tokens: readonly TokenAuthenticator[],
): User {
  const fromCertificate = userOfCertificate(socket);
  if (fromCertificate !== undefined) return fromCertificate;
  if (authorization === undefined) return anonymous;
  const token = /^Bearer (?<token>\S+)$/i.exec(authorization)?.groups?.["token"];
  if (token === undefined) throw unauthorized();
  for (const authenticator of tokens) {
    const user = authenticator(token);
    if (user !== undefined) return { ...user, groups: [...new Set([...user.groups, "system:authenticated"])] };
  }
  throw unauthorized();
}
