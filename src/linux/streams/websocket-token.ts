import type { IncomingHttpHeaders } from "node:http";

/** A sub-protocol that is none: the token of a client that can't send headers of its own, as scripts in browsers. */
const prefix = "base64url.bearer.authorization.k8s.io.";

/**
 * Takes the bearer token out of the sub-protocols of a WebSocket's handshake, so that nobody it is passed on to sees it,
 * and puts it where other clients send it. As upstream one token counts, and only beside a protocol that can be agreed on;
 * what breaks that becomes a token that nobody has.
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

/** Empty for what is not base64url of printable text. */
function decoded(text: string): string {
  if (!/^[\w-]+$/.test(text)) return "";
  const token = Buffer.from(text, "base64url").toString("utf8");
  return /^[\x21-\x7e]+$/.test(token) ? token : "";
}
