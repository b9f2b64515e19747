import type { IncomingHttpHeaders } from "node:http";

/** A pseudo-protocol that carries the token of a client that cannot set headers, such as scripts in browsers. */
const prefix = "base64url.bearer.authorization.k8s.io.";

/**
 * Moves the bearer token from the sub-protocols of a WebSocket handshake to the header where other clients send it, so
 * that it is not passed on. As upstream, there may be one token, and only beside a real protocol; anything else becomes
 * an invalid token.
 */
export function withProtocolToken(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const protocols = (headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());
  const tokens = protocols.filter((protocol) => protocol.startsWith(prefix));
  if (tokens.length === 0 || headers.upgrade?.toLowerCase() !== "websocket") return headers;
  const others = protocols.filter((protocol) => !protocol.startsWith(prefix) && protocol !== "");
  const [encoded = "", ...more] = tokens.map((protocol) => protocol.slice(prefix.length));
  const { "sec-websocket-protocol": _taken, ...rest } = headers;
  const token = more.length === 0 && others.length > 0 ? decoded(encoded) : "";
  return {
    authorization: `Bearer ${token}`,
    ...rest,
    ...(others.length > 0 && { "sec-websocket-protocol": others.join(", ") }),
  };
}

/** Empty unless it is base64url of printable text. */
function decoded(text: string): string {
  if (!/^[\w-]+$/.test(text)) return "";
  const token = Buffer.from(text, "base64url").toString("utf8");
  return /^[\x21-\x7e]+$/.test(token) ? token : "";
}
