import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readRequest } from "../../test/apiserver/pkcs10.ts";
import { settle } from "../../test/support/manual-clock.ts";
import { ScriptedKube, type ScriptedRequest } from "../../test/support/scripted-kube.ts";
import type { JournalInput } from "../journal/entry.ts";
import { systemCertificateTools as tools } from "../linux/certificates/certificate-tools.ts";
import { CertificateAuthority } from "../linux/certificates/certificates.ts";
import type { RequestTemplate, KeyPair } from "../ports/certificates.ts";
import type { LogFields, Logger } from "../ports/log.ts";
import { MemoryFiles } from "../sim/files.ts";
import { CertificateManager, type ManagerConfig } from "./certificate-manager.ts";
import { CertificateStore, type StoredPair } from "./certificate-store.ts";
import { clientTemplate } from "./request-template.ts";

const hourMs = 3_600_000;
const collection = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

interface Asked {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly request: string; readonly signerName: string; readonly usages: readonly string[] };
}

/** A manager on simulated files and time; the API server answers by hand. */
class World implements AsyncDisposable {
  readonly kube = new ScriptedKube();
  readonly clock = this.kube.clock;
  readonly authority = new CertificateAuthority("ca", new Date(this.clock.now()));
  readonly files = new MemoryFiles(this.clock);
  readonly store = new CertificateStore({ files: this.files, tools }, { directory: "/pki", prefix: "kubelet-client" });
  readonly entries: JournalInput[] = [];
  readonly logs: string[] = [];
  /** Whether there was a certificate to ask with, by try. */
  readonly asked: boolean[] = [];
  template: RequestTemplate | undefined = clientTemplate("n");
  nobody: Error | undefined;
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;

  manager(config: Partial<ManagerConfig> = {}): CertificateManager {
    const say = (message: string, fields: LogFields = {}): void =>
      void this.logs.push(`${message} ${JSON.stringify(fields)}`);
    const log: Logger = { debug: say, info: say, warn: say, error: say, child: () => log };
    const open = async (current: StoredPair | undefined) => {
      this.asked.push(current !== undefined);
      if (this.nobody !== undefined) throw this.nobody;
      return { client: this.kube.client(), [Symbol.dispose]: () => {} };
    };
    const random = { uniform: () => 0.5, bytes: () => new Uint8Array() };
    return new CertificateManager(
      { store: this.store, tools, clock: this.clock, random, log, open },
      { purpose: "client", template: () => this.template, renews: true, ...config },
    );
  }

  async started(config: Partial<ManagerConfig> = {}): Promise<CertificateManager> {
    const manager = this.manager(config);
    await manager.load();
    const journal = { record: (entry: JournalInput) => this.entries.push(entry) };
    this.#running = manager.run(journal, this.#end.signal);
    await settle();
    return manager;
  }

  /** A certificate for a key, good for so many hours from now. */
  issue(hours: number, from: string | KeyPair = tools.newKey(), template = clientTemplate("n")): KeyPair {
    const key = typeof from === "string" ? from : from.key;
    const nowMs = this.clock.now();
    const { publicKey } = readRequest(Buffer.from(tools.signingRequest(key, template)).toString("base64"));
    const certificate = this.authority.sign({
      subject: template,
      publicKey,
      names: [...template.dnsNames, ...template.ipAddresses],
      usages: ["client"],
      notBefore: new Date(nowMs),
      notAfter: new Date(nowMs + hours * hourMs),
    });
    return { certificate, key };
  }

  /** The next request, which creates a CertificateSigningRequest. */
  async creation(): Promise<{ readonly request: ScriptedRequest; readonly asked: Asked }> {
    // A try that failed is followed by another within a minute.
    for (let tries = 0; tries < 60 && (await this.kube.isQuiet()); tries++) await this.clock.advance(1000);
    const request = await this.kube.next();
    assert.equal(`${request.request.method} ${request.url.pathname}`, `POST ${collection}`);
    return { request, asked: request.body as Asked };
  }

  /** The certificate that a signer issues for the request. */
  signed(asked: Asked, hours: number): string {
    const { publicKey, subject } = readRequest(asked.spec.request);
    const nowMs = this.clock.now();
    const validity = { notBefore: new Date(nowMs), notAfter: new Date(nowMs + hours * hourMs) };
    const certificate = this.authority.sign({ subject, publicKey, usages: ["client"], ...validity });
    return Buffer.from(certificate).toString("base64");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error("over"));
    await this.#running;
  }
}

