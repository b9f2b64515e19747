import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { after, describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { answerText, nodeRequest } from "../../test/support/node-api.ts";
import { silentLog } from "../../test/support/sources.ts";
import type { ApiCall } from "../api-client/client.ts";
import type { ApiObject } from "../api-client/resource.ts";
import { parseKubeletFlags } from "../config/flags.ts";
import { loadConfiguration } from "../config/load.ts";
import { servingSettings } from "../config/serving.ts";
import { CertificateAuthority, selfSignedCertificate } from "../linux/certificates/certificates.ts";
import { systemRandom } from "../linux/processes/random.ts";
import { type HttpsServer, serveHttps } from "../linux/servers/https-server.ts";
import { plain } from "../node-api/answers.ts";
import type { NodeHandler } from "../ports/node-server.ts";
import { MemoryFiles } from "../sim/files.ts";
import { checkAccess, guarded } from "./node-access.ts";

const now = new Date();
const serving = selfSignedCertificate(["127.0.0.1"], now);
const authority = new CertificateAuthority("clients", now);
const jane = authority.issue({
  subject: { commonName: "jane", organizations: [] },
  usages: ["client"],
  notBefore: new Date(now.getTime() - 60_000),
  notAfter: new Date(now.getTime() + 3600_000),
});

/** Authenticates only bob's token, and authorizes him for everything. */
const apiClient = {
  create: async <T extends ApiObject>({ resource }: ApiCall<T>, object: object): Promise<T> => {
    const { spec } = object as { readonly spec: { readonly token?: string; readonly user?: string } };
    const status =
      spec.token === undefined
        ? { allowed: spec.user === "bob" }
        : { authenticated: spec.token === "t0ken", user: { username: "bob" } };
    return resource.decode({ metadata: {}, status });
  },
};

const servers: HttpsServer[] = [];
after(() => Promise.all(servers.map((server) => server.close())));

interface Written {
  /** The file of --config; undefined: none. */
  readonly file?: string;
  /** A drop-in of --config-dir; undefined: none. */
  readonly dropIn?: string;
  readonly flags?: readonly string[];
}

const kind = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

/** What answers with this configuration. */
async function handlerOf({
  file,
  dropIn,
  flags = [],
}: Written): Promise<{ readonly handler: NodeHandler; readonly everybody: boolean }> {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/etc/drop-ins", 0o755);
  if (file !== undefined) await files.write("/etc/kubelet.yaml", kind + file, 0o644);
  if (dropIn !== undefined) await files.write("/etc/drop-ins/one.conf", kind + dropIn, 0o644);
  const places = [
    ...(file === undefined ? [] : ["--config", "/etc/kubelet.yaml"]),
    ...(dropIn === undefined ? [] : ["--config-dir", "/etc/drop-ins"]),
  ];
  const { configuration, isWritten } = await loadConfiguration(
    { files, workingDirectory: "/", cgroupVersion: 2 },
    parseKubeletFlags([...places, ...flags]),
  );
  const settings = servingSettings(configuration, isWritten);
  assert.ok(settings);
  const parts = {
    ports: { clock: new ManualClock(), random: systemRandom, files },
    log: silentLog,
    nodeName: "node1",
    tokenFile: undefined,
    apiClient,
  };
  const handler = await guarded(parts, settings, async () => plain(200, "done"));
  return { handler, everybody: settings.everybody };
}

/** A node with this configuration, whose API answers. */
async function served(written: Written): Promise<{ readonly port: number; readonly everybody: boolean }> {
  const { handler, everybody } = await handlerOf(written);
  const server = await serveHttps(
    handler,
    { ...serving, clientAuthorities: authority.certificate },
    {
      host: "127.0.0.1",
      port: 0,
      minVersion: "TLSv1.2",
      ciphers: undefined,
      streamingIdleMs: 1000,
      maxBodyBytes: 1000,
    },
  );
  servers.push(server);
  return { port: Number(server.address.split(":").at(-1)), everybody };
}

async function statusOf(port: number, path: string, client: object = {}): Promise<number> {
  const outgoing = httpsRequest({ host: "127.0.0.1", port, path, ca: serving.certificate, agent: false, ...client });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}

const token = (text: string): object => ({ headers: { authorization: `Bearer ${text}` } });

/** Statuses of requests: anonymous for health and for pods, jane with her certificate, bob and a stranger with tokens. */
async function answers(port: number): Promise<readonly number[]> {
  return [
    await statusOf(port, "/healthz"),
    await statusOf(port, "/pods"),
    await statusOf(port, "/pods", { cert: jane.certificate, key: jane.key }),
    await statusOf(port, "/pods", token("t0ken")),
    await statusOf(port, "/pods", token("wrong")),
  ];
}

const anonymousYes = "authentication: {anonymous: {enabled: true}}\n";
const anonymousNo = "authentication: {anonymous: {enabled: false}}\n";
const webhookNo = "authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}\n";
const allowAll = "authorization: {mode: AlwaysAllow}\n";
const ask = "authorization: {mode: Webhook}\n";
const anonymousFlag = "--anonymous-auth=true";
const allowAllFlag = "--authorization-mode=AlwaysAllow";

const open = [200, 200, 200, 200, 200];
/** As with flags alone: tokens are not reviewed. */
const guardedByDefault = [200, 403, 200, 401, 401];

describe("access by what is configured explicitly", () => {
  const rows: readonly [what: string, written: Written, expected: readonly number[]][] = [
    ["both in a file", { file: anonymousYes + allowAll }, open],
    ["both in a file, without token reviews", { file: webhookNo + allowAll }, open],
    ["both in a drop-in", { dropIn: anonymousYes + allowAll }, open],
    ["both by flags", { flags: [anonymousFlag, allowAllFlag] }, open],
    ["one in a file, one in a drop-in", { file: anonymousYes, dropIn: allowAll }, open],
    ["one in a file, one by a flag", { file: allowAll, flags: [anonymousFlag] }, open],
    ["one in a drop-in, one by a flag", { dropIn: anonymousYes, flags: [allowAllFlag] }, open],
    ["neither", {}, guardedByDefault],
    ["anonymous alone by a flag", { flags: [anonymousFlag] }, guardedByDefault],
    ["AlwaysAllow alone by a flag", { flags: [allowAllFlag] }, guardedByDefault],
    ["anonymous alone in a drop-in", { dropIn: anonymousYes }, guardedByDefault],
    ["AlwaysAllow alone in a drop-in", { dropIn: allowAll }, guardedByDefault],
    [
      "anonymous beside an empty mode",
      { file: `${anonymousYes}authorization: {mode: ""}\n` },
      [403, 403, 403, 200, 401],
    ],
    [
      "AlwaysAllow alone in a file, whose default is no anonymous access",
      { file: allowAll },
      [401, 401, 200, 200, 401],
    ],
    ["AlwaysAllow without anonymous access", { file: anonymousNo + allowAll }, [401, 401, 200, 200, 401]],
    [
      "anonymous revoked by a flag",
      { file: anonymousYes + allowAll, flags: ["--anonymous-auth=false"] },
      [401, 401, 200, 200, 401],
    ],
    ["AlwaysAllow revoked by a drop-in", { file: anonymousYes + allowAll, dropIn: ask }, [403, 403, 403, 200, 401]],
    ["anonymous and Webhook", { file: anonymousYes + ask }, [403, 403, 403, 200, 401]],
    ["an empty file", { file: "" }, [401, 401, 403, 200, 401]],
  ];
  for (const [what, written, expected] of rows) {
    test(what, async () => {
      const { port, everybody } = await served(written);
      assert.deepEqual(await answers(port), expected);
      assert.equal(everybody, expected === open);
    });
  }
});

test("a token counts beside a certificate of no user, who is not anonymous either", async () => {
  const { handler } = await handlerOf({ file: anonymousYes + ask });
  const certificate = { commonName: "jane", organizations: [], uids: ["1", "2"], sha256: "0a1b" };
  const asked = async (more: object): Promise<string> =>
    await answerText(await handler(nodeRequest("GET", "/pods", { certificate, ...more })));
  assert.equal(await asked(token("t0ken")), "200 done");
  assert.equal(await asked(token("wrong")), "401 Unauthorized");
  assert.equal(await asked({}), "401 Unauthorized");
});

test("what the API needs is checked before anything is waited for", async () => {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/etc", 0o755);
  await files.write("/etc/tokens", "t0ken,bob", 0o600);
  await files.write("/etc/good", "t0ken,bob,1", 0o600);
  const settingsWith = async (...flags: string[]): Promise<Parameters<typeof checkAccess>> => {
    const parsed = parseKubeletFlags(flags);
    const from = { files, workingDirectory: "/", cgroupVersion: 2 } as const;
    const { configuration, isWritten } = await loadConfiguration(from, parsed);
    const settings = servingSettings(configuration, isWritten);
    assert.ok(settings);
    return [files, settings, parsed.node];
  };
  const check = async (...flags: string[]): Promise<void> => await checkAccess(...(await settingsWith(...flags)));
  await check();
  await check("--token-auth-file", "/etc/good");
  await assert.rejects(check("--token-auth-file", "/etc/tokens"), /\/etc\/tokens:1: it has 2 fields/u);
  await assert.rejects(check("--token-auth-file", "/etc/none"), /cannot read --token-auth-file \/etc\/none/u);
  await assert.rejects(check("--authorization-mode", "Webhook"), /Webhook requires an API server/u);
  await check("--authorization-mode", "Webhook", "--kubeconfig", "/etc/kubeconfig");
});
