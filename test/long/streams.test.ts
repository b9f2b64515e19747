import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { withClusterNode } from "../support/cluster-node.ts";
import { Kubectl, noKubectl } from "../support/kubectl.ts";
import { echoIntact, forwardIntact, streamImage, streamPod } from "../support/streams.ts";

const mebibyte = 1 << 20;

test(
  "a gibibyte through exec and through 50 connections of a port-forward arrives intact",
  { skip: noKubectl },
  async (t) => {
    await withClusterNode(async (cluster) => {
      await cluster.nodeReady();
      cluster.server.admin.create(streamPod);
      await cluster.ready("web");
      const { podwright } = cluster.node;
      const path = podwright.path("kubectl-config");
      await writeFile(path, cluster.server.kubeconfig(), { mode: 0o600 });
      const kubectl = new Kubectl(path, podwright.layout.stateDirectory);
      await t.test("exec, to a command and back", () => echoIntact(kubectl, 1024 * mebibyte));
      await t.test("port-forward, 50 connections at once", () => forwardIntact(kubectl, 50, 21 * mebibyte));
      cluster.server.admin.delete("pods", "default/web");
      await cluster.gone("web");
    }, streamImage);
  },
);