function stored(asked: Asked, status: object = {}, version = "1"): object {
  return {
    ...asked,
    metadata: { ...asked.metadata, uid: `u-${asked.metadata.name}`, resourceVersion: version },
    status,
  };
}

const approved = [{ type: "Approved", status: "True" }];

/** Until something that works in several steps, each of its own turn of the loop, is done. */
async function soon(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 100 && !holds(); tries++) await settle();
  assert.ok(holds());
}

describe("CertificateManager", () => {
  test("without a certificate requests one, waits for it, stores it and reports it", async () => {
    await using world = new World();
    const manager = await world.started();
    let changes = 0;
    manager.onChange(() => changes++);
    assert.deepEqual([manager.current, manager.facts.ttlSeconds], [undefined, Number.POSITIVE_INFINITY]);
    const { request, asked } = await world.creation();
    assert.deepEqual(asked.spec.usages, ["digital signature", "client auth"]);
    assert.equal(asked.spec.signerName, "kubernetes.io/kube-apiserver-client-kubelet");
    assert.deepEqual(readRequest(asked.spec.request).subject, {
      commonName: "system:node:n",
      organizations: ["system:nodes"],
    });
    await request.json(stored(asked), 201);
    const watch = await world.kube.next();
    assert.equal(watch.url.searchParams.get("fieldSelector"), `metadata.name=${asked.metadata.name}`);
    await watch.open();
    await world.clock.advance(6000);
    assert.match(world.logs.join("\n"), /waiting for a certificate .*kubectl certificate approve node-csr-/);
    assert.match(
      manager.problem,
      /^this node has no client certificate yet: request node-csr-\S+ waits to be approved/,
    );
    await watch.write({ type: "MODIFIED", object: stored(asked, { conditions: approved }, "2") });
    assert.match(
      manager.problem,
      /was approved and waits for its signer \(kubernetes\.io\/kube-apiserver-client-kubelet/,
    );
    const status = { conditions: approved, certificate: world.signed(asked, 10) };
    await watch.write({ type: "MODIFIED", object: stored(asked, status, "3") });
    await soon(() => changes === 1);
    assert.equal(manager.current?.chain[0].commonName, "system:node:n");
    assert.equal(manager.facts.ttlSeconds, 36_000);
    assert.deepEqual(
      world.entries.map(({ kind, what, cause, result }) => [kind, what, cause?.code, result]),
      [
        ["action", "RequestCertificate", "NoCertificate", undefined],
        ["outcome", "RequestCertificate", undefined, "done"],
      ],
    );
  });

  test("renews at its time with a new key, and records the age of the last one", async () => {
    await using world = new World();
    await world.store.update(world.issue(10), world.clock.now());
    const manager = await world.started();
    const before = manager.current;
    await world.clock.advance(8 * hourMs - 1);
    assert.equal(await world.kube.isQuiet(), true);
    const { request, asked } = await world.creation();
    assert.notDeepEqual(readRequest(asked.spec.request).publicKey, tools.publicKey(before?.key ?? ""));
    await request.json(stored(asked, { conditions: approved, certificate: world.signed(asked, 10) }), 201);
    await soon(() => manager.current !== before);
    assert.deepEqual(world.asked, [true]);
    assert.deepEqual(manager.facts.ages.map(Math.round), [28_801]);
    assert.match(manager.check.detail, /^good until 2026-11-21T08:02:0\dZ$/);
  });

  test("a clock that jumps past the expiry is noticed; without a valid certificate the first request is repeated", async () => {
    await using world = new World();
    await world.store.update(world.issue(10), world.clock.now());
    const manager = await world.started({ renews: false });
    await world.clock.advance(10 * hourMs);
    assert.equal(await world.kube.isQuiet(), true);
    await world.clock.advance(1000);
    assert.equal(manager.current, undefined);
    assert.match(
      manager.problem,
      /^the client certificate: it expired at 2026-11-21T00:02:00Z; this machine's clock is at/,
    );
    await world.creation();
    assert.deepEqual(world.asked, [false]);
    assert.equal(world.entries[0]?.cause?.code, "CertificateExpired");
  });

  test("a restart continues the pending request, with the same name", async () => {
    const world = new World();
    await world.started();
    const first = await world.creation();
    await first.request.json(stored(first.asked), 201);
    await world[Symbol.asyncDispose]();
    const manager = world.manager();
    await manager.load();
    const end = new AbortController();
    const running = manager.run({ record: () => 0 }, end.signal);
    await world.kube.next();
    const again = await world.creation();
    assert.equal(again.asked.metadata.name, first.asked.metadata.name);
    await again.request.json({ kind: "Status", reason: "AlreadyExists", message: "there", code: 409 }, 409);
    const get = await world.kube.next();
    assert.equal(`${get.request.method} ${get.url.pathname}`, `GET ${collection}/${first.asked.metadata.name}`);
    const status = { conditions: approved, certificate: world.signed(first.asked, 10) };
    await get.json(stored(first.asked, status, "4"));
    await soon(() => manager.current !== undefined);
    end.abort(new Error("over"));
    await running;
  });

  test("a denied first request is reported once with its reason, and polled with a back-off, not repeated", async () => {
    await using world = new World();
    const manager = await world.started();
    const { request, asked } = await world.creation();
    const conditions = [{ type: "Denied", status: "True", reason: "NotMine", message: "unknown machine" }];
    await request.json(stored(asked, { conditions }), 201);
    await soon(() => manager.facts.renewErrors === 1);
    assert.match(manager.problem, /was denied \(NotMine: unknown machine\); to request again, delete it \(kubectl/);
    for (let tries = 2; tries <= 8; tries++) {
      const next = await world.creation();
      assert.equal(next.asked.metadata.name, asked.metadata.name);
      await next.request.json({ kind: "Status", reason: "AlreadyExists", message: "there", code: 409 }, 409);
      const get = await world.kube.next();
      await get.json(stored(asked, { conditions }));
      await soon(() => manager.facts.renewErrors === tries);
    }
    assert.deepEqual([manager.check.name, manager.check.ok], ["client-certificate", false]);
    const notes = world.entries.filter(({ what }) => what === "CertificateNotIssued");
    assert.equal(notes.length, 1);
  });

  test("a denied renewal is followed by a new request with a new key and a back-off, and reported once", async () => {
    await using world = new World();
    await world.store.update(world.issue(10), world.clock.now());
    const manager = await world.started();
    await world.clock.advance(8 * hourMs);
    const conditions = [{ type: "Denied", status: "True", reason: "NotNow", message: "come again" }];
    const names = new Set<string>();
    const times: number[] = [];
    for (let tries = 1; tries <= 6; tries++) {
      const { request, asked } = await world.creation();
      names.add(asked.metadata.name);
      times.push(world.clock.now());
      await request.json(stored(asked, { conditions }), 201);
      await soon(() => manager.facts.renewErrors === tries);
    }
    assert.equal(names.size, 6);
    const pauses = times.slice(1).map((time, index) => Math.floor((time - (times[index] ?? 0)) / 1000));
    assert.deepEqual(pauses, [3, 5, 9, 17, 34]);
    assert.match(manager.check.detail, /was denied \(NotNow: come again\); another request follows, with a new key$/);
    assert.equal(world.entries.filter(({ what }) => what === "CertificateNotIssued").length, 1);
    const { request, asked } = await world.creation();
    await request.json(stored(asked, { conditions: approved, certificate: world.signed(asked, 10) }), 201);
    await soon(() => manager.facts.ages.length === 1);
  });

  test("a denied request for a serving certificate is followed by another one, also over a restart", async () => {
    const world = new World();
    world.template = { ...clientTemplate("n"), dnsNames: ["n"], ipAddresses: ["10.0.0.1"] };
    const manager = await world.started({ purpose: "serving" });
    const first = await world.creation();
    const conditions = [{ type: "Failed", status: "True" }];
    await first.request.json(stored(first.asked, { conditions }), 201);
    await soon(() => manager.facts.renewErrors === 1);
    await world[Symbol.asyncDispose]();
    const again = world.manager({ purpose: "serving" });
    const end = new AbortController();
    const running = again.run({ record: () => 0 }, end.signal);
    const second = await world.creation();
    assert.notEqual(second.asked.metadata.name, first.asked.metadata.name);
    end.abort(new Error("over"));
    await running;
  });

  test("missing credentials and rejections are reported with their cause, and retried with a back-off", async () => {
    await using world = new World();
    world.nobody = new Error("give --bootstrap-kubeconfig");
    const manager = await world.started();
    await soon(() => manager.facts.renewErrors === 1);
    assert.match(manager.problem, /: give --bootstrap-kubeconfig$/);
    await world.clock.advance(300_000);
    assert.equal(manager.facts.renewErrors, 12);
    world.nobody = undefined;
    const { request } = await world.creation();
    const message = "the token is not known";
    await request.json({ kind: "Status", reason: "Unauthorized", message, code: 401 }, 401);
    await soon(() => manager.problem.endsWith(message));
  });

  test("changed addresses cancel the pending request, and are requested instead", async () => {
    await using world = new World();
    const serving = (address: string) => ({ ...clientTemplate("n"), dnsNames: ["n"], ipAddresses: [address] });
    world.template = undefined;
    const manager = await world.started({ purpose: "serving" });
    assert.equal(await world.kube.isQuiet(), true);
    world.template = serving("10.0.0.1");
    manager.wake();
    const first = await world.creation();
    assert.deepEqual(readRequest(first.asked.spec.request).ipAddresses, ["10.0.0.1"]);
    assert.deepEqual(first.asked.spec.usages, ["digital signature", "server auth"]);
    await first.request.json(stored(first.asked), 201);
    const watch = await world.kube.next();
    world.template = serving("10.0.0.2");
    manager.wake();
    const second = await world.creation();
    assert.deepEqual(readRequest(second.asked.spec.request).ipAddresses, ["10.0.0.2"]);
    assert.equal(watch.request.signal.aborted, true);
    assert.equal(manager.facts.renewErrors, 0);
  });

  test("a certificate for other names is used until there is a new one, and one shortened by the signer is kept", async () => {
    await using world = new World();
    const template = { ...clientTemplate("n"), dnsNames: ["n"] };
    world.template = template;
    await world.store.update(world.issue(10), world.clock.now());
    const manager = await world.started();
    assert.equal(manager.current?.chain[0].dnsNames.length, 0);
    const { request, asked } = await world.creation();
    assert.equal(world.entries[0]?.cause?.message, "it does not name n");
    const certificate = world.signed(asked, 10);
    await request.json(stored(asked, { conditions: approved, certificate }), 201);
    await soon(() => world.logs.some((line) => line.includes("a certificate that differs from the request")));
    await world.clock.advance(hourMs);
    assert.equal(await world.kube.isQuiet(), true);
  });

  test("kubeadm's first certificate is stored and renewed at once", async () => {
    await using world = new World();
    const initial = world.issue(10);
    const manager = await world.started({ initial });
    assert.equal(manager.current?.certificate, initial.certificate);
    await world.creation();
    assert.equal(world.entries[0]?.cause?.code, "CertificateIsInitial");
    assert.deepEqual(world.asked, [true]);
  });

  test("an expired first certificate is reported and not stored", async () => {
    await using world = new World();
    const manager = await world.started({ initial: world.issue(-1) });
    await soon(() => world.asked.length === 1);
    assert.deepEqual([manager.current, world.asked], [undefined, [false]]);
    assert.match(world.logs[0] ?? "", /has a problem .*it expired at 2026-11-20T13:02:00Z/);
    assert.deepEqual(
      (await world.files.list("/pki")).map(({ name }) => name),
      ["kubelet-client.key.tmp"],
    );
  });

  test("an issued certificate that is invalid or for another node is rejected, and the next request has another key", async () => {
    await using world = new World();
    await world.started();
    const first = await world.creation();
    const foreign = Buffer.from(world.issue(10).certificate).toString("base64");
    await first.request.json(stored(first.asked, { conditions: approved, certificate: foreign }), 201);
    await soon(() => world.logs.some((line) => line.includes("is not for this node's key")));
    const second = await world.creation();
    assert.notEqual(second.asked.metadata.name, first.asked.metadata.name);
    const over = world.signed(second.asked, -1 / 60);
    await second.request.json(stored(second.asked, { conditions: approved, certificate: over }), 201);
    await soon(() => world.logs.some((line) => line.includes("is not usable: it expired at")));
  });

  test("an unusable stored certificate is logged and requested again", async () => {
    await using world = new World();
    await world.files.makeDirectory("/pki", 0o755);
    await world.files.write("/pki/kubelet-client-current.pem", "garbage", 0o600);
    await world.started();
    assert.match(world.logs[0] ?? "", /cannot use .*kubelet-client-current\.pem: holds no certificate/);
    await world.creation();
  });
});
