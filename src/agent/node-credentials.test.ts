import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CertificateAuthority } from "../../test/apiserver/certificates.ts";
import { kubeconfig } from "../../test/apiserver/kubeconfig.ts";
import { until } from "../../test/support/podwright.ts";
import { silentLog } from "../../test/support/sources.ts";
import { nodeCredentials } from "./node-credentials.ts";
import { openPorts } from "./process-start.ts";

test("a node with a certificate and no kubeconfig writes one, and creates its directory", async () => {
  const base = await mkdtemp(join(tmpdir(), "podwright-credentials-"));
  const umask = process.umask(0o022);
  try {
    const authority = new CertificateAuthority("ca");
    const node = authority.issue({ subject: { commonName: "system:node:n" }, usages: ["client"] });
    const [bootstrap, certDir, path] = [join(base, "bootstrap"), join(base, "pki"), join(base, "etc/node/kubeconfig")];
    await writeFile(bootstrap, kubeconfig("https://127.0.0.1:1", authority.certificate, { token: "t" }));
    await mkdir(certDir);
    await writeFile(join(certDir, "kubelet-client-current.pem"), node.certificate + node.key);
    const flags = { kubeconfig: path, bootstrapKubeconfig: bootstrap, certDir };
    const ports = await openPorts();
    const credentials = await nodeCredentials({ ports, log: silentLog, flags, nodeName: "n", renews: true });
    assert.equal(credentials?.certificates?.current?.key, node.key);
    await until("the kubeconfig", async () => (await readFile(path, "utf8").catch(() => "")) !== "");
    assert.match(await readFile(path, "utf8"), /client-certificate: .*kubelet-client-current\.pem/);
    assert.deepEqual([(await stat(join(base, "etc"))).mode & 0o777, (await stat(path)).mode & 0o777], [0o755, 0o600]);
  } finally {
    process.umask(umask);
    await rm(base, { recursive: true });
  }
});
