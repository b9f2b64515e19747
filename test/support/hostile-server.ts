/**
 * The kubelet's API as served to other machines, in its own process, so that its memory is separate from the
 * attackers'. Pods and runtime are fake; connections, TLS, access, handlers and files are real.
 */
import { mkdtemp, open, rm } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { selfSignedCertificate } from "../../src/linux/certificates/certificates.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemCompression } from "../../src/linux/files/compression.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { serveHttps } from "../../src/linux/servers/https-server.ts";
import { withAccess } from "../../src/node-api/access.ts";
import { byToken, parseTokenFile } from "../../src/node-api/authenticators.ts";
import { allowKnown } from "../../src/node-api/authorizers.ts";
import { nodeApi } from "../../src/node-api/routes.ts";
import { nodeApiDeps, webPod } from "./node-api.ts";
import { testContainer, testSandbox, testStatus } from "./observed.ts";
import { silentLog } from "./sources.ts";

/** Connection data for clients, sent to the parent. */
export interface HostileServer {
  readonly port: number;
  readonly certificate: string;
  readonly token: string;
}

export const hostileToken = "t0ken-of-bob";
const logBytes = 64 * 1024 * 1024;
const sparseBytes = 16 * 1024 * 1024 * 1024;

/** A runtime's streaming server: accepts everything, sends endlessly or discards its input. */
async function startStreams(): Promise<string> {
  const server = createServer((_incoming, outgoing) => outgoing.writeHead(404).end());
  server.on("upgrade", (incoming: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => {});
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    socket.resume();
    if (incoming.url !== "/endless") return;
    const piece = Buffer.alloc(64 * 1024);
    const more = (): void => {
      while (socket.writable && socket.write(piece));
    };
    socket.on("drain", more);
    more();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "podwright-hostile-"));
  const line = `2026-01-01T00:00:00.000000000Z stdout F ${"x".repeat(983)}\n`;
  const log = await open(join(directory, "0.log"), "w");
  for (let written = 0; written < logBytes; written += 1 << 20) await log.write(line.repeat(1024));
  await log.close();
  const sparse = await open(join(directory, "sparse"), "w");
  await sparse.truncate(sparseBytes);
  await sparse.close();
  const streams = await startStreams();
  const url = async (path: string): Promise<{ readonly url: string }> => ({ url: `${streams}${path}` });
  const fake = await nodeApiDeps();
  const observed = testStatus([testSandbox()], [testContainer({ name: "app", logPath: join(directory, "0.log") })]);
  const deps = {
    ...fake,
    clock: systemClock,
    files: systemFiles,
    store: { files: systemFiles, compression: systemCompression },
    logsDirectory: directory,
    pods: () => [webPod({ observed })],
    cri: {
      ...fake.cri,
      runtime: {
        ...fake.cri.runtime,
        exec: ({ cmd }: { readonly cmd?: readonly string[] }) => url(cmd?.[0] === "yes" ? "/endless" : "/sink"),
        attach: () => url("/sink"),
        portForward: () => url("/sink"),
      },
    } as unknown as typeof fake.cri,
  };
  const tokens = byToken(systemHashing, parseTokenFile(`${hostileToken},bob,1`, "/tokens"), true);
  const certificate = selfSignedCertificate(["localhost", "127.0.0.1"], new Date());
  const server = await serveHttps(
    withAccess(nodeApi(deps), [tokens], allowKnown, silentLog),
    { ...certificate, clientAuthorities: undefined },
    {
      ...{ host: "127.0.0.1", port: 0, minVersion: "TLSv1.2", ciphers: undefined },
      ...{ streamingIdleMs: 60_000, maxBodyBytes: 1024 * 1024 },
      // As in production, but sooner.
      limits: { headersMs: 2000, handshakeMs: 5000 },
      onError: (error, request) => process.send?.({ defect: String(error), ...request }),
    },
  );
  process.once("disconnect", () => {
    void rm(directory, { recursive: true, force: true }).finally(() => process.exit());
  });
  const port = Number(server.address.split(":").at(-1));
  process.send?.({ port, certificate: certificate.certificate, token: hostileToken } satisfies HostileServer);
}

if (process.send !== undefined) await main();
