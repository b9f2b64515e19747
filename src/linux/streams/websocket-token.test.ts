import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import { withProtocolToken } from "./websocket-token.ts";

const hidden = (token: string): string => {
  return `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}`;
};

function handshake(protocols: string, more: IncomingHttpHeaders = {}): IncomingHttpHeaders {
  return { upgrade: "websocket", "sec-websocket-protocol": protocols, ...more };
}

test("a token among a WebSocket's protocols is removed and becomes the request's token", () => {
  const headers = withProtocolToken(handshake(`${hidden("a.b-c")}, v4.channel.k8s.io,v5.channel.k8s.io`));
  assert.equal(headers.authorization, "Bearer a.b-c");
  assert.equal(headers["sec-websocket-protocol"], "v4.channel.k8s.io, v5.channel.k8s.io");
});

test("an invalid token is ignored, and not passed on either", () => {
  const broken = [
    hidden("alone"),
    `${hidden("one")}, ${hidden("two")}, v4.channel.k8s.io`,
    "base64url.bearer.authorization.k8s.io.=, v4.channel.k8s.io",
    `${hidden("a b")}, v4.channel.k8s.io`,
    `${hidden("a\r\nX: y")}, v4.channel.k8s.io`,
  ];
  for (const protocols of broken) {
    const headers = withProtocolToken(handshake(protocols));
    assert.equal(headers.authorization, "Bearer ", protocols);
    assert.doesNotMatch(headers["sec-websocket-protocol"] ?? "", /bearer/, protocols);
  }
});

test("a token in the headers takes precedence, and other requests are unchanged", () => {
  const both = handshake(`${hidden("x")}, v4.channel.k8s.io`, { authorization: "Bearer own" });
  assert.equal(withProtocolToken(both).authorization, "Bearer own");
  const plain = handshake("v4.channel.k8s.io");
  assert.equal(withProtocolToken(plain), plain);
  const spdy = handshake(hidden("x"), { upgrade: "SPDY/3.1" });
  assert.equal(withProtocolToken(spdy), spdy);
});
