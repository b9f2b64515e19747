import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import type { ApiServer } from "../../ports/api-server.ts";
import { selfSignedCertificate } from "../certificates/certificates.ts";
import { serveHttps } from "./https-server.ts";
import { serveTcp } from "./tcp-server.ts";

const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
const skip = addresses.every(({ address }) => address !== "::1") && "this machine has no IPv6";

async function answer(): Promise<{ readonly status: number; readonly contentType: string; readonly body: string }> {
  return { status: 200, contentType: "text/plain", body: "ok" };
}

const material = { ...selfSignedCertificate(["localhost"], new Date()), clientAuthorities: undefined };
const tls = { minVersion: "TLSv1.2", ciphers: undefined, streamingIdleMs: 60_000, maxBodyBytes: 1000 } as const;
const servers: Readonly<Record<string, (host: string, port?: number) => Promise<ApiServer>>> = {
  TCP: async (host, port = 0) => await serveTcp({ host, port }, answer),
  TLS: async (host, port = 0) => await serveHttps(answer, material, { ...tls, host, port }),
};

function portOf({ address }: ApiServer): number {
  return Number(address.split(":").at(-1));
}

/** Which of this machine's local addresses reach the server. */
async function reachedBy(server: ApiServer): Promise<readonly string[]> {
  const reached: string[] = [];
  for (const host of ["127.0.0.1", "::1"]) {
    const socket = connect({ host, port: portOf(server) });
    const isOpen = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) reached.push(host);
  }
  return reached;
}

for (const [kind, serve] of Object.entries(servers)) {
  test(`${kind}: 0.0.0.0 means every address of both families, as in Go, and so does ::`, { skip }, async () => {
    for (const host of ["0.0.0.0", "::"]) {
      await using server = await serve(host);
      assert.deepEqual(await reachedBy(server), ["127.0.0.1", "::1"], host);
      assert.ok(server.address.startsWith(`${host}:`), "the address is shown as it is configured");
    }
  });

  test(`${kind}: another address means only itself`, async () => {
    await using server = await serve("127.0.0.1");
    assert.deepEqual(await reachedBy(server), ["127.0.0.1"]);
  });

  test(`${kind}: a port in use is an error that names it`, async () => {
    await using server = await serve("127.0.0.1");
    const port = portOf(server);
    await assert.rejects(serve("127.0.0.1", port), {
      name: "PodwrightError",
      exitCode: 3,
      message: `cannot listen on 127.0.0.1:${port}: EADDRINUSE`,
    });
  });
}

test(
  "TLS: clients of both families are told that they need TLS: the guard knows their addresses",
  { skip },
  async () => {
    await using server = await serveHttps(answer, material, { ...tls, host: "0.0.0.0", port: 0 });
    for (const host of ["127.0.0.1", "::1"]) {
      const socket = connect({ host, port: portOf(server) }).setEncoding("utf8");
      socket.end("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      assert.match(
        (await socket.toArray()).join(""),
        /^HTTP\/1\.0 400 [^]*Client sent an HTTP request to an HTTPS server/u,
      );
    }
  },
);
