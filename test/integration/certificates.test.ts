import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { statSync } from "node:fs";
import { mkdir, readFile, readlink, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { connect, type PeerCertificate } from "node:tls";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { bootstrapTokenSecret } from "../apiserver/bootstrap-tokens.ts";
import { CertificateAuthority } from "../apiserver/certificates.ts";
import { kubeconfig } from "../apiserver/kubeconfig.ts";
import { type ApiObject, itemsAt, textAt } from "../apiserver/objects.ts";
import { TestApiServer, type TestApiServerOptions } from "../apiserver/server.ts";
import { boundPod } from "../support/bound-pod.ts";
import { ClusterNode } from "../support/cluster-node.ts";
import type { RunningCommand } from "../support/command.ts";
import { KubeletNode } from "../support/kubelet-node.ts";
import { Kubectl, noKubectl } from "../support/kubectl.ts";
import { until } from "../support/podwright.ts";

const token = "abcdef.0123456789abcdef";
const requests = "certificatesigningrequests";
const command = ["sh", "-c", "echo hello; exec sleep 1000"];

/** A node that has nothing but a bootstrap token, and the API server that it belongs to. */
class Joining extends ClusterNode {
  readonly bootstrapPath = this.node.podwright.path("bootstrap");
  readonly kubeconfigPath = this.node.podwright.path("kubeconfig");

  async writeBootstrap(text = this.server.kubeconfig({ token })): Promise<void> {
    await writeFile(this.bootstrapPath, text, { mode: 0o600 });
  }

  /** Starts the kubelet with the bootstrap kubeconfig. */
  join(...flags: readonly string[]): RunningCommand {
    return this.node.startKubelet(
      ...["--kubeconfig", this.kubeconfigPath, "--bootstrap-kubeconfig", this.bootstrapPath, ...flags],
    );
  }

  async stop(kubelet: RunningCommand): Promise<void> {
    kubelet.child.kill("SIGTERM");
    await kubelet.ended;
  }

  requests(): readonly ApiObject[] {
    return this.server.admin.list(requests);
  }

  decide(name: string, type: "Approved" | "Denied", message = "by hand"): void {
    const condition = { type, status: "True", reason: "Test", message };
    this.server.admin.patch(requests, name, { status: { conditions: [condition] } }, { subresource: "approval" });
  }

  /** The only request that is not decided yet, once there is one. */
  async pending(): Promise<string> {
    const open = (): readonly ApiObject[] =>
      this.requests().filter((request) => itemsAt(request, "status.conditions").length === 0);
    await until("a certificate to be asked for", async () => open().length > 0, 60_000);
    assert.equal(open().length, 1);
    return open()[0]?.metadata.name ?? "";
  }

  /** The certificate that the kubelet's API shows; undefined when it shows none. */
  async shown(): Promise<PeerCertificate | undefined> {
    const socket = connect({ host: "127.0.0.1", port: this.node.apiPort, rejectUnauthorized: false });
    try {
      await once(socket, "secureConnect");
      return socket.getPeerCertificate();
    } catch {
      return undefined;
    } finally {
      socket.destroy();
    }
  }
}

async function withJoining(options: TestApiServerOptions, work: (joining: Joining) => Promise<void>): Promise<void> {
  await using server = await TestApiServer.start(options);
  server.admin.create(bootstrapTokenSecret(token));
  const node = await KubeletNode.open();
  try {
    await node.startContainerd();
    const joining = new Joining(server, node);
    await joining.writeBootstrap();
    await work(joining);
  } catch (error) {
    console.error(await node.podwright.evidence());
    throw error;
  } finally {
    await node.podwright.cleanUp();
  }
}

const staticPod = `apiVersion: v1
kind: Pod
metadata: { name: static }
spec:
  terminationGracePeriodSeconds: 0
  containers: [{ name: app, image: "${DEMO_IMAGE}", command: [sleep, "1000"] }]
`;

function podOf(name: string) {
  return boundPod(name, { name: "app", command }, { terminationGracePeriodSeconds: 0 });
}

/** Waits until the command's output matches. */
async function says(kubelet: RunningCommand, pattern: RegExp): Promise<void> {
  await until(`it to say ${String(pattern)}`, async () => pattern.test(kubelet.stdout + kubelet.stderr), 60_000);
}

/** Renewed every few seconds: most of their life was over when they were issued. */
const shortLived = { certificateMs: 15_000 };

const settings = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
rotateCertificates: true
nodeLeaseDurationSeconds: 4
`;

test("a node joins with a bootstrap token once it is approved, and renews its certificate while pods run", async () => {
  let approves = false;
  await withJoining({ approves: () => approves, ...shortLived }, async (joining) => {
    const { node, server } = joining;
    const { podwright } = node;
    await mkdir(podwright.path("conf.d"));
    await podwright.manifest("conf.d/10.conf", settings);
    const flags = ["--config-dir", podwright.path("conf.d")];
    await node.write("static.yaml", staticPod);
    const first = joining.join(...flags);
    const name = await joining.pending();
    assert.match(name, /^node-csr-[\w-]{43}$/);
    // This does not need the cluster.
    await podwright.waitFor("the static pod", (pods) => pods.some((pod) => pod.name === "static-node1" && pod.ready));
    await joining.stop(first);
    const kubelet = joining.join(...flags);
    const asked = (): number => server.requests.list("create certificatesigningrequests").length;
    await until("the certificate to be asked for again", async () => asked() === 2, 20_000);
    await says(kubelet, /kubectl certificate approve node-csr-.*waiting for a certificate/);
    assert.deepEqual(
      joining.requests().map(({ metadata }) => metadata.name),
      [name],
    );
    approves = true;
    joining.decide(name, "Approved");
    await joining.nodeReady();

    const current = podwright.path("pki/kubelet-client-current.pem");
    const issued = await readlink(current);
    assert.match(issued, /\/pki\/kubelet-client-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.pem$/);
    assert.equal((await stat(issued)).mode & 0o777, 0o600);
    const text = await readFile(issued, "utf8");
    assert.match(text, /^-----BEGIN CERTIFICATE-----\n[^]*-----BEGIN EC PRIVATE KEY-----\n/);
    await until(
      "the kubeconfig",
      async () => (statSync(joining.kubeconfigPath, { throwIfNoEntry: false })?.size ?? 0) > 0,
    );
    const written = await readFile(joining.kubeconfigPath, "utf8");
    assert.ok(written.includes(`client-certificate: ${current}`) && !written.includes(token), written);
    assert.equal((await stat(joining.kubeconfigPath)).mode & 0o777, 0o600);

    server.admin.create(podOf("web"));
    await joining.ready("web");
    const { validToDate } = new X509Certificate(text);
    await until("the first certificate to expire", async () => Date.now() > validToDate.getTime(), 30_000);
    // Leases, statuses and watches continue; the token was not used again.
    const lease = textAt(server.admin.get("leases", "kube-node-lease/node1"), "spec.renewTime");
    const renewed = (object: ApiObject | undefined): boolean => textAt(object, "spec.renewTime") > lease;
    await server.admin.until("leases", "kube-node-lease/node1", renewed, 20_000);
    server.cutWatches();
    server.admin.create(podOf("late"));
    await joining.ready("late");
    assert.notEqual(await readlink(current), issued);
    const who = joining.requests().map((request) => textAt(request, "spec.username"));
    assert.ok(who.length > 1 && who.filter((user) => user !== "system:node:node1").length === 1, who.join(", "));
    assert.equal(joining.status("web").containerStatuses?.[0]?.restartCount, 0);
    assert.equal(kubelet.child.exitCode, null);
    assert.ok(!(kubelet.stdout + kubelet.stderr).includes(token));
  });
});

test("an expired certificate, a wrong authority, a wrong clock and a denial are reported with remedies", async () => {
  await withJoining({ approves: () => false }, async (joining) => {
    const { node, server } = joining;
    const hour = 3_600_000;
    const validity = { notBefore: new Date(Date.now() - 2 * hour), notAfter: new Date(Date.now() - hour) };
    const expired = server.credentials("system:node:node1", ["system:nodes"], validity);
    await writeFile(joining.kubeconfigPath, server.kubeconfig(expired), { mode: 0o600 });

    const alone = node.startKubelet("--kubeconfig", joining.kubeconfigPath, "--rotate-certificates");
    await says(alone, /expired at .*this machine's clock is at/);
    await says(
      alone,
      /use a kubeconfig with a valid certificate, or --bootstrap-kubeconfig.*certificate request failed/,
    );
    await joining.stop(alone);
    const unmanaged = node.startKubelet("--kubeconfig", joining.kubeconfigPath);
    await says(unmanaged, /expired at.*install a valid one.*cannot use the kubeconfig's client certificate/);
    await joining.stop(unmanaged);
    const early = server.credentials("system:node:node2", ["system:nodes"], { notBefore: new Date(Date.now() + hour) });
    await writeFile(joining.kubeconfigPath, server.kubeconfig(early), { mode: 0o600 });
    for (const flags of [[], ["--rotate-certificates", "--cert-dir", node.podwright.path("other-pki")]]) {
      const other = node.startKubelet("--kubeconfig", joining.kubeconfigPath, ...flags);
      await says(
        other,
        /"certificateOf":"node2","node":"node1","remedy":"use .*client certificate is for another node/,
      );
      await says(other, /it is valid from .*which is probably behind.*certificate.* has a problem/);
      await joining.stop(other);
    }
    await writeFile(joining.kubeconfigPath, server.kubeconfig(expired), { mode: 0o600 });

    const stranger = new CertificateAuthority("stranger");
    await joining.writeBootstrap(kubeconfig(server.url, stranger.certificate, { token }));
    const misled = joining.join();
    await says(misled, /certificate authority did not sign its certificate.*certificate request failed/);
    // What is put right is used without a restart.
    await using future = await TestApiServer.start({ servingValidity: { notBefore: new Date(Date.now() + hour) } });
    await joining.writeBootstrap(future.kubeconfig({ token }));
    await says(
      misled,
      /its certificate is not valid yet, or this machine's clock is behind.*certificate request failed/,
    );
    await joining.writeBootstrap(server.kubeconfig({ token: "abcdef.wrong00000000000" }));
    await says(misled, /Unauthorized.*certificate request failed/);
    await joining.stop(misled);

    await joining.writeBootstrap();
    const kubelet = joining.join("--rotate-certificates");
    const name = await joining.pending();
    joining.decide(name, "Denied", "unknown machine");
    await says(
      kubelet,
      /was denied \(Test: unknown machine\); to request again, delete it \(kubectl delete csr node-csr-/,
    );
    server.admin.delete(requests, name);
    joining.decide(await joining.pending(), "Approved");
    await joining.nodeReady();
    // Written beside the start, on a disk that may be slow.
    await until("the kubeconfig to name the certificate", async () =>
      (await readFile(joining.kubeconfigPath, "utf8")).includes("kubelet-client-current.pem"),
    );
    assert.ok(!(kubelet.stdout + kubelet.stderr + misled.stdout + misled.stderr).includes("abcdef."));
  });
});

test(
  "the API uses a certificate of the cluster's signer, and a new one when addresses change",
  { skip: noKubectl },
  async () => {
    const approves = (request: ApiObject): boolean => textAt(request, "spec.signerName").endsWith("client-kubelet");
    await withJoining({ approves, verifiesKubelets: true }, async (joining) => {
      const { node, server } = joining;
      const authority = await node.podwright.manifest("ca.crt", server.authority.certificate);
      const flags = ["--rotate-server-certificates", "--client-ca-file", authority, "--authorization-mode", "Webhook"];
      const kubelet = joining.join(...flags, "--node-ip", "127.0.0.1");
      await joining.nodeReady();
      server.admin.create(podOf("web"));
      await joining.ready("web");
      const path = node.podwright.path("kubectl-config");
      await writeFile(path, server.kubeconfig(), { mode: 0o600 });
      const kubectl = new Kubectl(path, node.podwright.layout.stateDirectory);
      const name = await joining.pending();
      // Until then there is none: handshakes fail.
      assert.equal(await joining.shown(), undefined);
      assert.notEqual((await kubectl.run(["logs", "web"])).code, 0);
      joining.decide(name, "Denied", "unknown machine");
      await until("an Event of that", async () =>
        server.admin
          .list("events")
          .some(
            (event) =>
              textAt(event, "reason") === "CertificateNotIssued" &&
              textAt(event, "message").includes("unknown machine"),
          ),
      );
      server.admin.delete(requests, name);
      joining.decide(await joining.pending(), "Approved");
      await until("a certificate to be shown", async () => (await joining.shown()) !== undefined, 20_000);
      assert.equal((await joining.shown())?.subjectaltname, "DNS:node1, IP Address:127.0.0.1");
      assert.equal(await kubectl.succeed("logs", "web"), "hello\n");
      const current = node.podwright.path("pki/kubelet-server-current.pem");
      assert.match(await readlink(current), /\/pki\/kubelet-server-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.pem$/);
      await joining.stop(kubelet);

      const moved = joining.join(...flags, "--node-ip", "127.0.0.2");
      const next = await joining.pending();
      // The one before is shown for as long as there is no other.
      await until("the API to be served again", async () => (await joining.shown()) !== undefined);
      joining.decide(next, "Approved");
      await until("the other address", async () => {
        return (await joining.shown())?.subjectaltname === "DNS:node1, IP Address:127.0.0.2";
      });
      assert.equal(await kubectl.succeed("logs", "web"), "hello\n");
      await joining.stop(moved);

      const pair = (serial: string) => server.authority.issue({ subject: { commonName: serial }, usages: ["server"] });
      const files = { certificate: node.podwright.path("tls.crt"), key: node.podwright.path("tls.key") };
      const put = async (serial: string): Promise<void> => {
        const made = pair(serial);
        await writeFile(files.key, made.key, { mode: 0o600 });
        await writeFile(files.certificate, made.certificate);
      };
      await put("one");
      joining.join("--tls-cert-file", files.certificate, "--tls-private-key-file", files.key);
      const subject = async (): Promise<string | undefined> => {
        const commonName: unknown = (await joining.shown())?.subject.CN;
        return typeof commonName === "string" ? commonName : undefined;
      };
      await until("the file's certificate", async () => (await subject()) === "one", 20_000);
      await put("two");
      await until("the changed file's certificate", async () => (await subject()) === "two", 20_000);
    });
  },
);
