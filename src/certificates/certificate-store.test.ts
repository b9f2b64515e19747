import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { systemCertificateTools as tools } from "../linux/certificates/certificate-tools.ts";
import { CertificateAuthority } from "../linux/certificates/certificates.ts";
import type { KeyPair } from "../ports/certificates.ts";
import { MemoryFiles } from "../sim/files.ts";
import { CertificateStore } from "./certificate-store.ts";

const clock = new ManualClock();
const authority = new CertificateAuthority("ca", new Date(clock.now()));

function pair(lastsMs = 3_600_000): KeyPair {
  const subject = { commonName: "system:node:n" };
  const notAfter = new Date(clock.now() + lastsMs);
  return authority.issue({ subject, usages: ["client"], notBefore: new Date(clock.now() - 7_200_000), notAfter });
}

class World {
  readonly files = new MemoryFiles(clock);
  readonly store = new CertificateStore({ files: this.files, tools }, { directory: "/pki", prefix: "kubelet-client" });

  async text(path: string): Promise<string> {
    return new TextDecoder().decode(await this.files.read(path, 1_000_000));
  }

  async names(): Promise<string[]> {
    return (await this.files.list("/pki")).map(({ name }) => name).toSorted();
  }
}

describe("CertificateStore", () => {
  test("stores certificates like the Go kubelet: both in one file of mode 0600, and a link to it", async () => {
    const { files, store, ...world } = new World();
    const text = World.prototype.text.bind({ files, store, ...world });
    const first = pair();
    await store.update({ certificate: first.certificate + authority.certificate, key: first.key }, clock.now());
    assert.equal(
      await files.readLink("/pki/kubelet-client-current.pem"),
      "/pki/kubelet-client-2026-11-20-14-02-00.pem",
    );
    assert.equal((await files.stat("/pki/kubelet-client-2026-11-20-14-02-00.pem"))?.mode, 0o600);
    const whole = first.certificate + authority.certificate + first.key;
    assert.equal(await text("/pki/kubelet-client-current.pem"), whole);

    const second = pair();
    await store.update(second, clock.now() + 61_000);
    assert.equal((await store.current(clock.now()))?.certificate, second.certificate);
    assert.equal(await text("/pki/kubelet-client-2026-11-20-14-02-00.pem"), whole);
  });

  test("a key without its certificate is kept over restarts, and used with it", async () => {
    const world = new World();
    const key = await world.store.pendingKey();
    assert.equal((await world.files.stat("/pki/kubelet-client.key.tmp"))?.mode, 0o600);
    const restarted = new CertificateStore(
      { files: world.files, tools },
      { directory: "/pki", prefix: "kubelet-client" },
    );
    assert.equal(await restarted.pendingKey(), key);
    await restarted.update(pair(), clock.now());
    assert.deepEqual(await world.names(), ["kubelet-client-2026-11-20-14-02-00.pem", "kubelet-client-current.pem"]);
    await world.files.write("/pki/kubelet-client.key.tmp", "garbage", 0o600);
    assert.match(await restarted.pendingKey(), /BEGIN EC PRIVATE KEY/);
  });

  test("an update that was killed before its last step is completed", async () => {
    const { files, store } = new World();
    const { certificate, key } = pair();
    await files.makeDirectory("/pki", 0o755);
    await files.write("/pki/kubelet-client-1.pem", certificate + key, 0o600);
    await files.symlink("/pki/kubelet-client-1.pem", "/pki/kubelet-client-updated.pem");
    assert.equal((await store.current(clock.now()))?.certificate, certificate);
    assert.equal(await files.readLink("/pki/kubelet-client-current.pem"), "/pki/kubelet-client-1.pem");
  });

  test("without its own certificate the configured files are used, then kubelet-client.crt and .key", async () => {
    const { files } = new World();
    const configured = { certificate: "/etc/c", key: "/etc/k" };
    const store = new CertificateStore(
      { files, tools },
      { directory: "/pki", prefix: "kubelet-client", files: configured },
    );
    assert.equal(await store.current(clock.now()), undefined);
    const [a, b, c] = [pair(), pair(), pair()];
    for (const directory of ["/pki", "/etc"]) await files.makeDirectory(directory, 0o755);
    await files.write("/pki/kubelet-client.crt", a.certificate, 0o600);
    await files.write("/pki/kubelet-client.key", a.key, 0o600);
    assert.equal((await store.current(clock.now()))?.certificate, a.certificate);
    await files.write("/etc/c", b.certificate, 0o600);
    await files.write("/etc/k", b.key, 0o600);
    assert.equal((await store.current(clock.now()))?.certificate, b.certificate);
    await store.update(c, clock.now());
    assert.equal((await store.current(clock.now()))?.certificate, c.certificate);
  });

  test("an expired or damaged certificate of its own does not hide a valid one of the configured files", async () => {
    const { files } = new World();
    const configured = { certificate: "/etc/c", key: "/etc/k" };
    const config = { directory: "/pki", prefix: "kubelet-client", files: configured };
    const store = new CertificateStore({ files, tools }, config);
    const [old, older, fresh] = [pair(-1000), pair(-2000), pair()];
    await store.update(old, clock.now());
    await files.makeDirectory("/etc", 0o755);
    const install = async ({ certificate, key }: KeyPair): Promise<void> => {
      await files.write("/etc/c", certificate, 0o600);
      await files.write("/etc/k", key, 0o600);
    };
    await install(older);
    assert.equal((await store.current(clock.now()))?.certificate, old.certificate);
    await install(fresh);
    assert.equal((await store.current(clock.now()))?.certificate, fresh.certificate);
    await files.write("/pki/kubelet-client-2026-11-20-14-02-00.pem", "damaged", 0o600);
    assert.equal((await store.current(clock.now()))?.certificate, fresh.certificate);
    await install(older);
    await assert.rejects(store.current(clock.now()), /kubelet-client-current\.pem: holds no certificate/);
  });

  test("an invalid pair is rejected with its path, and changes nothing", async () => {
    const { files, store } = new World();
    const [a, b] = [pair(), pair()];
    await store.update(a, clock.now());
    const update = async (certificate: string, key: string) => store.update({ certificate, key }, clock.now() + 5000);
    await assert.rejects(update(a.certificate, b.key), /2026-11-20-14-02-05\.pem: the private key is not that of/);
    await assert.rejects(update("", b.key), /holds no certificate/);
    await assert.rejects(update(b.certificate, ""), /holds no private key/);
    assert.equal((await store.current(clock.now()))?.certificate, a.certificate);

    await files.write("/pki/kubelet-client-2026-11-20-14-02-00.pem", a.certificate, 0o600);
    await assert.rejects(
      store.current(clock.now()),
      /^Error: \/pki\/kubelet-client-current\.pem: holds no private key$/,
    );
    await files.remove("/pki/kubelet-client-current.pem");
    await files.write("/pki/kubelet-client-current.pem", "mine", 0o600);
    await assert.rejects(store.update(b, clock.now()), /expected .* to be a symlink but it is a file/);
  });
});
