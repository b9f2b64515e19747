import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { CertificateAuthority } from "../../test/apiserver/certificates.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { until } from "../../test/support/podwright.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import { Credentials } from "./credentials.ts";
import type { KubeAccess, TextSource } from "./kubeconfig.ts";

const directory = await mkdtemp(join(tmpdir(), "podwright-credentials-"));
after(() => rm(directory, { recursive: true }));

const authority = new CertificateAuthority("test-ca");
const signal = new AbortController().signal;

function file(name: string): TextSource & { readonly kind: "file" } {
  return { kind: "file", path: join(directory, name) };
}

async function write(name: string, text: string): Promise<void> {
  await writeFile(join(directory, name), text);
}

function open(changed: Partial<KubeAccess>): { readonly credentials: Credentials; readonly clock: ManualClock } {
  const clock = new ManualClock();
  const server = "https://api.example:6443";
  const access: KubeAccess = { server, ca: undefined, serverName: undefined, insecure: false, user: {}, ...changed };
  return { credentials: new Credentials(access, { clock, files: systemFiles, processes: systemProcesses }), clock };
}

describe("Credentials", () => {
  test("a token's file that is empty for an instant leaves the token that was", async () => {
    await write("token", "old\n");
    const { credentials, clock } = open({ user: { token: file("token") } });
    assert.equal((await credentials.identity(signal)).token, "old");
    for (const bad of ["", " \n", "s3cret\r\nX-Evil: 1", "s\u0000"]) {
      await write("token", bad);
      await clock.advance(60_000);
      assert.equal((await credentials.identity(signal)).token, "old", JSON.stringify(bad));
    }
    await write("token", "new\n");
    await clock.advance(1000);
    assert.equal((await credentials.identity(signal)).token, "new");
  });

  test("an invalid token is an error that does not show it, until the file has a valid one", async () => {
    await write("none", "s3cret\nX-Evil: 1");
    const { credentials } = open({ user: { token: file("none") } });
    await assert.rejects(credentials.identity(signal), (error: Error) => {
      assert.match(error.message, /^credentials of the kubeconfig: the token in \/.*\/none holds a line break/);
      return !error.message.includes("s3cret");
    });
    await write("none", "");
    await assert.rejects(credentials.identity(signal), /the token in \/.*\/none is empty/);
    await write("none", "good");
    assert.equal((await credentials.identity(signal)).token, "good");
  });

  test("a certificate counts together with its key only", async () => {
    const [first, second] = ["a", "b"].map((commonName) =>
      authority.issue({ subject: { commonName }, usages: ["client"] }),
    );
    assert.ok(first && second);
    await Promise.all([write("cert", first.certificate), write("key", first.key)]);
    const { credentials, clock } = open({ user: { certificate: { cert: file("cert"), key: file("key") } } });
    const old = { cert: first.certificate, key: first.key };
    assert.deepEqual((await credentials.identity(signal)).certificate, old);
    await write("cert", second.certificate);
    await clock.advance(60_000);
    assert.deepEqual((await credentials.identity(signal)).certificate, old);
    await write("key", second.key);
    await clock.advance(1000);
    assert.deepEqual((await credentials.identity(signal)).certificate, { cert: second.certificate, key: second.key });
    await write("key", first.key);
    await assert.rejects(
      open({ user: { certificate: { cert: file("cert"), key: file("key") } } }).credentials.identity(signal),
      /^KubeConnectionError: API server api.example:6443: the kubeconfig's key does not match its certificate/,
    );
  });

  test("a hanging plugin is named, may still respond later, and is killed when no request waits", async () => {
    const script = `echo $$ > ${join(directory, "pid")}; while [ ! -e ${join(directory, "go")} ]; do sleep 0.05; done; cat $0`;
    const status = { token: "late", expirationTimestamp: "2026-11-20T14:03:00Z" };
    const apiVersion = "client.authentication.k8s.io/v1" as const;
    await write("answer", JSON.stringify({ apiVersion, kind: "ExecCredential", status }));
    const args = ["-c", script, join(directory, "answer")];
    const { credentials, clock } = open({
      user: { exec: { apiVersion, command: "/bin/sh", args, env: {}, installHint: undefined, cluster: undefined } },
    });
    const waiting = assert.rejects(
      credentials.identity(signal),
      /^KubeConnectionError: the credential plugin \/bin\/sh has not returned for 5 s; it is killed after 60 s$/,
    );
    await clock.advance(5000);
    await waiting;
    await write("go", "");
    assert.equal((await credentials.identity(signal)).token, "late");

    await Promise.all([rm(join(directory, "go")), rm(join(directory, "pid"))]);
    await clock.advance(60_000);
    const cut = assert.rejects(credentials.identity(signal), /the credential plugin \/bin\/sh is no longer needed/);
    const pid = async (): Promise<number> => Number(await readFile(join(directory, "pid"), "utf8").catch(() => "0"));
    await until("the plugin to run", async () => (await pid()) > 0);
    credentials.close();
    await cut;
    const child = await pid();
    await until("the plugin to end", async () => !systemProcesses.isAlive(child));
  });

  test("an authority's file that is empty or cut off for an instant leaves the authority that was", async () => {
    await write("ca", authority.certificate);
    const { credentials, clock } = open({ ca: file("ca") });
    assert.equal(await credentials.authority(), authority.certificate);
    const next = new CertificateAuthority("next").certificate;
    for (const bad of ["", authority.certificate + next.slice(0, 100)]) {
      await write("ca", bad);
      await clock.advance(60_000);
      assert.equal(await credentials.authority(), authority.certificate);
    }
    await write("ca", authority.certificate + next);
    await clock.advance(1000);
    assert.equal(await credentials.authority(), authority.certificate + next);
    // Never whom the system trusts in its place.
    await write("ca", "");
    await assert.rejects(open({ ca: file("ca") }).credentials.authority(), /\/ca holds no complete PEM certificate/);
  });
});
