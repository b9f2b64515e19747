import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { X509Certificate } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { type ApiObject, at, itemsAt, textAt } from "./objects.ts";
import { withCondition } from "./pod-requests.ts";
import { TestApiServer } from "./server.ts";
import { nodeNamed, podNamed } from "./testing.ts";

/** The kubectl of the server's version from scripts/fetch-runtimes.sh, or the machine's. */
const fetched = resolve(import.meta.dirname, "../../.cache/runtimes/sid/usr/bin/kubectl");
const program = [fetched, "kubectl"].find((each) => spawnSync(each, ["version", "--client"]).status === 0);
const missing = program === undefined ? "no kubectl here: sh scripts/fetch-runtimes.sh sid fetches it" : false;

function manifest(image: string): string {
  const container = { name: "app", image, env: [{ name: "LEVEL", value: "1" }] };
  const metadata = { name: "web", labels: { app: "web" } };
  return JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [container] } });
}

describe("the real kubectl", { skip: missing }, () => {
  let server: TestApiServer;
  let home: string;
  before(async () => {
    server = await TestApiServer.start();
    server.admin.create(nodeNamed("node1", { ready: true }));
    home = await mkdtemp(join(tmpdir(), "podwright-kubectl-"));
    await writeFile(join(home, "config"), server.kubeconfig());
  });
  after(async () => {
    await server[Symbol.asyncDispose]();
    await rm(home, { recursive: true, force: true });
  });

  const environment = (): NodeJS.ProcessEnv => ({ ...process.env, KUBECONFIG: join(home, "config"), HOME: home });
  async function kubectl(...commandLine: readonly string[]): Promise<string> {
    return (await promisify(execFile)(program ?? "", commandLine, { env: environment() })).stdout;
  }
  async function apply(image: string): Promise<string> {
    await writeFile(join(home, "web.json"), manifest(image));
    return kubectl("apply", "-f", join(home, "web.json"));
  }
  /** Acts as the node once the pod has ended. */
  function confirmDeletion(name: string): void {
    const { uid } = server.admin.get("pods", `default/${name}`).metadata;
    server.admin.delete("pods", `default/${name}`, { gracePeriodSeconds: 0, preconditions: { uid } });
  }

  it("applies, changes, gets, describes, watches and deletes a pod", async () => {
    assert.equal(await apply("demo:1"), "pod/web created\n");
    assert.equal(await apply("demo:1"), "pod/web unchanged\n");
    assert.equal(await apply("demo:2"), "pod/web configured\n");
    assert.equal(await kubectl("get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}"), "demo:2");
    const pod = await server.admin.until("pods", "default/web", (each) => at(each, "spec.nodeName") === "node1");
    assert.ok(pod);

    const watching = spawn(program ?? "", ["get", "pods", "-w"], { env: environment() });
    let seen = "";
    watching.stdout.setEncoding("utf8").on("data", (text: string) => (seen += text));
    const sees = async (pattern: RegExp): Promise<void> => {
      for (let tries = 0; tries < 100 && !pattern.test(seen); tries++) {
        await new Promise((done) => setTimeout(done, 50));
      }
      assert.match(seen, pattern);
    };
    try {
      await sees(/^NAME +READY +STATUS +RESTARTS +AGE\nweb +0\/1 +Pending +0 +\d+s\n/);
      const app = { name: "app", ready: true, restartCount: 2, state: { running: {} } };
      const running = { phase: "Running", containerStatuses: [app] };
      server.admin.patch("pods", "default/web", { status: running }, { subresource: "status" });
      await sees(/web +1\/1 +Running +2 /);
      const described = await kubectl("describe", "pod", "web");
      assert.match(described, /Node: +node1/);
      assert.match(described, /Scheduled .* default-scheduler +Successfully assigned default\/web to node1/);
      assert.match(described, /kube-api-access-\w{5} \(ro\)/);

      const deleting = kubectl("delete", "pod", "web");
      await server.admin.until("pods", "default/web", (each) => at(each, "metadata.deletionTimestamp") !== undefined);
      assert.equal(at(server.admin.get("pods", "default/web"), "metadata.deletionGracePeriodSeconds"), 30);
      await sees(/web +1\/1 +Terminating /);
      confirmDeletion("web");
      assert.match(await deleting, /pod "web" deleted/);
      assert.doesNotMatch(seen, /NAME[\s\S]*NAME/, "one header");
    } finally {
      watching.kill();
    }
  });

  it("lists resources and nodes, and creates, labels and removes objects and namespaces", async () => {
    const names = await kubectl("api-resources", "-o", "name");
    for (const name of ["pods", "leases.coordination.k8s.io", "events.events.k8s.io"]) {
      assert.match(names, new RegExp(`^${name.replaceAll(".", "\\.")}$`, "m"));
    }
    assert.match(await kubectl("get", "nodes"), /^node1 +Ready +<none>/m);
    assert.match(await kubectl("describe", "node", "node1"), /^Name: +node1$/m);
    await kubectl("create", "namespace", "team");
    await kubectl("create", "configmap", "settings", "--namespace", "team", "--from-literal=a=1");
    await kubectl("label", "configmap", "settings", "--namespace", "team", "tier=front");
    const chosen = await kubectl("get", "configmaps", "--all-namespaces", "-l", "tier in (front)", "-o", "name");
    assert.equal(chosen, "configmap/settings\n");
    assert.match(await kubectl("delete", "namespace", "team"), /deleted/);
    assert.equal(server.admin.find("configmaps", "team/settings"), undefined);
  });

  it("cordons and taints", async () => {
    await kubectl("cordon", "node1");
    assert.match(await kubectl("get", "nodes"), /Ready,SchedulingDisabled/);
    await kubectl("uncordon", "node1");
    await kubectl("taint", "node", "node1", "dedicated=db:NoSchedule");
    assert.equal(itemsAt(server.admin.get("nodes", "node1"), "spec.taints").length, 1);
    await kubectl("taint", "node", "node1", "dedicated-");
  });

  it("drains a node by evictions within disruption budgets", async () => {
    server.admin.create({ ...podNamed("drained"), metadata: { name: "drained", labels: { app: "db" } } });
    await server.admin.until("pods", "default/drained", (pod) => at(pod, "spec.nodeName") === "node1");
    server.admin.patch("pods", "default/drained", { status: { phase: "Running" } }, { subresource: "status" });
    const selector = { matchLabels: { app: "db" } };
    const budget = {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "db" },
      spec: { selector },
    };
    server.admin.create(budget);
    const drain = ["drain", "node1", "--force", "--pod-selector=app=db"];
    await assert.rejects(
      kubectl(...drain, "--timeout=1s"),
      /Cannot evict pod as it would violate the pod's disruption budget/,
    );
    server.admin.patch(
      "poddisruptionbudgets",
      "default/db",
      { status: { disruptionsAllowed: 1 } },
      { subresource: "status" },
    );
    const draining = kubectl(...drain);
    const pod = await server.admin.until(
      "pods",
      "default/drained",
      (each) => at(each, "metadata.deletionTimestamp") !== undefined,
    );
    const disrupted = itemsAt(pod, "status.conditions").find(({ type }) => type === "DisruptionTarget");
    assert.equal(disrupted?.["reason"], "EvictionByEvictionAPI");
    confirmDeletion("drained");
    assert.match(await draining, /node\/node1 drained/);
    await kubectl("uncordon", "node1");
  });

  it("approves certificate requests and checks permissions", async () => {
    const key = join(home, "key.pem");
    const subject = "/O=system:nodes/CN=system:node:node1";
    const names = "subjectAltName=DNS:node1,IP:192.0.2.2";
    const options = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key];
    const { stdout } = await promisify(execFile)("openssl", [...options, "-subj", subject, "-addext", names]);
    const usages = ["digital signature", "server auth"];
    const spec = {
      request: Buffer.from(stdout).toString("base64"),
      signerName: "kubernetes.io/kubelet-serving",
      usages,
    };
    server.admin.create({
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name: "serving" },
      spec,
    });
    assert.match(await kubectl("get", "csr"), /serving .*kubelet-serving +system:apiserver .*Pending/);
    await kubectl("certificate", "approve", "serving");
    const isSigned = (request: ApiObject | undefined): boolean => textAt(request, "status.certificate") !== "";
    const signed = await server.admin.until("certificatesigningrequests", "serving", isSigned);
    const certificate = new X509Certificate(Buffer.from(textAt(signed, "status.certificate"), "base64"));
    assert.equal(certificate.subjectAltName, "DNS:node1, IP Address:192.0.2.2");
    assert.ok(certificate.verify(new X509Certificate(server.authority.certificate).publicKey));
    assert.equal(await kubectl("auth", "can-i", "delete", "nodes"), "yes\n");
    assert.match(await kubectl("create", "token", "default"), /^ey[\w-]+\.[\w-]+\.[\w-]+\s*$/);
  });

  it("impersonates a user, and lists permissions", async () => {
    const who = await kubectl("auth", "whoami", "--as", "foo", "--as-group", "a", "--as-group", "b", "--as-uid", "3");
    assert.match(who, /^Username +foo\nUID +3\nGroups +\[a b system:authenticated\]$/m);
    await assert.rejects(kubectl("get", "pods", "--as", "foo"), /User "foo" cannot list resource "pods"/);
    assert.match(await kubectl("auth", "can-i", "--list"), /^\*\.\* +\[\] +\[\] +\[\*\]$/m);
    assert.doesNotMatch(await kubectl("auth", "can-i", "--list", "--as", "foo"), /\*\.\*/);
  });

  it("creates classes, budgets, quotas, services and reviews", async () => {
    await kubectl("create", "priorityclass", "low", "--value=-1000");
    assert.equal(server.admin.get("priorityclasses", "low")["value"], -1000);
    await kubectl("create", "pdb", "share", "--selector=tier=x,zone in (a,b)", "--min-available=20%");
    const matchExpressions = [{ key: "zone", operator: "In", values: ["a", "b"] }];
    const share = server.admin.get("poddisruptionbudgets", "default/share");
    assert.deepEqual(share["spec"], {
      minAvailable: "20%",
      selector: { matchLabels: { tier: "x" }, matchExpressions },
    });
    await kubectl("create", "pdb", "one", "--selector=tier=x", "--max-unavailable=1");
    assert.equal(at(server.admin.get("poddisruptionbudgets", "default/one"), "spec.maxUnavailable"), 1);
    await kubectl("create", "quota", "few", "--hard=cpu=1,pods=2");
    assert.deepEqual(at(server.admin.get("resourcequotas", "default/few"), "spec.hard"), { cpu: "1", pods: "2" });
    await kubectl("create", "service", "clusterip", "front", "--tcp=80:8080");
    assert.equal(itemsAt(server.admin.get("services", "default/front"), "spec.ports")[0]?.["targetPort"], 8080);
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token: "x" } };
    await writeFile(join(home, "review.json"), JSON.stringify(review));
    const reviewed = await kubectl("create", "-f", join(home, "review.json"), "-o", "jsonpath={.status.error}");
    assert.equal(reviewed, "invalid bearer token");
  });

  it("sorts pods and events, and explains fields", async () => {
    for (const name of ["b", "a"]) server.admin.create(podNamed(`sorted-${name}`, { schedulerName: "none" }));
    const sorted = await kubectl("get", "pods", "--sort-by=.metadata.name");
    assert.match(sorted, /^NAME +READY .*\n[^]*^sorted-a +0\/1 +Pending .*\nsorted-b /m);
    assert.match(await kubectl("get", "events", "--sort-by=.lastTimestamp"), /^LAST SEEN +TYPE +REASON/);
    assert.match(await kubectl("explain", "pod.spec.containers"), /FIELD: containers <\[\]Object>[^]* image\t<string>/);
    assert.match(await kubectl("explain", "runtimeclass"), /does not tell the members of this kind/);
  });

  it("waits for a condition", async () => {
    await kubectl("run", "waited", "--image=demo:1");
    const waiting = kubectl("wait", "pod/waited", "--for=condition=Ready", "--timeout=10s");
    const pod = server.admin.get("pods", "default/waited");
    server.admin.patch(
      "pods",
      "default/waited",
      { status: withCondition(pod, "Ready", "True")["status"] ?? {} },
      {
        subresource: "status",
      },
    );
    assert.match(await waiting, /condition met/);
    const forced = await kubectl("delete", "pod", "waited", "--force", "--grace-period=0");
    assert.match(forced, /force deleted/);
  });

  it("prints the server's reason for a refusal", async () => {
    await assert.rejects(kubectl("get", "pod", "nobody"), /Error from server \(NotFound\): pods "nobody" not found/);
    await writeFile(
      join(home, "bad.json"),
      JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "bad" } }),
    );
    await assert.rejects(kubectl("create", "-f", join(home, "bad.json")), /spec\.containers: Required value/);
  });
});
