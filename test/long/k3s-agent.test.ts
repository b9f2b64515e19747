import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parse, stringify } from "yaml";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import { noControlPlane } from "../support/control-plane.ts";
import { printedCommands } from "../support/documented-commands.ts";
import { noKubectl } from "../support/kubectl.ts";
import { type Member, withMember, workload } from "../support/member.ts";

const page = await readFile(join(import.meta.dirname, "../../docs/join.md"), "utf8");
const heading = "Beside a k3s server";

/** Where a k3s agent keeps its files, and where the page keeps podwright's; here below the test's directory. */
const agent = "/var/lib/rancher/k3s/agent";
const own = "/etc/podwright";

/** What a k3s agent leaves behind, made by the cluster's authority, which is k3s' for servers and for clients. */
async function leaveFiles({ plane, node }: Member): Promise<void> {
  const directory = placeOf(node, agent);
  await mkdir(directory, { recursive: true });
  await mkdir(placeOf(node, own), { recursive: true });
  const subject = { commonName: `system:node:${node.name}`, organizations: ["system:nodes"] };
  const client = plane.authority.issue({ subject, usages: ["client"] });
  // An agent tells the server its addresses.
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []);
  const names = [node.name, ...addresses.filter((address) => !address.startsWith("fe80:"))];
  const serving = plane.authority.issue({ subject, names, usages: ["server"] });
  const files = {
    "client-kubelet.crt": client.certificate,
    "client-kubelet.key": client.key,
    "serving-kubelet.crt": serving.certificate,
    "serving-kubelet.key": serving.key,
    "server-ca.crt": plane.authority.certificate,
    "client-ca.crt": plane.authority.certificate,
    "kubelet.kubeconfig": stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: "local",
          cluster: { server: "https://127.0.0.1:6444", "certificate-authority": `${directory}/server-ca.crt` },
        },
      ],
      contexts: [{ name: "Default", context: { cluster: "local", user: "user", namespace: "default" } }],
      "current-context": "Default",
      users: [
        {
          name: "user",
          user: {
            "client-certificate": `${directory}/client-kubelet.crt`,
            "client-key": `${directory}/client-kubelet.key`,
          },
        },
      ],
    }),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text, { mode: 0o600 });
}

function placeOf(node: Member["node"], path: string): string {
  return node.podwright.path(path.slice(1));
}

/** A text of the page, for this node and this machine. */
function here({ plane, node }: Member, text: string): string {
  return text
    .replaceAll(agent, placeOf(node, agent))
    .replaceAll(own, placeOf(node, own))
    .replace("SERVER:6443", new URL(plane.url).host);
}

/** The page's configuration, with what tests need of their machine. */
async function configure(member: Member): Promise<void> {
  const [, printed = ""] = /```yaml\n(.*?)```/su.exec(page.split(`## ${heading}\n`)[1] ?? "") ?? [];
  const documented = parse(here(member, printed)) as Readonly<Record<string, unknown>>;
  assert.deepEqual(Object.keys(documented).slice(0, 2), ["apiVersion", "kind"]);
  const { podwright } = member.node;
  const tests = parse(await readFile(podwright.path("kubelet.yaml"), "utf8")) as Readonly<Record<string, unknown>>;
  const { authentication: _own, authorization: _all, ...machine } = tests;
  // This machine's containerd is the test's, and leaves cgroups to it.
  const { containerRuntimeEndpoint: _endpoint, cgroupDriver: _driver, ...kept } = documented;
  const staticPodPath = podwright.path("manifests.d");
  await writeFile(`${placeOf(member.node, own)}/kubelet.yaml`, stringify({ ...machine, ...kept, staticPodPath }));
}

const title = "with a k3s agent's files, podwright joins, and the API server reaches it, by the page's commands";
test(title, { skip: noControlPlane || noKubectl }, async () => {
  await withMember("", async (member) => {
    const { kubectl, node } = member;
    await leaveFiles(member);
    await configure(member);
    const [sed = "", run = "", ...others] = printedCommands(page, heading).slice(-2);
    assert.deepEqual(others, []);
    const { exitCode, stderr } = await systemProcesses.run("sh", ["-ec", here(member, sed)], { timeoutMs: 10_000 });
    assert.equal(exitCode, 0, stderr);
    const words = here(member, run).split(" ");
    assert.deepEqual(words.slice(0, 2), ["podwright", "kubelet"]);
    const ofNode = node.kubeletFlags();
    ofNode.splice(ofNode.indexOf("--config"), 2);
    const kubelet = node.podwright.start([...words.slice(1), ...ofNode]);
    await member.shows(/^node1 +Ready/m, "get", "nodes");
    await member.apply(workload("Deployment", "web", { replicas: 1 }));
    await member.rolledOut("deployment/web");
    assert.match(await kubectl.succeed("logs", "deployment/web"), /serving/);
    assert.equal(await kubectl.succeed("exec", "deployment/web", "--", "cat", "/tmp/index.html"), "page\n");
    await kubectl.succeed("delete", "deployment", "web", "--timeout=60s");
    kubelet.child.kill("SIGTERM");
    await kubelet.ended;
  });
});
