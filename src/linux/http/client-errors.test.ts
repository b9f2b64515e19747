import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import type { NodeHandler } from "../../ports/node-server.ts";
import { selfSignedCertificate } from "../certificates/certificates.ts";
import { type HttpsServer, serveHttps, type ServingLimits } from "../servers/https-server.ts";

const serving = selfSignedCertificate(["localhost", "127.0.0.1"], new Date());

async function start(handler: NodeHandler, limits: Partial<ServingLimits> = {}): Promise<HttpsServer> {
  return await serveHttps(
    handler,
    { ...serving, clientAuthorities: undefined },
    { host: "127.0.0.1", port: 0, minVersion: "TLSv1.2", ciphers: undefined, streamingIdleMs: 60_000, limits },
  );
}

const whoAmI: NodeHandler = async ({ path }) => ({ status: 200, contentType: "text/plain", body: path });

/** What the server sends until the connection ends; the second piece follows the beginning of its first response. */
async function send(server: HttpsServer, text: string, then?: string): Promise<string> {
  const port = Number(server.address.split(":").at(-1));
  const socket = connectTls({ host: "127.0.0.1", port, ca: serving.certificate });
  let answer = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    answer += chunk;
    if (then !== undefined && answer.includes("a line")) socket.write(then);
  });
  socket.on("error", () => {});
  socket.write(text);
  await once(socket, "close");
  return answer;
}

test("an invalid request gets the response of Go's server: the status as plain text", async () => {
  await using server = await start(whoAmI);
  const head = "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n";
  const long = "x".repeat(2 * 1024 * 1024);
  for (const [text, status] of [
    ["nonsense\r\n\r\n", "400 Bad Request"],
    ["GET pods HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request"],
    ["GET / HTTP/9.1\r\nHost: a\r\n\r\n", "400 Bad Request"],
    [`GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${long}\r\n\r\n`, "431 Request Header Fields Too Large"],
  ] as const) {
    assert.equal(await send(server, text), `HTTP/1.1 ${status}\r\n${head}${status}`);
  }
  await using impatient = await start(whoAmI, { headersMs: 100 });
  const late = "408 Request Timeout";
  assert.equal(await send(impatient, "GET / HTTP/1.1\r\nX:"), `HTTP/1.1 ${late}\r\n${head}${late}`);
});

test("nothing of that is written into a response that has begun", async () => {
  await using server = await start(async ({ signal }) => ({
    status: 200,
    contentType: "text/plain",
    body: (async function* () {
      yield "a line\n";
      await setTimeout(10_000, undefined, { signal }).catch(() => {});
    })(),
  }));
  const answer = await send(server, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "nonsense\r\n\r\n");
  assert.match(answer, /^HTTP\/1\.1 200 OK[\s\S]*a line\n/);
  assert.doesNotMatch(answer, /400/);
});

test("a plain HTTP client is told to use TLS", async () => {
  await using server = await start(whoAmI);
  const socket = connect({ host: "127.0.0.1", port: Number(server.address.split(":").at(-1)) });
  socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) text += String(chunk);
  assert.equal(text, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
});
