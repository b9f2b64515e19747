import type { TLSSocket } from "node:tls";
import { ApiError } from "./api-error.ts";

/** Who a request comes from. */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export const anonymous: User = { name: "system:anonymous", groups: ["system:unauthenticated"] };

/** The server's own doing. */
export const loopbackUser: User = { name: "system:apiserver", groups: ["system:masters", "system:authenticated"] };

function unauthorized(): ApiError {
  return new ApiError(401, "Unauthorized", "Unauthorized");
}

/** Finds the user behind a bearer token; undefined for a token it does not know. */
export type TokenAuthenticator = (token: string) => User | undefined;

/** Each value of one attribute of a subject as Node.js gives it: a text, or several. */
function values(attribute: unknown): string[] {
  if (typeof attribute === "string") return [attribute];
  return Array.isArray(attribute) ? attribute.map(String) : [];
}

/** The user that a client certificate names: CN is the name, every O a group. Undefined without a certificate. */
function userOfCertificate(socket: TLSSocket): User | undefined {
  const certificate = socket.getPeerCertificate();
  const subject: unknown = certificate.subject;
  if (typeof subject !== "object" || subject === null) return undefined;
  // What is not signed by our authority, not yet or no longer valid is no certificate.
  if (!socket.authorized) throw unauthorized();
  const { CN, O } = subject as Readonly<Record<string, unknown>>;
  const fingerprint = certificate.fingerprint256.replaceAll(":", "").toLowerCase();
  const extra = { "authentication.kubernetes.io/credential-id": [`X509SHA256=${fingerprint}`] };
  return { name: values(CN)[0] ?? "", groups: [...values(O), "system:authenticated"], extra };
}

/**
 * Who asks: the client certificate counts first, then the bearer token; without either it is anonymous.
 * @throws ApiError 401 for a certificate or a token that is not good
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
